"""Logs of many pods, read by one operator while the API server is killed.

    python -m bench.logs [--pods 100] [--rate 200] [--seconds 300] [--restarts 2]

Pods write lines on a kubelet for tests (`tests/fake_kubelet.py`), which is a process of
its own behind a real API server.  One handler wants every 100th line by its regex.
Another one wants tracebacks (`multiline=True`), which some of the pods write every few
seconds. Meanwhile the bench kills and restarts the API server.

It prints the lines that were read, the operator's CPU time and memory, and the delay
from writing a line to its handler. The exit status is 1 if a wanted line is missing or
was handled twice, or if the operator's memory grows from one outage to the next.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from bench.levels.__main__ import say
from bench.process import ROOT, Process, cpu_of, environment
from tests.cluster import envtest
from tests.cluster.servers import Servers
from tests.fake_kubelet import FakeKubelet, Pods

NAMESPACE, CONTAINER = "default", "c"
# One wanted line in this number of lines.
EVERY = 100
# A pod writes once in this number of seconds, like programs with a buffer.
PERIOD_SECONDS = 0.1
# The groups of pods that write in turn.
GROUPS = 10
# The seconds between two tracebacks of a pod.
FAILS_SECONDS = 5.0
# The kubelet keeps the lines of this number of seconds; restarting takes some of them.
KEPT_SECONDS = 60
# The bench ends if no further line is handled for this long.
QUIET_SECONDS = 20.0
# Lines of an outage may delay others for this long.
CATCH_UP_SECONDS = 2.0
DEADLINE_SECONDS = 120.0
# The fraction by which the operator's memory may grow after the first outage. Waiting
# lines are read in large pieces then, and the allocator keeps room for them.
GROWTH = 0.15

TRACEBACK = """Traceback (most recent call last):
  File "main.py", line 7, in <module>
    work(values[key])
KeyError: {}"""

Json = dict[str, Any]


class Sizes(NamedTuple):
    """The size of a run."""

    pods: int
    rate: int
    seconds: float
    failing: int
    restarts: int
    down: float


def name_of(number: int) -> str:
    return f"pod-{number:03}"


# ----------------------------------------------------------------------- the kubelet


class Writer:
    """Let the pods write, in a thread, and count the lines of each."""

    def __init__(self, kubelet: FakeKubelet, sizes: Sizes) -> None:
        self._kubelet, self._sizes = kubelet, sizes
        self._written = [0] * sizes.pods
        self._failures = [0] * sizes.failing
        self._lag = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        self._thread.start()

    @property
    def result(self) -> Json:
        """The lines so far, and whether these are all."""
        return {
            "is_done": self._thread.ident is not None and not self._thread.is_alive(),
            "written": self._written,
            "failures": self._failures,
            "lag": self._lag,
            "cpu": time.process_time(),
        }

    def _run(self) -> None:
        """Write for the time of the run: each pod once in a period."""
        sizes, began = self._sizes, time.monotonic()
        for turn in itertools.count():
            due = turn * PERIOD_SECONDS / GROUPS
            if due >= sizes.seconds + PERIOD_SECONDS:
                return
            late = time.monotonic() - began - due
            if late < 0:
                time.sleep(-late)
            self._lag = max(self._lag, late)
            for number in range(turn % GROUPS, sizes.pods, GROUPS):
                self._write(number, min(due, sizes.seconds))

    def _write(self, number: int, elapsed: float) -> None:
        first, end = self._written[number], int(elapsed * self._sizes.rate)
        lines = list[str]()
        if number < self._sizes.failing:
            failures = self._failures[number]
            if elapsed >= (failures + 0.5) * FAILS_SECONDS:
                lines += TRACEBACK.format(failures).splitlines()
                self._failures[number] += 1
        lines += [
            f"{sort_of(number, at)} {at} is a line of a program: {at * 37:012}"
            for at in range(first, end)
        ]
        if lines:
            self._kubelet.write(NAMESPACE, name_of(number), CONTAINER, *lines)
        self._written[number] = end


def sort_of(number: int, at: int) -> str:
    """The first word of a line; pods have their wanted lines at different times."""
    return "noise" if (at + 7 * number) % EVERY else "wanted"


def serve(sizes: Sizes) -> None:
    """Run the kubelet: each line is a command, and gets a line of JSON as answer."""
    pods = [(NAMESPACE, name_of(each), CONTAINER) for each in range(sizes.pods)]
    with FakeKubelet(keep=KEPT_SECONDS * sizes.rate) as kubelet:
        writer = Writer(kubelet, sizes)
        for pod in pods:
            kubelet.begin(*pod)
        for command in sys.stdin:
            answer: Any = None
            match command.strip():
                case "pods":
                    statuses = [kubelet.status(*pod) for pod in pods]
                    answer = {"port": kubelet.port, "statuses": statuses}
                case "followers":
                    answer = sum(kubelet.followers(*pod) for pod in pods)
                case "begin":
                    writer.begin()
                case "result":
                    answer = writer.result
                case other:
                    raise ValueError(f"no such command: {other}")
            print(json.dumps(answer), flush=True)


class Kubelet:
    """The process of the kubelet, which ends with this object."""

    def __init__(self, sizes: Sizes) -> None:
        args = [*envtest.dying_with_us(), sys.executable, "-m", "bench.logs"]
        args += ["--kubelet", json.dumps(sizes)]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            args, cwd=ROOT, stdin=pipe, stdout=pipe, text=True
        )

    def ask(self, command: str) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{command}\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


# ------------------------------------------------------------------------- the results


class Handled(NamedTuple):
    """A line that a handler got; the times are Unix times."""

    sort: str
    pod: str
    number: int
    written: float
    handled: float

    @property
    def delay(self) -> float:
        return self.handled - self.written


def handled_in(text: str) -> list[Handled]:
    """Read the operator's output file.

    >>> handled_in("wanted pod-001 7 1.5 1.75\\n")[0].delay
    0.25
    """
    found = (line.split() for line in text.splitlines())
    return [
        Handled(sort, pod, int(number), float(written), float(at))
        for sort, pod, number, written, at in found
    ]


def expected(result: Json) -> Counter[tuple[str, str, int]]:
    """The lines that handlers must get exactly once."""
    found = Counter[tuple[str, str, int]]()
    for number, end in enumerate(result["written"]):
        for at in range(end):
            if sort_of(number, at) == "wanted":
                found["wanted", name_of(number), at] = 1
    for number, end in enumerate(result["failures"]):
        for at in range(end):
            found["failed", name_of(number), at] = 1
    return found


class Outage(NamedTuple):
    """The Unix times at which the API server was killed, and all logs were followed.

    At the second time the kubelet has as many followers as before.
    """

    killed: float
    followed: float


def outside(found: Sequence[Handled], outages: Sequence[Outage]) -> list[float]:
    """The delays, in order, of the lines that no outage has delayed.

    Lines from an outage are read at once after it, which takes a moment.
    """
    spans = [(each.killed, each.followed + CATCH_UP_SECONDS) for each in outages]
    return sorted(
        each.delay
        for each in found
        if all(each.handled < begin or each.written > end for begin, end in spans)
    )


class Sample(NamedTuple):
    """The operator's resident memory in MB at a Unix time."""

    at: float
    resident: float


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def minutes(samples: Sequence[Sample]) -> tuple[float, float]:
    """The median of the memory in the first and in the last minute.

    For a shorter run, in its first and last fifth.
    """
    length = min(60.0, (samples[-1].at - samples[0].at) / 5)
    begin, end = samples[0].at + length, samples[-1].at - length
    return (
        median(each.resident for each in samples if each.at <= begin),
        median(each.resident for each in samples if each.at >= end),
    )


def between(samples: Sequence[Sample], outages: Sequence[Outage]) -> Iterator[float]:
    """The median of the memory before the first outage, and after each."""
    ends = [*(each.killed for each in outages), samples[-1].at]
    begins = [0.0, *(each.followed for each in outages)]
    for begin, end in zip(begins, ends, strict=True):
        yield median(each.resident for each in samples if begin <= each.at <= end)


# ----------------------------------------------------------------------- the command


class Bench:
    """The servers, the kubelet, and the operator with its memory."""

    def __init__(
        self, servers: Servers, kubelet: Kubelet, operator: Process, sizes: Sizes
    ) -> None:
        self.servers, self.kubelet = servers, kubelet
        self.operator, self.sizes = operator, sizes
        self.samples: list[Sample] = []
        self.outages: list[Outage] = []

    @property
    def streams(self) -> int:
        """The number of streams: handlers that differ in `multiline` share none."""
        return self.sizes.pods + self.sizes.failing

    async def followed(self) -> float:
        """Wait until all logs are followed; return the time."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while self.kubelet.ask("followers") < self.streams:
                self.check()
                await asyncio.sleep(0.1)
        return time.time()

    def check(self) -> None:
        """Raise RuntimeError if the operator has ended."""
        if self.operator.exited.done():
            raise RuntimeError(f"the operator has ended:{self.operator.last_words()}")

    async def sampling(self) -> None:
        while True:
            now = time.time()
            self.samples.append(Sample(now, resident_mb(self.operator.popen.pid)))
            await asyncio.sleep(1.0)

    async def outage(self) -> None:
        """Kill the API server, and start it again."""
        killed = time.time()
        end = partial(self.servers.end, "kube-apiserver", by=signal.SIGKILL)
        await self.servers.aside(end)
        await asyncio.sleep(self.sizes.down)
        started = self.servers.aside(lambda: self.servers.start("kube-apiserver"))
        followed, _ = await asyncio.gather(self.followed(), started)
        self.outages.append(Outage(killed, followed))

    async def run(self) -> Json:
        """Let the pods write; return the written lines."""
        sizes, began = self.sizes, time.monotonic()
        self.kubelet.ask("begin")
        for number in range(sizes.restarts):
            at = sizes.seconds * (number + 1) / (sizes.restarts + 1)
            await asyncio.sleep(max(0.0, began + at - time.monotonic()))
            await self.outage()
        while True:
            self.check()
            result: Json = self.kubelet.ask("result")
            if result["is_done"]:
                return result
            await asyncio.sleep(0.5)

    async def handled(self, out: Path, wanted: int) -> list[Handled]:
        """Wait until this number of lines is handled, or until no more come."""
        size, until = -1, time.monotonic()
        while True:
            found = handled_in(out.read_text())
            if len(found) != size:
                size, until = len(found), time.monotonic() + QUIET_SECONDS
            if size >= wanted or time.monotonic() > until:
                await asyncio.sleep(1.0)  # to see duplicates
                return handled_in(out.read_text())
            await asyncio.sleep(0.5)


async def measure(folder: Path, sizes: Sizes) -> bool:
    """Run it; return whether all is well."""
    servers, kubelet = Servers(folder / "server"), Kubelet(sizes)
    try:
        await servers.aside(lambda: servers.start("etcd", "kube-apiserver"))
        await asyncio.to_thread(fill, servers.api, kubelet, sizes)
        out, config = folder / "out", str(servers.api.kubeconfig)
        args = [sys.executable, "-m", "fnop", "run", "bench/logs_operator.py"]
        args += ["--kubeconfig", config, "-n", NAMESPACE, "--standalone", "--quiet"]
        env = environment(config, False) | {"BENCH_LOGS_OUT": str(out)}
        operator = Process.start(args, env, folder / "operator.log")
        bench = Bench(servers, kubelet, operator, sizes)
        try:
            return await measured(bench, out)
        finally:
            await operator.stop()
            text = operator.log.read_text().strip()
            say(
                f"log of the operator:\n{text}"
                if text
                else "the operator's log is empty"
            )
    finally:
        kubelet.close()
        servers.close()


async def measured(bench: Bench, out: Path) -> bool:
    await bench.followed()
    say(f"{bench.streams} logs are followed; load {os.getloadavg()[0]:.1f} before")
    sampling = asyncio.create_task(bench.sampling())
    began, cpu = time.time(), cpu_of(bench.operator)
    try:
        result = await bench.run()
        ended, cpu = time.time(), cpu_of(bench.operator) - cpu
    finally:
        sampling.cancel()
    wanted = expected(result)
    found = await bench.handled(out, wanted.total())
    return report(bench, result, found, ended - began, cpu)


def fill(api: envtest.ApiServer, kubelet: Kubelet, sizes: Sizes) -> None:
    """Create the node and its pods, whose containers run."""
    known = kubelet.ask("pods")
    pods = Pods(api, known["port"], NAMESPACE)
    for number, status in enumerate(known["statuses"]):
        labels = {"fails": "often"} if number < sizes.failing else {}
        pods.create(name_of(number), CONTAINER, labels=labels)
        pods.set_status(name_of(number), [status])


def report(
    bench: Bench, result: Json, found: list[Handled], seconds: float, cpu: float
) -> bool:
    """Print the figures; return whether all is well."""
    lines = sum(result["written"])
    read = lines + sum(result["written"][: bench.sizes.failing])
    wanted = expected(result)
    got = Counter((each.sort, each.pod, each.number) for each in found)
    missing, surplus = (wanted - got).total(), (got - wanted).total()
    say(
        f"{lines:,} lines written in {seconds:.0f} s, at most {result['lag']:.2f} s "
        f"late, with {result['cpu']:.0f} s of CPU of the kubelet"
    )
    say(f"{read:,} lines read: {read / seconds:,.0f} a second")
    say(f"{len(found):,} of {wanted.total():,} lines handled")
    say(f"missing: {missing}; handled twice: {surplus}")
    for each in bench.outages:
        late = [e for e in found if e.written < each.followed and e.delay > 1]
        end = max((e.handled for e in late), default=each.followed)
        say(
            f"{each.followed - each.killed:.1f} s after a kill of the API server all "
            f"logs were followed, after {end - each.killed:.1f} s nothing was late"
        )
    for sort in ("wanted", "failed"):
        delays = outside([e for e in found if e.sort == sort], bench.outages)
        if len(delays) < 2:
            continue
        cuts = quantiles(delays, n=100)
        say(
            f"delay of {len(delays):,} {sort} lines without the outages: "
            f"p50 {1e3 * cuts[49]:.1f} ms, p99 {1e3 * cuts[98]:.1f} ms, "
            f"largest {1e3 * delays[-1]:.1f} ms"
        )
    say(f"CPU of the operator: {cpu:.1f} s, {100 * cpu / seconds:.1f} % of a core")
    first, last = minutes(bench.samples)
    memory = [each.resident for each in bench.samples]
    parts = [*between(bench.samples, bench.outages)]
    is_flat = parts[-1] <= parts[min(1, len(parts) - 1)] * (1 + GROWTH)
    say(
        f"resident memory: {memory[0]:.1f} MB at the start, {memory[-1]:.1f} MB at the "
        f"end, {bench.operator.peak_mb():.1f} MB at most; median of the first minute "
        f"{first:.1f} MB, of the last one {last:.1f} MB"
    )
    text = ", ".join(f"{each:.1f}" for each in parts)
    say(f"its medians before, between and after the kills: {text} MB")
    say(f"load {os.getloadavg()[0]:.1f} at the end")
    return not missing and not surplus and is_flat


def main(args: Sequence[str]) -> int:
    if args[:1] == ["--kubelet"]:
        serve(Sizes(*json.loads(args[1])))
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.logs")
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--rate", type=int, default=200, help="lines/s of a pod")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--failing", type=int, default=10, help="pods with tracebacks")
    parser.add_argument("--restarts", type=int, default=2, help="of the API server")
    parser.add_argument("--down", type=float, default=3, metavar="SECONDS")
    given = parser.parse_args(args)
    if (reason := envtest.missing()) is not None:
        print(reason, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        is_well = asyncio.run(measure(Path(folder), Sizes(**vars(given))))
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
