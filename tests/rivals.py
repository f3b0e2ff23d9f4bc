"""Several operators over one API server, each with clocks and a network of its own.

True time is virtual.  A host has a monotonic and a wall clock, each with an offset and
a rate, is paused for a while, cut off from the server, or dies.  What becomes of a
request is its fate: how long it takes there and back, and what of it is lost.  The
server is the simulated cluster, asked through the same translation as a real one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any, Protocol

from fnop.core.api.resources import Resource, path_of
from fnop.core.peers import election, lease, memberships, peering
from fnop.core.peers.asking import PeeringAsk, PeeringPlace
from fnop.core.peers.freezing import Serving
from fnop.core.peers.peers import Member
from fnop.core.seam.commands import Perform, Say
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import (
    Applied,
    Create,
    Effect,
    Freeze,
    Get,
    Outcome,
    Patch,
    Resume,
    Target,
    Unknown,
    Unreachable,
)
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters.cluster import Cluster, answer
from fnop.interpreters.runtime.answers import outcome_of
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.runtime.requests import request_for

Interval = tuple[float, float]

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
MAPS = Resource("", "v1", "configmaps", "ConfigMap")
# What leaders work on: they write their epoch into it.
WORK = Target(MAPS.key, "work", "default")

PEERINGS = Resource(
    "fnop.dev", "v1", "clusterfnoppeerings", "ClusterFnopPeering", namespaced=False
)
PLACE = PeeringPlace(PEERINGS.key, None)
# Of the records of peers, in seconds.
LIFETIME = 20


@dataclass(frozen=True)
class Fate:
    """The fate of one request; seconds of true time.

    `lost` is "" for nothing, "request" or "answer".  If a message is lost, or sent
    while the host is cut off, the host learns `back` seconds later (or never, if
    `silent`) that the server is unreachable, or that the outcome is unknown.
    """

    out: float = 0.01
    back: float = 0.01
    lost: str = ""
    silent: bool = False


@dataclass(frozen=True)
class Host:
    """A machine: its clocks against true time, and its troubles.

    `lag` is how much longer each answer takes to get there, in seconds of true time.
    A time service keeps the wall clock of a `synced` host at its offset.
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
    synced: bool = False

    def now(self, time: float) -> Now:
        passed = time * self.rate
        wall = EPOCH + self.wall + (time if self.synced else passed)
        return Now(wall, self.mono + passed)

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
        # Called with every request that was executed.
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
        outcome = outcome_of(effect, self.reply(request))
        for witness in self.witnesses:
            witness(host, effect, outcome)
        return outcome

    def reply(self, request: ApiRequest) -> ApiResponse:
        """The server's answer to a request that has arrived."""
        self.cluster, response, _ = answer(self.cluster, request, EPOCH + self.time)
        return response


# ----------------------------------------------------------------- candidates


class Replica:
    """A candidate on a host; while it leads, it works."""

    def __init__(
        self, world: World, host: Host, jitter: float = 0.5, namespace: str = "default"
    ) -> None:
        self.world, self.host, self.jitter = world, host, jitter
        candidate = lease.Candidate(host.name, namespace, "operator")
        self.election = election.begin(candidate)
        # When it was allowed to start requests, in true time.
        self.windows: list[Interval] = []
        self.epochs: list[int] = []
        self.says: list[Say] = []
        self.asks = 0
        self._alarm: float | None = None
        self._works = False
        world.on(host, host.starts, lambda: self.feed(AlarmRang()))

    def feed(self, fact: election.ElectionFact) -> None:
        now = self.host.now(self.world.time)
        self.election, ask, verdict, wake, says = election.advance(
            self.election, now, fact, self.jitter
        )
        self.says += says
        assert wake is None or wake > now.mono, "it does not ring without an end"
        assert ask is None or self.election.pending is not None
        self.see(verdict)
        if ask is not None:
            self.asks += 1
            number = ask.number
            self.world.ask(
                self.host,
                ask.effect,
                LEASES,
                lambda outcome: self.feed(Answered(number, outcome)),
            )
        if wake is not None and wake != self._alarm:
            self._alarm = wake
            self.world.on(self.host, self.host.time(wake), lambda: self.ring(wake))

    def ring(self, wake: float) -> None:
        if wake == self._alarm:
            self._alarm = None
            self.feed(AlarmRang())

    def see(self, verdict: Any) -> None:
        """Note until when this verdict allows requests, unless the next comes first."""
        time = self.world.time
        if self.windows and self.windows[-1][1] > time:
            start, _ = self.windows.pop()
            self.windows.append((start, time))
        if isinstance(verdict, lease.Leading):
            self.epochs.append(verdict.epoch)
            self.windows.append((time, self.host.time(verdict.until)))
            if not self._works:
                self._works = True
                self.work()

    @property
    def may_start(self) -> bool:
        return election.may_start(self.election, self.host.now(self.world.time))

    def work(self) -> None:
        """Read the object, and write the own epoch into that version of it."""
        if not self.may_start:
            self._works = False
            return
        self.world.ask(self.host, Get(WORK), MAPS, self.worked_on)
        later = self.world.time + 1.0 / self.host.rate
        self.world.on(self.host, later, self.work)

    def worked_on(self, outcome: Outcome) -> None:
        verdict = self.election.verdict
        if not isinstance(outcome, Applied) or not self.may_start:
            return
        assert isinstance(verdict, lease.Leading)
        version = outcome.object["metadata"]["resourceVersion"]
        change = {
            "metadata": {"resourceVersion": version},
            "data": {"epoch": str(verdict.epoch)},
        }
        self.world.ask(self.host, Patch(WORK, change), MAPS, lambda _: None)


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


# ---------------------------------------------------------------------- peers


class Peered(Protocol):
    """An operator that watches the peering object."""

    host: Host
    heard_at: float
    serves: bool

    def feed(self, fact: memberships.Looked) -> None: ...


class Bulletin:
    """The peering object, and the watches of it."""

    def __init__(self, world: World, lags: list[float]) -> None:
        self.world = world
        self.operators: list[Peered] = []
        self.lags = lags
        # The peers that another one found dead, and whether they served when that was
        # read.
        self.deaths: list[tuple[str, bool]] = []
        self._sent = 0
        world.witnesses.append(self.changed)

    def read(self) -> dict[str, Any]:
        response = self.world.reply(
            ApiRequest("GET", path_of(PEERINGS, None, "default"))
        )
        found: dict[str, Any] = response.body
        return found

    def changed(self, _: Host, effect: Effect, outcome: Outcome) -> None:
        if isinstance(outcome, Applied):
            for each in self.operators:
                self.show(each, outcome.object)

    def show(self, operator: Peered, body: dict[str, Any]) -> None:
        """Let a watch show a version, some time later, in order."""
        time = self.world.time
        self._sent += 1
        calm = time >= self.world.calm_from
        lag = 0.01 if calm else self.lags[self._sent % len(self.lags)]
        # Who is cut off hears of it when it lists again.
        cuts = [end for start, end in operator.host.cuts if start <= time < end]
        cut = max(cuts, default=time)
        operator.heard_at = max(operator.heard_at, cut + lag)
        self.world.on(
            operator.host,
            operator.heard_at,
            lambda: operator.feed(memberships.Looked(PLACE, Body(body))),
        )


class Operator:
    """An operator on a host, and its messages."""

    def __init__(self, board: Bulletin, host: Host, priority: int) -> None:
        self.board, self.world, self.host = board, board.world, host
        self.member = Member(host.name, priority, LIFETIME)
        self.peering = peering.begin(self.member)
        self.serves = False
        # Since when, and until when at the most, it served by what it knew; true times.
        self.served: list[Interval] = []
        self.dead: set[str] = set()
        self.heard_at = host.starts
        self.asks = 0
        self.says: list[Say] = []
        self._alarm: float | None = None
        self.world.on(host, host.starts, self.start)

    def start(self) -> None:
        self.board.operators.append(self)
        self.feed(memberships.Placed((PEERINGS.key,)))
        self.board.show(self, self.board.read())

    def feed(self, fact: memberships.PeeringFact) -> None:
        now = self.host.now(self.world.time)
        self.peering, asks, verdict, effect, wake, says = peering.advance(
            self.peering, now, fact
        )
        self.says += says
        self.look_for_the_dead()
        # The effects follow the verdict, which is reported when it changes.
        match effect:
            case Freeze():
                assert self.serves
                self.serves = False
            case Resume():
                assert not self.serves
                self.serves = True
            case None:
                pass
        self.note_service()
        if not self.peering.is_leaving:
            assert self.serves == isinstance(verdict, Serving)
        assert wake is None or wake > now.mono, "it does not ring without an end"
        for ask in asks:
            self.asks += 1
            self.send(ask)
        if wake is not None and wake != self._alarm:
            self._alarm = wake
            self.world.on(self.host, self.host.time(wake), lambda: self.ring(wake))

    def send(self, ask: PeeringAsk) -> None:
        def hear(outcome: Outcome) -> None:
            self.feed(Answered(ask.number, outcome))

        self.world.ask(self.host, ask.effect, PEERINGS, hear)

    def ring(self, wake: float) -> None:
        if wake == self._alarm:
            self._alarm = None
            self.feed(AlarmRang())

    def look_for_the_dead(self) -> None:
        dead = {
            seen.peer.identity: self.host.time(membership.looked_at)
            for membership in self.peering.memberships
            for seen in membership.seen or ()
            if seen.dies <= membership.looked_at
        }
        for each in self.board.operators:
            name = each.host.name
            if isinstance(each, Operator) and name in dead.keys() - self.dead:
                self.board.deaths.append((name, each.served_at(dead[name])))
        self.dead = set(dead)

    def note_service(self) -> None:
        """Note until when it serves unless it hears of something: also while paused."""
        time, until = self.world.time, self.world.time
        membership = self.peering.memberships[0] if self.peering.memberships else None
        if self.serves and membership is not None and membership.good_until is not None:
            until = min(self.host.time(membership.good_until), self.host.dies)
        self.served.append((time, until))

    def served_at(self, time: float) -> bool:
        before = [until for since, until in self.served if since <= time]
        return bool(before) and time < before[-1]
