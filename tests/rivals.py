"""Several operators over one API server, each with clocks and a network of its own.

True time is virtual.  A host has a monotonic and a wall clock, each with an offset and
a rate, is paused for a while, cut off from the server, or dies.  What becomes of a
request is its fate: how long it takes there and back, and what of it is lost.  The
server is the simulated cluster, asked through the same translation as a real one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count, cycle
from typing import Any

from fnop.core.commands import Perform
from fnop.core.now import Now
from fnop.core.resources import Resource
from fnop.effects import Create, Effect, Outcome, Unknown, Unreachable
from fnop.effects.values import thaw_json
from fnop.interpreters.clock import EPOCH
from fnop.interpreters.cluster import Cluster, answer
from fnop.interpreters.requests import outcome_of, request_for

Interval = tuple[float, float]


@dataclass(frozen=True)
class Fate:
    """What becomes of one request; seconds of true time.

    `lost` is "" for nothing, "request" or "answer".  Of what is lost, or sent while the
    host is cut off, the host hears `back` seconds later (or never, if `silent`) that
    the server is unreachable, or that nobody knows.
    """

    out: float = 0.01
    back: float = 0.01
    lost: str = ""
    silent: bool = False


@dataclass(frozen=True)
class Host:
    """A machine: its clocks against true time, and its troubles.

    `lag` is how much longer each answer takes to get there, in seconds of true time.
    """

    name: str
    mono: float = 0.0
    wall: float = 0.0
    rate: float = 1.0
    pauses: tuple[Interval, ...] = ()
    cuts: tuple[Interval, ...] = ()
    starts: float = 0.0
    dies: float = float("inf")
    lag: float = 0.0

    def now(self, time: float) -> Now:
        passed = time * self.rate
        return Now(EPOCH + self.wall + passed, self.mono + passed)

    def time(self, mono: float) -> float:
        """The true time at which the monotonic clock surely shows this."""
        return (mono - self.mono) / self.rate + 1e-6

    def awake(self, time: float) -> float:
        """When, at the earliest, it does something that is due then."""
        for start, end in sorted(self.pauses):
            if start <= time < end:
                time = end
        return time

    def is_cut(self, time: float) -> bool:
        return any(start <= time < end for start, end in self.cuts)


@dataclass
class World:
    """True time, the server, and what happens next."""

    cluster: Cluster
    fates: list[Fate] = field(default_factory=lambda: [Fate()])
    calm_from: float = float("inf")
    time: float = 0.0
    requests: int = 0

    def __post_init__(self) -> None:
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._fates = cycle(self.fates)
        # Told of every request that was executed.
        self.witnesses: list[Callable[[Host, Effect, Outcome], None]] = []

    def at(self, time: float, action: Callable[[], None]) -> None:
        when = max(time, self.time)
        heapq.heappush(self._queue, (when, next(self._order), action))

    def on(self, host: Host, time: float, action: Callable[[], None]) -> None:
        """Do something on a host, when it is awake, if it is alive then."""

        def when_awake() -> None:
            awake = host.awake(self.time)
            if self.time >= host.dies:
                return
            if awake > self.time:
                self.at(awake, when_awake)
            else:
                action()

        self.at(time, when_awake)

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.time, _, action = heapq.heappop(self._queue)
            action()
        self.time = until

    def ask(
        self,
        host: Host,
        effect: Effect,
        resource: Resource,
        hear: Callable[[Outcome], None],
    ) -> None:
        """Send a request; the host hears of it, if it does, by `hear`."""
        self.requests += 1
        calm = self.time >= self.calm_from
        fate = Fate() if calm else next(self._fates)
        arrives = self.time + fate.out
        lag = 0.0 if calm else host.lag

        def arrive() -> None:
            if host.is_cut(self.time) or fate.lost == "request":
                if not fate.silent:
                    lost = Unreachable("no network")
                    self.on(host, self.time + fate.back, lambda: hear(lost))
                return
            outcome = self.execute(host, effect, resource)
            back = self.time + fate.back + lag
            if fate.lost == "answer" or host.is_cut(back):
                if fate.silent:
                    return
                outcome = Unknown("the answer is lost")
            self.on(host, back, lambda: hear(outcome))

        self.at(arrives, arrive)

    def execute(self, host: Host, effect: Effect, resource: Resource) -> Outcome:
        target = getattr(effect, "target", None)
        if isinstance(effect, Create):
            metadata = effect.manifest["metadata"]
            name, namespace = metadata["name"], metadata.get("namespace")
        else:
            assert target is not None
            assert target.resource == resource.key
            name, namespace = target.name, target.namespace
        command = Perform(0, effect, resource, namespace, name)
        request = request_for(command, "rivals")
        request = replace(request, body=thaw_json(request.body))
        self.cluster, response, _ = answer(self.cluster, request, EPOCH + self.time)
        outcome = outcome_of(effect, response)
        for witness in self.witnesses:
            witness(host, effect, outcome)
        return outcome


def overlaps(windows: dict[str, list[Interval]]) -> list[Any]:
    """Windows of different hosts that have a moment in common."""
    spans = sorted(
        (start, end, name) for name, found in windows.items() for start, end in found
    )
    return [
        (one, other)
        for n, one in enumerate(spans)
        for other in spans[n + 1 :]
        if other[0] < one[1] - 1e-9 and one[2] != other[2]
    ]
