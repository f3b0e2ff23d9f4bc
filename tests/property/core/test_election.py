"""Leader election of several candidates: never two leaders, and soon one.

Clocks differ by any offset, and in rate by less than the ratio of a lease's duration to
the renew deadline; processes are paused, cut off and killed; requests and answers are
late or lost.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, note, settings, strategies as st

from fnop.core.api.resources import path_of
from fnop.core.peers.election import Resign, has_resigned
from fnop.core.peers.lease import LEASES as LEASES_KEY, Resigned, Timing
from fnop.effects import Applied, Conflict, Effect, Outcome, Patch
from fnop.interpreters.cluster import answer, empty_cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.rivals import LEASES, WORK, Fate, Host, Replica, World, overlaps
from tests.thorough import examples

TIMING = Timing()
assert LEASES.key == LEASES_KEY

CLUSTER = answer(
    empty_cluster(),
    ApiRequest(
        "POST",
        "/api/v1/namespaces/default/configmaps",
        body={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "work"},
            "data": {"epoch": "-1"},
        },
    ),
    EPOCH,
)[0]


# ------------------------------------------------------------------ strategies

LENGTH, CALM = 90.0, 60.0
# The fastest clock runs 1.44 times as fast as the slowest: less than 1.5.
rates = st.sampled_from([1 / 1.2, 0.9, 1.0, 1.0, 1.1, 1.2])
offsets = st.sampled_from([0.0, -1e6, 3e5, 12.5])
times = st.floats(0, LENGTH, width=16)
spans = st.tuples(times, st.floats(0.5, 40, width=16)).map(
    lambda found: (found[0], min(found[0] + found[1], LENGTH))
)
fates = st.lists(
    st.builds(
        Fate,
        st.sampled_from([0.01, 0.01, 0.3, 4.0, 12.0, 30.0]),
        st.sampled_from([0.01, 0.01, 0.3, 4.0, 12.0]),
        st.sampled_from(["", "", "", "request", "answer"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@st.composite
def hosts(draw: st.DrawFn) -> list[Host]:
    return [
        Host(
            name,
            draw(offsets),
            draw(offsets),
            draw(rates),
            tuple(draw(st.lists(spans, max_size=2))),
            tuple(draw(st.lists(spans, max_size=2))),
            draw(st.sampled_from([0.0, 0.0, 1.0, 33.0])),
            draw(st.sampled_from([float("inf"), float("inf"), 20.0, 50.0])),
            draw(st.sampled_from([0.0, 0.0, 2.0, 4.0])),
        )
        for name in ("a", "b", "c")[: draw(st.integers(2, 3))]
    ]


def simulated(found: list[Host], fates: list[Fate]) -> tuple[World, list[Replica]]:
    """A run with troubles, and then a calm."""
    world = World(CLUSTER, fates, calm_from=LENGTH)
    replicas = [Replica(world, host, n / 2) for n, host in enumerate(found)]
    world.run(LENGTH + CALM)
    return world, replicas


# ------------------------------------------------------------------------ laws


# Its answers are late, and it is cut off right after one.
SLOW = Host("a", rate=1 / 1.2, cuts=((28.2, 90.0),), lag=2.0)


@settings(max_examples=examples(20))
@given(hosts(), fates)
@example([SLOW, Host("b", rate=1.2, starts=10.0)], [Fate()])
def test_no_two_leaders_may_start_requests_at_one_time(
    found: list[Host], fates: list[Fate]
) -> None:
    _, replicas = simulated(found, fates)
    windows = {each.host.name: each.windows for each in replicas}
    note(str(windows))
    assert overlaps(windows) == []
    # A later leader has the greater epoch.
    order = sorted(
        (start, each.host.name, epoch)
        for each in replicas
        for (start, _), epoch in zip(each.windows, each.epochs, strict=True)
    )
    for (_, one, before), (_, other, after) in pairwise(order):
        assert after > before if one != other else after >= before


# Manual changes of the Lease: `kubectl edit`, `kubectl delete`.
BY_HAND = {
    "emptied": ("PATCH", {"spec": None}),
    "without a holder": ("PATCH", {"spec": {"holderIdentity": ""}}),
    "deleted": ("DELETE", None),
}


@settings(max_examples=examples(10))
@given(st.lists(times, min_size=1, max_size=3), st.sampled_from(sorted(BY_HAND)))
def test_who_empties_the_lease_gets_no_two_leaders(
    moments: list[float], act: str
) -> None:
    """All candidates have seen its holder before."""
    world = World(CLUSTER)
    done: list[int] = []
    replicas = [Replica(world, Host(name), n / 2) for n, name in enumerate("abc")]
    method, body = BY_HAND[act]
    path = path_of(LEASES, "default", "operator")

    def by_hand() -> None:
        request = ApiRequest(method, path, (), body, MERGE_PATCH)
        world.cluster, found, _ = answer(world.cluster, request, EPOCH + world.time)
        done.append(found.status)

    for moment in moments:
        world.at(8.0 + moment, by_hand)
    world.run(LENGTH + CALM)
    assert 200 in done
    windows = {each.host.name: each.windows for each in replicas}
    note(str(windows))
    assert overlaps(windows) == []
    assert sum(each.may_start for each in replicas) == 1


@settings(max_examples=examples(15))
@given(hosts(), fates)
def test_a_late_request_of_an_old_leader_does_no_harm(
    found: list[Host], fates: list[Fate]
) -> None:
    """It may arrive when another leads, but not on top of what that one has done."""
    world = World(CLUSTER, fates, calm_from=LENGTH)
    written: list[int] = []

    def witness(_: Host, effect: Effect, outcome: Outcome) -> None:
        if isinstance(effect, Patch) and effect.target == WORK:
            assert isinstance(outcome, (Applied, Conflict)), outcome
            if isinstance(outcome, Applied):
                written.append(int(effect.merge["data"]["epoch"]))

    world.witnesses.append(witness)
    for number, host in enumerate(found):
        Replica(world, host, number / 2)
    world.run(LENGTH + CALM)
    assert written == sorted(written)


@settings(max_examples=examples(20))
@given(hosts(), fates)
def test_soon_after_the_troubles_one_leads(
    found: list[Host], fates: list[Fate]
) -> None:
    world, replicas = simulated(found, fates)
    alive = [each for each in replicas if world.time < each.host.dies]
    note(str([each.election for each in replicas]))
    leaders = [each for each in alive if each.may_start]
    assert len(leaders) == (1 if alive else 0)
    for each in alive:
        if each not in leaders:
            assert each.election.lease is not None
            assert each.election.lease.holder == leaders[0].host.name


@settings(max_examples=examples(12))
@given(hosts(), fates)
def test_requests_are_few(found: list[Host], fates: list[Fate]) -> None:
    """A write in each retry period, and hardly two looks."""
    _, replicas = simulated(found, fates)
    for each in replicas:
        periods = (LENGTH + CALM) * each.host.rate / TIMING.retry_seconds
        assert each.asks <= 2 * periods + 5


@settings(max_examples=examples(12))
@given(hosts(), fates, times)
def test_who_resigns_leaves_the_lease_to_the_next(
    found: list[Host], fates: list[Fate], time: float
) -> None:
    world = World(CLUSTER, fates, calm_from=LENGTH)
    replicas = [Replica(world, host, n / 2) for n, host in enumerate(found)]
    first = replicas[0]
    world.on(first.host, max(time, first.host.starts), lambda: first.feed(Resign()))
    world.run(LENGTH + CALM)
    assert overlaps({each.host.name: each.windows for each in replicas}) == []
    if first.host.dies > world.time:
        assert isinstance(first.election.verdict, Resigned)
        assert has_resigned(first.election)
        assert not first.may_start
    others = [each for each in replicas[1:] if world.time < each.host.dies]
    assert sum(each.may_start for each in others) == (1 if others else 0)


def test_without_troubles_the_one_who_resigns_is_followed_in_a_moment() -> None:
    world = World(CLUSTER)
    one, other = (Replica(world, Host(name)) for name in ("a", "b"))
    world.run(20)
    assert one.may_start
    world.on(one.host, 20, lambda: one.feed(Resign()))
    world.run(20 + TIMING.retry_seconds * 2.2 + 0.1)
    assert other.may_start
    assert other.epochs[-1] == one.epochs[-1] + 1


@pytest.mark.parametrize(("rate", "overlap"), [(1.4, False), (2.0, True)])
def test_the_laws_end_where_clocks_run_too_differently(
    rate: float, overlap: bool
) -> None:
    """The simulation can see two leaders if the protocol does not prevent them."""
    world = World(CLUSTER)
    slow = Host("slow", cuts=((30.0, 90.0),))
    fast = Host("fast", rate=rate, starts=5.0)
    replicas = [Replica(world, slow), Replica(world, fast)]
    world.run(60)
    found = overlaps({each.host.name: each.windows for each in replicas})
    assert bool(found) is overlap
    assert replicas[1].may_start
