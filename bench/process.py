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


# The operators' files, by the name of their work.
OPERATORS = {
    "results": "operator",
    "parents": "parents",
    "indexed": "indexed",
    "daemons": "daemons",
}


def command(
    contender: str,
    namespace: str,
    kubeconfig: str,
    folder: Path,
    operator: str = "results",
) -> list[str]:
    """The command line of a contender, as quiet as possible.

    A recorded one writes to the folder.
    """
    python = sys.executable
    scope = ["-n", namespace, "--standalone", "--quiet"]
    kind, file = contender.partition("-")[0], OPERATORS[operator]
    match contender, kind:
        case "kopf-on-fnop", _:
            kopf = ["-m", "fnop", "run", "--kopf", f"bench/kopf_{file}.py"]
            return [python, *kopf, *scope]
        case _, "kopf":
            return [python, "-m", "kopf", "run", f"bench/kopf_{file}.py", *scope]
        case _, "fnop":
            script = ["run", f"bench/fnop_{file}.py", "--kubeconfig", kubeconfig]
            recording = _recording(contender, folder)
            return [python, "-m", "fnop", *script, *scope, *recording]
        case _:
            return [python, "-m", "bench.floor", namespace, operator]


def _recording(contender: str, folder: Path) -> list[str]:
    """The options of a recorded run."""
    match contender:
        case "fnop-ring":
            return ["--record", str(folder / "bench-ring"), "--record-mode", "ring"]
        case "fnop-full":
            return ["--record", str(folder / "bench-full.fnop")]
        case _:
            return []


# Variables that an operator reads; an option and a case set the first two.
_VARIANTS = {
    "kopf-chunked": "BENCH_CHUNKED",
    "kopf-streaming": "BENCH_STREAMING",
    "fnop-streaming": "BENCH_STREAMING",
}
_SWITCHES = ("BENCH_DELETE", "BENCH_UPDATE", *_VARIANTS.values())


def environment(
    kubeconfig: str, delete_handler: bool, contender: str = "", updates: bool = False
) -> dict[str, str]:
    """The environment of a contender."""
    # Installed packages are compiled, so code that runs from its source must be, too.
    left_out = (*_SWITCHES, "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if k not in left_out}
    on = {
        "BENCH_DELETE": delete_handler,
        "BENCH_UPDATE": updates,
        _VARIANTS.get(contender, ""): contender in _VARIANTS,
    }
    switches = {name: "1" for name, is_on in on.items() if is_on}
    return kept | switches | {"KUBECONFIG": kubeconfig}


@dataclass
class Process:
    """A running operator. Its CPU time includes everything, start-up and exit too."""

    popen: subprocess.Popen[bytes]
    log: Path
    patience: float = PATIENCE
    exited: asyncio.Task[float] = field(init=False)

    def __post_init__(self) -> None:
        self.exited = asyncio.create_task(asyncio.to_thread(self._wait))

    @classmethod
    def start(
        cls,
        args: list[str],
        env: dict[str, str],
        log: Path,
        patience: float = PATIENCE,
    ) -> "Process":
        with log.open("wb") as stderr:
            popen = subprocess.Popen(
                args, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=stderr
            )
        return cls(popen, log, patience)

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
                await asyncio.wait({self.exited}, timeout=self.patience)
        return await self.exited

    def last_words(self, lines: int = 5) -> str:
        """The end of its stderr, on lines of their own."""
        text = self.log.read_text(errors="replace")
        return "".join(f"\n{line}" for line in text.strip().splitlines()[-lines:])

    def _wait(self) -> float:
        _, status, usage = os.wait4(self.popen.pid, 0)
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime


# The CPU seconds of a process that does nothing, and the time that it does nothing.
STANDSTILL, IDLE_SECONDS = 0.02, 1.0


def cpu_of(process: Process) -> float:
    """The CPU seconds so far, of user and system: proc(5), fields 14 and 15.

    Ended children count too: fields 16 and 17.
    """
    text = Path(f"/proc/{process.popen.pid}/stat").read_text()
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def idle(process: Process, deadline: float) -> float:
    """Wait until it computes nothing; return the CPU seconds used by then.

    Raises `TimeoutError` after `deadline` seconds.
    """
    before = cpu_of(process)
    async with asyncio.timeout(deadline):
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            after = cpu_of(process)
            if after - before < STANDSTILL:
                return after
            before = after


def peak_of(status: str) -> float:
    """The high-water mark in a /proc/PID/status, in MB.

    >>> peak_of("VmPeak:\\t 9000 kB\\nVmHWM:\\t 2048 kB\\n")
    2.0
    """
    found = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else float("nan")
