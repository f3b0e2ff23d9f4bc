"""An operator as a process, and its resource usage as the kernel reports it."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 15.0  # seconds from SIGTERM to SIGKILL


def command(contender: str, namespace: str, kubeconfig: str, folder: Path) -> list[str]:
    """The command line of a contender, as quiet as possible.

    A recorded one writes to the folder.
    """
    python = sys.executable
    scope = ["-n", namespace, "--standalone", "--quiet"]
    match contender:
        case "fnop" | "fnop-ring" | "fnop-full":
            script = ["run", "bench/fnop_operator.py", "--kubeconfig", kubeconfig]
            return [
                python,
                "-m",
                "fnop",
                *script,
                *scope,
                *_recording(contender, folder),
            ]
        case "kopf" | "kopf-chunked":
            return [python, "-m", "kopf", "run", "bench/kopf_operator.py", *scope]
        case "kopf-on-fnop":
            kopf = [python, "-m", "fnop", "run", "--kopf", "bench/kopf_operator.py"]
            return [*kopf, *scope]
        case _:
            return [python, "-m", "bench.floor", namespace]


def _recording(contender: str, folder: Path) -> list[str]:
    """The options of a recorded run."""
    match contender:
        case "fnop-ring":
            return ["--record", str(folder / "bench-ring"), "--record-mode", "ring"]
        case "fnop-full":
            return ["--record", str(folder / "bench-full.fnop")]
        case _:
            return []


def environment(
    kubeconfig: str, delete_handler: bool, contender: str = ""
) -> dict[str, str]:
    # Installed packages are compiled, so code that runs from its source must be, too.
    left_out = ("BENCH_DELETE", "BENCH_CHUNKED", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if k not in left_out}
    extra = {"BENCH_DELETE": "1"} if delete_handler else {}
    if contender == "kopf-chunked":
        extra["BENCH_CHUNKED"] = "1"
    return kept | extra | {"KUBECONFIG": kubeconfig}


@dataclass
class Process:
    """A running operator. Its CPU time includes everything, start-up and exit too."""

    popen: subprocess.Popen[bytes]
    log: Path
    exited: asyncio.Task[float] = field(init=False)

    def __post_init__(self) -> None:
        self.exited = asyncio.create_task(asyncio.to_thread(self._wait))

    @classmethod
    def start(cls, args: list[str], env: dict[str, str], log: Path) -> "Process":
        with log.open("wb") as stderr:
            popen = subprocess.Popen(
                args, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=stderr
            )
        return cls(popen, log)

    def peak_mb(self) -> float:
        """The most memory held so far.

        It is not `ru_maxrss` of the exited process, which begins with the memory of its
        parent, the harness.
        """
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        return peak_of(status)

    async def stop(self) -> float:
        """End it, gently if possible; return the CPU seconds it has used."""
        for ending in (signal.SIGTERM, signal.SIGKILL):
            if not self.exited.done():
                os.kill(self.popen.pid, ending)
                await asyncio.wait({self.exited}, timeout=PATIENCE)
        return await self.exited

    def last_words(self, lines: int = 5) -> str:
        """The end of its stderr, on lines of their own."""
        text = self.log.read_text(errors="replace")
        return "".join(f"\n{line}" for line in text.strip().splitlines()[-lines:])

    def _wait(self) -> float:
        _, status, usage = os.wait4(self.popen.pid, 0)
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime


def peak_of(status: str) -> float:
    """The high-water mark in a /proc/PID/status, in MB.

    >>> peak_of("VmPeak:\\t 9000 kB\\nVmHWM:\\t 2048 kB\\n")
    2.0
    """
    found = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else float("nan")
