"""Clusters that several runs come to: equal ones are one value, with known steps."""

from __future__ import annotations

from typing import Any

import pytest

from fnop.interpreters import cluster as simulated
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation import known as knowing
from fnop.interpreters.simulation.known import KnownClusters

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, size: int = 1) -> ApiRequest:
    body = {"metadata": {"name": name}, "data": {"size": str(size)}}
    return ApiRequest("POST", CONFIG_MAPS, body=body)


def deployment(replicas: int) -> ApiRequest:
    labels = {"app": "a"}
    container = {"name": "main", "image": "image"}
    body = {
        "metadata": {"name": "a"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container]},
            },
        },
    }
    return ApiRequest("POST", DEPLOYMENTS, body=body)


def edit(name: str, size: int) -> ApiRequest:
    body = {"data": {"size": str(size)}}
    return ApiRequest("PATCH", f"{CONFIG_MAPS}/{name}", (), body, MERGE_PATCH)


def played(known: KnownClusters, cluster: Cluster, *requests: ApiRequest) -> Cluster:
    """The cluster after these requests, when its controllers have done their work."""
    now = EPOCH
    for each in requests:
        cluster, response, _ = known.answer(cluster, each, now)
        assert response.status < 300, response.body
        while (due := simulated.due(cluster)) is not None:
            now = max(now, due)
            cluster, _ = known.tick(cluster, now)
    return cluster


def objects_of(cluster: Cluster) -> dict[Any, Any]:
    return {resource: dict(shelf) for resource, shelf in cluster.shelves.items()}


def test_equal_pasts_lead_to_one_cluster() -> None:
    known, empty = KnownClusters(), simulated.empty_cluster("0", EPOCH)
    one = played(known, empty, config_map("a"), deployment(2))
    assert played(known, empty, config_map("a"), deployment(2)) is one
    assert ("apps", "replicasets") in one.shelves


def test_other_ways_to_the_same_objects_meet() -> None:
    """A request that changes nothing, and a controller's round without a result."""
    known, empty = KnownClusters(), simulated.empty_cluster("0", EPOCH)
    one = played(known, empty, config_map("a"), deployment(2))
    other = played(known, empty, config_map("a"), edit("a", 1), deployment(2))
    assert other is one


@pytest.mark.parametrize(
    "requests",
    [
        (config_map("a", 2), deployment(2)),
        (config_map("a"), deployment(3)),
        (deployment(2), config_map("a")),  # the same objects, in other versions
        (config_map("a"), edit("a", 2), edit("a", 1), deployment(2)),
    ],
)
def test_other_pasts_lead_to_other_clusters(requests: tuple[ApiRequest, ...]) -> None:
    known, empty = KnownClusters(), simulated.empty_cluster("0", EPOCH)
    one = played(known, empty, config_map("a"), deployment(2))
    other = played(known, empty, *requests)
    assert other is not one
    assert objects_of(other) != objects_of(one)


def test_a_slow_controller_makes_another_cluster() -> None:
    known, empty = KnownClusters(), simulated.empty_cluster("0", EPOCH)
    stuck = simulated.paced(empty, {"deployment": simulated.Stuck()})
    one = known.answer(empty, deployment(2), EPOCH)[0]
    other = known.answer(stuck, deployment(2), EPOCH)[0]
    sets = [
        any(event.resource == ("apps", "replicasets") for event in events)
        for _, events in (known.tick(one, EPOCH), known.tick(other, EPOCH))
    ]
    assert sets == [True, False]


def test_a_later_request_gets_its_own_answer() -> None:
    known, empty = KnownClusters(), simulated.empty_cluster("0", EPOCH)
    one = known.answer(empty, config_map("a"), EPOCH)
    assert known.answer(empty, config_map("a"), EPOCH) is one
    later = known.answer(empty, config_map("a"), EPOCH + 60)
    assert later[1].body != one[1].body  # its creationTimestamp


def test_steps_are_as_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowing, "KEPT_MAX", 3)  # most are forgotten meanwhile
    known, empty = KnownClusters(), simulated.empty_cluster("0", EPOCH)
    requests = config_map("a"), deployment(2), edit("a", 2), config_map("b")
    for _ in range(2):
        cluster, plain = empty, empty
        for each in requests:
            cluster, response, events = known.answer(cluster, each, EPOCH)
            plain, *same = simulated.answer(plain, each, EPOCH)
            assert [response, events] == same
            cluster, events = known.tick(cluster, EPOCH)
            plain, *same = simulated.tick(plain, EPOCH)
            assert [events] == same
        assert objects_of(cluster) == objects_of(plain)
