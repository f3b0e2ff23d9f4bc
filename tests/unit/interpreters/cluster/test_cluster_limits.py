"""The simulated cluster's memory is limited by bytes."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fnop.effects.structs import replace
from fnop.interpreters.cluster import (
    Cluster,
    StoredEvent,
    answer,
    backlog,
    empty_cluster,
)
from fnop.interpreters.cluster.apply.patch import strategically_merged
from fnop.interpreters.cluster.storage import limits, store
from fnop.interpreters.cluster.storage.store import size_of
from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
)
from tests.effort import calls_in

MAPS = "/api/v1/namespaces/default/configmaps"
NOW = 1_700_000_000.0
EMPTY = empty_cluster()


def ask(
    cluster: Cluster, method: str, path: str, body: Any = None
) -> tuple[Cluster, ApiResponse, tuple[StoredEvent, ...]]:
    kind = MERGE_PATCH if method == "PATCH" else "application/json"
    return answer(cluster, ApiRequest(method, path, (), body, kind), NOW)


def config_map(name: str, size: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": "x" * size},
    }


def weighed(cluster: Cluster) -> int:
    return sum(
        size_of(obj) for shelf in cluster.shelves.values() for obj in shelf.values()
    )


writes = st.tuples(
    st.sampled_from(("POST", "PATCH", "DELETE")),
    st.sampled_from("abc"),
    st.integers(0, 50),
)


@given(st.lists(writes, max_size=12))
def test_the_cluster_knows_how_large_it_is(steps: list[tuple[str, str, int]]) -> None:
    cluster = EMPTY
    for method, name, size in steps:
        path = MAPS if method == "POST" else f"{MAPS}/{name}"
        body = None if method == "DELETE" else config_map(name, size)
        cluster, _, _ = ask(cluster, method, path, body)
        assert cluster.size == weighed(cluster)


@given(st.lists(st.integers(0, 3000), max_size=30))
def test_the_history_is_bounded_by_bytes(sizes: list[int]) -> None:
    bound = 20_000
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "HISTORY_BYTES", bound)
        cluster, _, _ = ask(EMPTY, "POST", MAPS, config_map("a", 0))
        for size in sizes:
            patch = {"data": {"text": "y" * size}}
            cluster, _, _ = ask(cluster, "PATCH", f"{MAPS}/a", patch)
        events = [*cluster.history.earlier, *cluster.history.recent]
        held = sum(
            size_of(each.object) + (size_of(each.previous) if each.previous else 0)
            for each in events
        )
        largest = 2 * max(map(size_of, (each.object for each in events)))
        assert held <= bound + largest
        assert store.events_after(cluster, cluster.history.floor) == events
        if cluster.history.floor > EMPTY.version:
            assert store.events_after(cluster, EMPTY.version) is None
            query = (("watch", "1"), ("resourceVersion", str(EMPTY.version)))
            found = backlog(cluster, ApiRequest("GET", MAPS, query), NOW)
            assert not isinstance(found, ApiResponse)
            assert [each.object["code"] for each in found] == [410]


def test_the_last_change_is_always_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "HISTORY_BYTES", 0)
    cluster, _, _ = ask(EMPTY, "POST", MAPS, config_map("a", 100))
    cluster, _, (event,) = ask(cluster, "PATCH", f"{MAPS}/a", {"data": {"b": "c"}})
    assert store.events_after(cluster, event.version - 1) == [event]


def test_a_full_cluster_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """etcd's quota: what is there can be made smaller, and be deleted."""
    full, _, _ = ask(EMPTY, "POST", MAPS, config_map("a", 5000))
    monkeypatch.setattr(limits, "QUOTA_BYTES", full.size)
    after, response, events = ask(full, "POST", MAPS, config_map("b", 10))
    assert (response.status, events) == (500, ())
    assert response.body["message"] == "etcdserver: mvcc: database space exceeded"
    assert after is full
    larger = {"data": {"text": "x" * 6000}}
    assert ask(full, "PATCH", f"{MAPS}/a", larger)[1].status == 500
    smaller, response, _ = ask(full, "PATCH", f"{MAPS}/a", {"data": {"text": "x"}})
    assert response.status == 200
    assert ask(smaller, "POST", MAPS, config_map("b", 10))[1].status == 201
    assert ask(full, "DELETE", f"{MAPS}/a")[1].status == 200


def test_a_snapshot_stays_what_it_was() -> None:
    one, _, _ = ask(EMPTY, "POST", MAPS, config_map("a", 10))
    kept = replace(one)
    ask(one, "DELETE", f"{MAPS}/a")
    assert (one.size, one.history) == (kept.size, kept.history)


def test_a_definition_that_fills_objects_is_counted() -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema: dict[str, Any] = {"type": "object"}
    version = {"name": "v1", "served": True, "storage": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bigs.big.dev"},
        "spec": {
            "group": "big.dev",
            "scope": "Cluster",
            "names": {"plural": "bigs", "kind": "Big"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    cluster, response, _ = ask(EMPTY, "POST", path, definition)
    assert response.status == 201
    big = {"apiVersion": "big.dev/v1", "kind": "Big", "metadata": {"name": "a"}}
    cluster, response, _ = ask(cluster, "POST", "/apis/big.dev/v1/bigs", big)
    assert response.status == 201
    filled = {"text": {"type": "string", "default": "x" * 500}}
    schema = {"type": "object", "properties": filled}
    versions = [{**version, "schema": {"openAPIV3Schema": schema}}]
    change = {"spec": {"versions": versions}}
    after, response, _ = ask(cluster, "PATCH", f"{path}/bigs.big.dev", change)
    assert response.status == 200
    assert after.size > cluster.size + 500
    assert after.size == weighed(after)


# -------------------------------------------------------------- time of one request


def cpu_seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def named(prefix: str, count: int) -> list[dict[str, Any]]:
    return [{"name": f"{prefix}{number}"} for number in range(count)]


def test_a_strategic_merge_of_long_lists_is_quick() -> None:
    count = 2_000
    texts = [f"x/{number}" for number in range(count)]
    old = {"env": named("a", count), "finalizers": texts}
    patch = {
        "env": named("b", count),
        "$setElementOrder/env": named("b", count) + named("a", count),
        "$deleteFromPrimitiveList/finalizers": texts[1:],
    }
    found: list[Any] = []
    calls = calls_in(lambda: found.append(strategically_merged(old, patch)))
    assert calls < 100 * count, "no item is compared with each other one"
    assert found[0]["env"] == named("b", count) + named("a", count)
    assert found[0]["finalizers"] == ["x/0"]


def test_many_owners_are_read_quickly() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
    owners = [{**owner, "uid": f"{number}"} for number in range(8_000)]
    body = config_map("a", 1)
    body["metadata"]["ownerReferences"] = owners + owners
    answers: list[Any] = []
    seconds = cpu_seconds(lambda: answers.append(ask(EMPTY, "POST", MAPS, body)))
    assert seconds < 2
    assert answers[0][1].body["metadata"]["ownerReferences"] == owners


def test_an_apply_takes_as_long_as_its_list() -> None:
    def seconds(count: int) -> float:
        spec = {"containers": [{"name": "a", "image": "b", "env": named("v", count)}]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a"},
            "spec": spec,
        }
        path = "/api/v1/namespaces/default/pods/a"
        query = (("fieldManager", "x"),)
        request = ApiRequest("PATCH", path, query, pod, APPLY_PATCH)
        cluster, _, _ = answer(EMPTY, request, NOW)
        return min(cpu_seconds(lambda: answer(cluster, request, NOW)) for _ in "12")

    assert seconds(12_000) < 9 * seconds(3_000)
