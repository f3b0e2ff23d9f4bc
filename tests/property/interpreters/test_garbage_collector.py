"""The simulated garbage collector agrees with a naive reading of its rules."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings, strategies as st

from fnop.interpreters.cluster import (
    Cluster,
    On,
    Pace,
    Slow,
    Stuck,
    answer,
    due,
    empty_cluster,
    paced,
    tick,
)
from fnop.interpreters.runtime.protocol import JSON, MERGE_PATCH, ApiRequest
from tests.thorough import examples

START = 1_700_000_000.0
MAPS = "/api/v1/namespaces/default/configmaps"
BASE = tick(empty_cluster(now=START), START)[0]
SIZE = 4
POLICIES = ("Background", "Foreground", "Orphan")

# The owners (circles, diamonds and all), and whether the owner has to wait. An object
# that owns and blocks itself waits forever, in Kubernetes, too: there is none here.
GRAPHS = st.dictionaries(
    st.sampled_from([(a, b) for a in range(SIZE) for b in range(SIZE) if a != b]),
    st.booleans(),
    max_size=9,
)
DELETIONS = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.sampled_from(POLICIES)),
    min_size=1,
    max_size=3,
)
PACES = st.sampled_from([On(), Slow(3), Stuck()])


def sent(cluster: Cluster, method: str, path: str, body: Any = None) -> Any:
    kind = MERGE_PATCH if method == "PATCH" else JSON
    cluster, response, _ = answer(
        cluster, ApiRequest(method, path, (), body, kind), START
    )
    return cluster, response


def planted(edges: dict[tuple[int, int], bool]) -> Cluster:
    """Config maps m0, m1, … in which an edge (a, b) means that a owns b."""
    cluster, uids = BASE, []
    for number in range(SIZE):
        body = {"metadata": {"name": f"m{number}"}}
        cluster, response = sent(cluster, "POST", MAPS, body)
        uids.append(response.body["metadata"]["uid"])
    for dependent in range(SIZE):
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": f"m{owner}",
                "uid": uids[owner],
                "blockOwnerDeletion": blocks,
            }
            for (owner, other), blocks in sorted(edges.items())
            if other == dependent
        ]
        if references:
            change = {"metadata": {"ownerReferences": references}}
            path = f"{MAPS}/m{dependent}"
            cluster, response = sent(cluster, "PATCH", path, change)
            assert response.status == 200
    return settled(cluster)


def settled(cluster: Cluster) -> Cluster:
    now = START
    for _ in range(200):
        cluster, events = tick(cluster, now)
        if events or cluster.agenda:
            continue
        planned = due(cluster)
        if planned is None:
            return cluster
        now = max(now, planned)
    raise AssertionError("it does not settle")


def removed(cluster: Cluster, number: int, policy: str) -> Cluster:
    options = {"propagationPolicy": policy}
    after: Cluster
    after, _ = sent(cluster, "DELETE", f"{MAPS}/m{number}", options)
    return after


def left(cluster: Cluster) -> dict[str, set[str]]:
    """The objects that are there, with the names of their owners."""
    _, response = sent(cluster, "GET", MAPS)
    return {
        obj["metadata"]["name"]: {
            reference["name"]
            for reference in obj["metadata"].get("ownerReferences", ())
        }
        for obj in response.body["items"]
        if obj["metadata"]["name"].startswith("m")
    }


def expected(
    edges: dict[tuple[int, int], bool], deletions: list[tuple[int, str]]
) -> dict[str, set[str]]:
    """One deletion after the other: who has had owners, and has none left, goes."""
    owners: dict[int, set[int]] = {number: set() for number in range(SIZE)}
    for owner, dependent in edges:
        owners[dependent].add(owner)
    for number, policy in deletions:
        if number not in owners:
            continue
        if policy == "Orphan":
            for each in owners.values():
                each.discard(number)
        gone = {number}
        while gone:
            for lost in gone:
                owners.pop(lost, None)
            touched = {n for n, each in owners.items() if each & gone}
            for left_behind in touched:
                owners[left_behind] -= gone
            gone = {n for n in touched if not owners[n]}
    return {f"m{n}": {f"m{each}" for each in owners[n]} for n in owners}


@settings(max_examples=examples(40), deadline=None)
@given(GRAPHS, DELETIONS)
@example({(0, 1): True, (1, 0): True}, [(0, "Foreground")])
@example({(0, 1): True, (1, 2): True, (2, 0): True}, [(1, "Foreground")])
def test_who_has_lost_all_owners_goes(
    edges: dict[tuple[int, int], bool], deletions: list[tuple[int, str]]
) -> None:
    cluster = planted(edges)
    for number, policy in deletions:
        cluster = settled(removed(cluster, number, policy))
    assert left(cluster) == expected(edges, deletions)


@settings(max_examples=examples(30), deadline=None)
@given(GRAPHS, st.integers(0, SIZE - 1), st.sampled_from(POLICIES), PACES)
def test_a_slow_collector_only_takes_longer(
    edges: dict[tuple[int, int], bool], number: int, policy: str, pace: Pace
) -> None:
    cluster = removed(paced(planted(edges), {"garbage": pace}), number, policy)
    cluster = settled(paced(settled(cluster), {"garbage": On()}))
    assert left(cluster) == expected(edges, [(number, policy)])
