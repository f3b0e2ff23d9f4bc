"""The faults: of requests, of the operator's process, and of the servers."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.cluster.churn.plans import Plan
from tests.cluster.envtest import dying_with_us
from tests.cluster.fault_proxy import (
    Action,
    Answer,
    Cut,
    Dropped,
    Edited,
    Exchange,
    Fault,
    FaultProxy,
    HangUp,
    Late,
    Reset,
    Silence,
    error_line,
    refusal,
)
from tests.cluster.servers import Servers
from tests.patience import patience
from tests.simulations import ROOT

__all__ = ["Faults", "Outages", "Process"]

OPERATOR = Path(__file__).parents[1] / "operators" / "churning.py"
# The process has these to end in order, and it may have much to end.
STOP_SECONDS = patience(10)
# How long the operator is left alone at most before it has begun to serve.
START_SECONDS = patience(5)


@dataclass
class Sometimes:
    """Does so with some requests, and lets the others through."""

    action: Action
    part: float
    random: random.Random
    struck: int = 0

    async def __call__(self, exchange: Exchange) -> None:
        if self.random.random() < self.part:
            self.struck += 1
            exchange.record.fault = repr(self.action)[:80]
            await self.action(exchange)
        else:
            await Edited()(exchange)


def refused(code: int, reason: str) -> Answer:
    return Answer(code, refusal(code, reason))


# Said by an API server that is starting, of whatever is not there yet.
NOT_YET = Answer(404, b"404 page not found\n", (("Content-Type", "text/plain"),))
BUSY = Answer(
    429,
    refusal(429, "TooManyRequests"),
    (("Content-Type", "application/json"), ("Retry-After", "1")),
)
WRITES = r"/(fnopexamples|configmaps)"
# Name, action, method, path, whether watches or others alone, part of the requests.
FAULTS: tuple[tuple[str, Action, str, str, bool | None, float], ...] = (
    ("resets", Reset(), "", "", None, 0.5),
    ("hang-ups", HangUp(), "", "", None, 0.5),
    ("409", refused(409, "Conflict"), "PATCH", "/fnopexamples/", False, 0.5),
    ("429", BUSY, "", "", None, 0.6),
    ("500", refused(500, "InternalError"), "", "", None, 0.6),
    ("503", refused(503, "ServiceUnavailable"), "", "", None, 0.8),
    ("401", refused(401, "Unauthorized"), "", "", None, 0.5),
    ("403", refused(403, "Forbidden"), "", WRITES, None, 0.5),
    ("404", NOT_YET, "", "/apis/fnop.dev", None, 0.7),
    ("410", Answer(410, error_line(410, "Expired")), "GET", "", True, 0.7),
    ("black holes", Silence(), "", "", None, 0.3),
    ("slow", Late(1.5), "", "", False, 0.7),
    ("lost replies", Dropped(Reset()), "PATCH", "", False, 0.6),
    ("lost creations", Dropped(HangUp()), "POST", "", False, 0.6),
    ("silent replies", Dropped(Silence()), "PATCH", "", False, 0.2),
    ("cut replies", Cut(), "", "", False, 0.5),
)


class Faults:
    """Arms one fault after the other, with pauses."""

    def __init__(self, proxy: FaultProxy, plan: Plan) -> None:
        self.proxy = proxy
        self.counts: Counter[str] = Counter()
        self.struck = 0
        self._random = random.Random(f"{plan.seed} faults")

    async def go_on(self) -> None:
        draw = self._random
        while True:
            await asyncio.sleep(draw.uniform(0.5, 5))
            name, action, method, path, watch, part = draw.choice(FAULTS)
            sometimes = Sometimes(action, part, random.Random(draw.random()))
            self.proxy.arm(Fault(sometimes, method, path, watch=watch))
            self.counts[name] += 1
            if draw.random() < 0.3:
                ends: tuple[Action, ...] = (Reset(), HangUp(), Silence())
                self.proxy.strike(draw.choice(ends), watch=True)
                self.counts["closed watches"] += 1
            try:
                await asyncio.sleep(draw.uniform(0.5, 6))
            finally:
                self.proxy.disarm()
                self.struck += sometimes.struck


class Process:
    """The operator, which is started again whenever it ends, as a Deployment does."""

    def __init__(
        self, kubeconfig: Path, namespace: str, folder: Path, plan: Plan, number: int
    ) -> None:
        self.log = folder / f"operator-{number}.log"
        self.ledger = folder / "ledger"
        self.counts: Counter[str] = Counter()
        self.memory_mb = 0.0
        self.stops: list[float] = []
        self.violations: list[str] = []
        self._random = random.Random(f"{plan.seed} process {number}")
        self._command = [
            *dying_with_us(),
            *(sys.executable, "-m", "fnop", "run", str(OPERATOR), "--standalone"),
            *("--namespace", namespace, "--kubeconfig", str(kubeconfig)),
            *("--log-format", "full"),
        ]
        if plan.replicas > 1:
            self._command += ["--leader-elect", "--lease-namespace", namespace]
        self._recordings = folder if plan.recorded else None
        self._number = number
        self._starts = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._logged = 0

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def start(self) -> None:
        environment = {**os.environ, "CHURN_LEDGER": str(self.ledger)}
        environment["PYTHONWARNINGS"] = "always::ResourceWarning"
        self._logged = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [*self._command, *self._recording()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def _recording(self) -> list[str]:
        if self._recordings is None:
            return []
        self._starts += 1
        name = f"operator-{self._number}-{self._starts}.fnop"
        return ["--record", str(self._recordings / name)]

    async def ended(self, seconds: float) -> int | None:
        """Its exit status; None while it runs."""
        assert self._child is not None
        deadline = time.monotonic() + seconds
        while (status := self._child.poll()) is None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        return status

    def measure(self) -> None:
        with suppress(OSError, AttributeError):
            text = Path(f"/proc/{self.pid}/status").read_text()
            found = re.search(r"VmRSS:\s+(\d+) kB", text)
            assert found is not None
            self.memory_mb = max(self.memory_mb, int(found[1]) / 1024)

    async def go_on(self) -> None:
        """Kill it, stop it and let it go on, again and again."""
        draw = self._random
        verbs = (self._kill, self._pause, self._restart)
        while True:
            await self._until_it_serves()
            status = await self.ended(draw.uniform(5, 25))
            if status is None:
                self.measure()
                await draw.choice(verbs)()
            else:
                self.counts[f"exit {status}"] += 1
                self.start()

    async def _until_it_serves(self) -> None:
        """On a busy machine a start takes long: who never serves shows nothing."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and await self.ended(0.2) is None:
            with self.log.open("rb") as log:
                log.seek(self._logged)
                if b" serving " in log.read():
                    return

    async def _kill(self) -> None:
        self.counts["SIGKILL"] += 1
        os.kill(self.pid, signal.SIGKILL)
        await self.ended(STOP_SECONDS)
        await asyncio.sleep(self._random.choice((0.0, 0.0, 3.0)))
        self.start()

    async def _pause(self) -> None:
        self.counts["SIGSTOP"] += 1
        os.kill(self.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(self._random.uniform(0.2, 12))
        finally:
            os.kill(self.pid, signal.SIGCONT)

    async def _restart(self) -> None:
        """Restart in order; now and then it gets two signals, and ends at once."""
        self.counts["SIGTERM"] += 1
        await self.end(twice=self._random.random() < 0.3)
        self.start()

    async def end(self, *, twice: bool = False) -> None:
        began = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        if twice and await self.ended(1.2) is None:
            self.counts["a second SIGTERM"] += 1
            os.kill(self.pid, signal.SIGTERM)
        status = await self.ended(STOP_SECONDS)
        if status is not None and not twice:
            self.stops.append(time.monotonic() - began)
        if status is None:
            self.violations.append(f"it did not end within {STOP_SECONDS:g} s")
            self.close()
        elif status == -signal.SIGTERM and self.log.stat().st_size == self._logged:
            self.counts["ended before it began"] += 1
        elif status != 0 and not twice:
            self.violations.append(f"it ended with status {status} when asked to")

    def close(self) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.kill()
            self._child.wait()


class Outages:
    """kube-apiserver, and now and then etcd, end and are started again."""

    def __init__(self, servers: Servers, plan: Plan) -> None:
        self.servers = servers
        self.counts: Counter[str] = Counter()
        self._random = random.Random(f"{plan.seed} outages")
        self._under_way: asyncio.Task[None] | None = None

    async def go_on(self) -> None:
        draw = self._random
        while True:
            await asyncio.sleep(draw.uniform(25, 80))
            names = draw.choice(
                (("kube-apiserver",), ("kube-apiserver",), ("kube-apiserver", "etcd"))
            )
            by = draw.choice((signal.SIGTERM, signal.SIGKILL))
            self.counts[f"{' and '.join(names)} by {by.name}"] += 1
            outage = self._outage(names, by, draw.uniform(0, 4))
            self._under_way = asyncio.create_task(outage)
            await asyncio.shield(self._under_way)

    async def over(self) -> None:
        """Wait until the servers run: an outage that has begun comes to its end."""
        if self._under_way is not None:
            await self._under_way

    async def _outage(
        self, names: tuple[str, ...], by: signal.Signals, away: float
    ) -> None:
        await self.servers.aside(partial(self.servers.end, *names, by=by))
        await asyncio.sleep(away)
        await self.servers.aside(partial(self.servers.start, *reversed(names)))
