"""Simulated workload controllers reach their end at any pace, in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

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
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.thorough import examples

START = 1_700_000_000.0
NAMES = ("deployment", "replicaset", "statefulset", "job", "kubelet", "garbage")
APPS = "/apis/apps/v1/namespaces/default"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BASE = tick(empty_cluster(now=START), START)[0]

PACES = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from([On(), Slow(3), Slow(20), Stuck()]),
    max_size=4,
)


def sent(cluster: Cluster, method: str, path: str, body: Any, now: float) -> Any:
    kind = MERGE_PATCH if method == "PATCH" else "application/json"
    cluster, response, _ = answer(
        cluster, ApiRequest(method, path, (), body, kind), now
    )
    assert response.status < 400, response
    return cluster, response.body


def listed(cluster: Cluster, path: str) -> list[dict[str, Any]]:
    _, body = sent(cluster, "GET", path, None, START)
    found: list[dict[str, Any]] = body["items"]
    return found


def template(note: str, policy: str = "Always") -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "a"}, "annotations": {"note": note}},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": "c", "image": "i:1"}],
        },
    }


def workload(replicas: int, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "w"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "a"}},
            "template": template("1"),
            **spec,
        },
    }


def states(cluster: Cluster, paces: dict[str, Pace]) -> list[Cluster]:
    """All states on the way to the end; who was stuck comes free half way."""
    cluster, now, found = paced(cluster, paces), START, []
    for free in (False, True):
        if free:
            stuck = {n: On() for n, p in paces.items() if isinstance(p, Stuck)}
            cluster = paced(cluster, stuck)
        for _ in range(400):
            cluster, events = tick(cluster, now)
            found.append(cluster)
            if events or cluster.agenda:
                continue
            planned = due(cluster)
            if planned is None or planned > now + 60:
                break
            now = max(now, planned)
    return found


def ready(pods: list[dict[str, Any]]) -> int:
    return sum(
        "deletionTimestamp" not in pod["metadata"]
        and any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in pod["status"].get("conditions", ())
        )
        for pod in pods
    )


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 4), st.integers(0, 2), st.integers(0, 2), PACES)
def test_deployments_keep_their_bounds(
    replicas: int, surge: int, lost: int, paces: dict[str, Pace]
) -> None:
    if not surge and not lost:
        surge = 1
    rules = {"maxSurge": surge, "maxUnavailable": lost}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rules}
    body = workload(replicas, strategy=strategy)
    cluster, _ = sent(BASE, "POST", f"{APPS}/deployments", body, START)
    cluster = states(cluster, {})[-1]
    assert ready(listed(cluster, PODS)) == replicas
    change = {"spec": {"template": template("2")}}
    cluster, _ = sent(cluster, "PATCH", f"{APPS}/deployments/w", change, START)
    way = states(cluster, paces)
    for state in way:
        pods = listed(state, PODS)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        assert len(alive) <= replicas + surge
        assert ready(pods) >= replicas - lost
    pods = listed(way[-1], PODS)
    notes = [pod["metadata"]["annotations"]["note"] for pod in pods]
    assert notes == ["2"] * replicas


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 4), PACES)
def test_stateful_sets_keep_their_order(replicas: int, paces: dict[str, Pace]) -> None:
    body = workload(replicas, serviceName="s")
    cluster, _ = sent(BASE, "POST", f"{APPS}/statefulsets", body, START)
    way = states(cluster, paces)
    for state in way:
        pods = listed(state, PODS)
        assert [pod["metadata"]["name"] for pod in pods] == [
            f"w-{number}" for number in range(len(pods))
        ]
        assert ready(pods[:-1]) == max(0, len(pods) - 1)
    assert ready(listed(way[-1], PODS)) == replicas


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), PACES)
def test_jobs_complete(
    completions: int, parallelism: int, paces: dict[str, Pace]
) -> None:
    spec = {
        "completions": completions,
        "parallelism": parallelism,
        "template": template("1", "Never"),
    }
    body = {"metadata": {"name": "w"}, "spec": spec}
    cluster, _ = sent(BASE, "POST", JOBS, body, START)
    way = states(cluster, paces)
    for state in way:
        running = [p for p in listed(state, PODS) if p["status"]["phase"] == "Running"]
        assert len(running) <= parallelism
    (job,) = listed(way[-1], JOBS)
    assert job["status"]["succeeded"] == completions
    assert len(listed(way[-1], PODS)) == completions
