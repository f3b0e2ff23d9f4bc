"""Peering of several operators: the one that serves after the last change.

Each has clocks of its own, is paused, cut off or killed; requests, answers and watches
are late or lost.
"""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import example, given, note, settings, strategies as st

from fnop.core.peers.freezing import Frozen, Serving, Why
from fnop.core.peers.memberships import Leave, Looked, Placed, has_left
from fnop.core.peers.peering import advance, begin
from fnop.core.peers.peers import Member, Mode, Peer, parse_peers, record_of, sight
from fnop.core.values.body import Body
from fnop.effects import Patch, Target
from fnop.interpreters.cluster import Cluster, answer, empty_cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.property.strategies import json_values
from tests.rivals import (
    LIFETIME,
    PEERINGS,
    PLACE,
    Bulletin,
    Fate,
    Host,
    Operator,
    World,
)
from tests.simulations import ROOT
from tests.thorough import examples

MANIFEST = ROOT / "examples" / "06-peering" / "peering.yaml"


def with_peering() -> Cluster:
    cluster = empty_cluster()
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for each in yaml.safe_load_all(MANIFEST.read_text()):
        cluster, response, _ = answer(cluster, ApiRequest("POST", crds, body=each), 0)
        assert response.status == 201, response
    body = {
        "apiVersion": PEERINGS.api_version,
        "kind": PEERINGS.kind,
        "metadata": {"name": "default"},
    }
    path = "/apis/fnop.dev/v1/clusterfnoppeerings"
    cluster, response, _ = answer(cluster, ApiRequest("POST", path, body=body), EPOCH)
    assert response.status == 201, response
    return cluster


CLUSTER = with_peering()


class KopfOperator:
    """A model of a Kopf operator's peering, by what is known of it.

    It believes wall clocks, renews its record 7.5 s before its end, removes dead ones
    at each look, and touches its own when those that keep it still should be dead.
    """

    def __init__(self, board: Bulletin, host: Host, priority: int) -> None:
        self.board, self.world, self.host = board, board.world, host
        self.priority = priority
        self.serves = True
        self.heard_at = host.starts
        self.looks = 0
        self.world.on(host, host.starts, self.start)

    @property
    def wall(self) -> float:
        return self.host.now(self.world.time).wall

    def start(self) -> None:
        self.board.operators.append(self)
        self.board.show(self, self.board.read())
        self.renew()

    def renew(self) -> None:
        self.touch()
        self.world.on(self.host, self.world.time + LIFETIME - 7.5, self.renew)

    def touch(self) -> None:
        self.write({self.host.name: record_of(self.priority, LIFETIME, self.wall)})

    def write(self, records: dict[str, Any]) -> None:
        patch = Patch(Target(PEERINGS.key, "default"), {"status": records})
        self.world.ask(self.host, patch, PEERINGS, lambda _: None)

    def feed(self, fact: Looked) -> None:
        assert fact.body is not None
        self.looks += 1
        look = self.looks
        peers, _ = parse_peers(fact.body.stanza("status"))
        deadlines = {each: (each.lastseen or 0) + each.lifetime for each in peers}
        dead = [each for each in peers if deadlines[each] <= self.wall]
        if dead:
            self.write({each.identity: None for each in dead})
        blockers = [
            each
            for each in peers
            if each not in dead
            and each.identity != self.host.name
            and each.priority >= self.priority
        ]
        self.serves = not blockers
        if blockers:
            wait = min(deadlines[each] for each in blockers) - self.wall
            self.world.on(
                self.host,
                self.world.time + wait,
                lambda: self.touch() if look == self.looks else None,
            )


# ------------------------------------------------------------------ strategies

LENGTH = 100.0
# All that a record of a dead operator, and tries at its end, may still take.
CALM = 4.0 * LIFETIME
times = st.floats(0, LENGTH, width=16)
spans = st.tuples(times, st.floats(0.5, 50, width=16)).map(
    lambda found: (found[0], min(found[0] + found[1], LENGTH))
)
fates = st.lists(
    st.builds(
        Fate,
        st.sampled_from([0.01, 0.01, 0.3, 2.0, 8.0]),
        st.sampled_from([0.01, 0.01, 0.3, 2.0, 8.0]),
        st.sampled_from(["", "", "", "request", "answer"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)
lags = st.lists(st.sampled_from([0.01, 0.01, 1.0, 15.0]), min_size=1, max_size=5)
priorities = st.sampled_from([0, 0, 1, 100])
NEVER = float("inf")


@st.composite
def hosts(
    draw: st.DrawFn,
    skews: tuple[float, ...],
    rates: tuple[float, ...] = (0.97, 1.0, 1.0, 1.03),
    synced: bool = False,
) -> list[Host]:
    return [
        Host(
            name,
            draw(st.sampled_from([0.0, 1e6, -3e5])),
            draw(st.sampled_from(skews)),
            draw(st.sampled_from(rates)),
            tuple(draw(st.lists(spans, max_size=2))),
            tuple(draw(st.lists(spans, max_size=2))),
            draw(st.sampled_from([0.0, 0.0, 1.0, 40.0])),
            draw(st.sampled_from([NEVER, NEVER, 30.0, 70.0, 98.0])),
            synced=synced,
        )
        for name in ("a", "b", "c", "d")[: draw(st.integers(1, 4))]
    ]


# Wall clocks that differ by hours, and by less than a tenth of a lifetime: who starts
# late believes them. Without a time service these rates drift apart by 6 s here.
any_hosts = hosts((0.0, 0.0, 7200.0, -7200.0, 30.0, -30.0))
near_hosts = hosts((0.0, 0.5, -0.4), synced=True)
exact_hosts = hosts((0.0, 0.5, -0.4), (1.0,))
ranks = st.lists(priorities, min_size=4, max_size=4)


def simulated(
    found: list[Host], ranks: list[int], fates: list[Fate], lags: list[float]
) -> tuple[World, Bulletin, list[Operator]]:
    world = World(CLUSTER, fates, calm_from=LENGTH)
    board = Bulletin(world, lags)
    operators = [
        Operator(board, host, rank) for host, rank in zip(found, ranks, strict=False)
    ]
    return world, board, operators


def check_quiet(operators: list[Operator]) -> None:
    """Check that the one of the highest priority serves, or none if there are two."""
    top = max((each.member.priority for each in operators), default=0)
    first = [each for each in operators if each.member.priority == top]
    note(str([(each.host.name, each.peering) for each in operators]))
    for each in operators:
        verdict = each.peering.verdict
        if first == [each]:
            assert verdict == Serving()
            continue
        assert isinstance(verdict, Frozen)
        assert verdict.why is (Why.TIED if each in first else Why.OUTRANKED)
        ahead = {
            other.host.name
            for other in operators
            if other.member.priority
            >= (each.member.priority + (0 if each in first else 1))
        } - {each.host.name}
        assert {peer.identity for peer in verdict.by} == ahead


# ------------------------------------------------------------------------ laws


@settings(max_examples=examples(25))
@given(any_hosts, ranks, fates, lags)
def test_when_all_is_quiet_only_the_highest_serves(
    found: list[Host], ranks: list[int], fates: list[Fate], lags: list[float]
) -> None:
    world, _, operators = simulated(found, ranks, fates, lags)
    world.run(LENGTH + CALM)
    check_quiet([each for each in operators if world.time < each.host.dies])


# The second renewal of `b` is lost, and lands after the third: the record that the
# other one then reads first is older than the one that was answered last.
LANDS_LATE = (
    [
        Host("a", wall=0.5, pauses=((0.0, 23.0),)),
        Host("b", wall=-0.4, rate=0.97),
    ],
    [0, 0, 0, 0],
    [
        Fate(0.01, 8.0, "", False),
        Fate(8.0, 0.01, "", False),
        Fate(0.01, 0.01, "", False),
        Fate(2.0, 0.01, "", False),
        Fate(0.01, 0.01, "", False),
    ],
    [1.0],
)


@settings(max_examples=examples(15))
@example(*LANDS_LATE)
@given(near_hosts, ranks, fates, lags)
def test_an_operator_freezes_before_its_record_dies_for_others(
    found: list[Host], ranks: list[int], fates: list[Fate], lags: list[float]
) -> None:
    """By exact clocks; an operator that saw a record change is right by any clocks."""
    world, board, operators = simulated(found, ranks, fates, lags)
    world.run(LENGTH + CALM)
    serving = {name for name, serves in board.deaths if serves}
    assert serving == set(), operators


@settings(max_examples=examples(30))
@given(st.sampled_from([0.0, 7200.0, -7200.0, 30.0]), st.floats(30, 60), st.booleans())
def test_the_dead_are_overcome_within_their_lifetime(
    skew: float, dies: float, leaves: bool
) -> None:
    world = World(CLUSTER)
    board = Bulletin(world, [0.01])
    top = Operator(board, Host("top", wall=skew, dies=NEVER if leaves else dies), 9)
    low = Operator(board, Host("low"), 1)
    if leaves:
        world.on(top.host, dies, lambda: top.feed(Leave()))
    world.run(dies - 1)
    assert (top.serves, low.serves) == (True, False)
    world.run(dies + (1 if leaves else LIFETIME + 1))
    assert low.serves
    assert has_left(top.peering) is leaves
    world.run(dies + 3 * LIFETIME)
    assert set(board.read()["status"]) == {"low"}, "the dead are tidied away"


@settings(max_examples=examples(20))
@given(exact_hosts, ranks, st.lists(st.booleans(), min_size=4, max_size=4))
def test_operators_of_both_frameworks_see_each_other(
    found: list[Host], ranks: list[int], kopf: list[bool]
) -> None:
    """The one of the highest priority serves, of whichever framework it is.

    By exact clocks: a Kopf operator takes others for dead whose clocks are behind.
    """
    world = World(CLUSTER)
    board = Bulletin(world, [0.01])
    operators = [
        (KopfOperator if is_kopf else Operator)(board, host, rank)
        for host, rank, is_kopf in zip(found, ranks, kopf, strict=False)
    ]
    world.run(LENGTH + CALM)
    alive = [
        (each, rank)
        for each, rank in zip(operators, ranks, strict=False)
        if world.time < each.host.dies
    ]
    top = max((rank for _, rank in alive), default=0)
    first = [each for each, rank in alive if rank == top]
    for each, _ in alive:
        assert each.serves is (first == [each]), each.host.name
    names = {each.host.name for each, _ in alive}
    assert not alive or set(board.read()["status"]) == names, "the dead are tidied away"


@settings(max_examples=examples(15))
@given(any_hosts, ranks, fates, lags)
def test_requests_are_few(
    found: list[Host], ranks: list[int], fates: list[Fate], lags: list[float]
) -> None:
    world, _, operators = simulated(found, ranks, fates, lags)
    world.run(LENGTH)
    during = sum(each.asks for each in operators)
    # A try each second at the worst, and one for each look at a dead peer.
    assert during <= len(operators) * (LENGTH + 10)
    world.run(LENGTH + CALM)
    before = sum(each.asks for each in operators)
    world.run(LENGTH + 2 * CALM)
    in_calm = sum(each.asks for each in operators) - before
    assert in_calm <= len(operators) * (CALM * 1.03 / (0.6 * LIFETIME) + 1)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4) | json_values)
def test_any_status_is_parsed(status: Any) -> None:
    peers, malformed = parse_peers(status)
    assert all(each.problem for each in malformed)
    if isinstance(status, dict):
        named = [each.identity for each in peers]
        named += [each.identity for each in malformed]
        assert sorted(named) == sorted(k for k, v in status.items() if v is not None)


records = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(-5, 5) | json_values,
        "lifetime": st.integers(-5, 60) | json_values,
        "lastseen": json_values | st.sampled_from(["2026-01-01T00:00:00", "nonsense"]),
    },
)


@settings(max_examples=examples(50))
@given(st.lists(st.dictionaries(st.sampled_from("abc"), records), max_size=6))
def test_any_objects_are_looked_at(statuses: list[dict[str, Any]]) -> None:
    """Records by others never stop this operator from deciding and renewing its own."""
    peering = begin(Member("me", mode=Mode.MANDATORY))
    host = Host("me")
    move = advance(peering, host.now(0), Placed((PEERINGS.key,)))
    for number, status in enumerate(statuses, start=1):
        body = {
            "metadata": {"uid": "u", "resourceVersion": str(number)},
            "status": json.loads(json.dumps(status)),
        }
        move = advance(move.peering, host.now(number), Looked(PLACE, Body(body)))
    pending = move.peering.memberships[0].pending
    assert bool(statuses) == (pending is not None)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1e9, 1e9), st.integers(0, 60))))
def test_no_clock_makes_a_peer_immortal(looks: list[tuple[float, float, int]]) -> None:
    """After the last change a peer lives for its lifetime, and no longer."""
    seen = None
    now = Host("me").now(0)
    for number, (later, skew, lifetime) in enumerate(sorted(looks)):
        now = Host("me").now(later)
        peer = Peer("x", 0, lifetime, now.wall + skew, str(number))
        seen = sight(seen, [peer], now)
        (each,) = seen
        assert each.dies <= now.mono + lifetime
        if number:
            assert each.dies == now.mono + lifetime
        assert sight(seen, [peer], Host("me").now(later + 1000)) == seen
