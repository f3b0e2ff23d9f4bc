"""The simulated cluster's controllers, as far as no real server has the same."""

from __future__ import annotations

from typing import Any

import pytest

from fnop.interpreters.cluster import (
    Cluster,
    Off,
    On,
    Pace,
    Slow,
    StoredEvent,
    Stuck,
    answer,
    due,
    empty_cluster,
    paced,
    tick,
)
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest

START = 1_700_000_000.0
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


class World:
    """A cluster and its clock."""

    def __init__(self, **paces: Pace) -> None:
        self.cluster: Cluster = paced(empty_cluster(now=START), paces)
        self.now = START

    def send(self, method: str, path: str, body: Any = None) -> Any:
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        request = ApiRequest(method, path, (), body, kind)
        self.cluster, response, _ = answer(self.cluster, request, self.now)
        assert response.status < 400, response
        return response.body

    def pace(self, **paces: Pace) -> None:
        self.cluster = paced(self.cluster, paces)

    def settle(self, until: float = float("inf")) -> None:
        """Let everything happen that happens until then."""
        for _ in range(500):
            self.cluster, events = tick(self.cluster, self.now)
            if events or self.cluster.agenda:
                continue
            planned = due(self.cluster)
            if planned is None or planned > until:
                return
            self.now = max(self.now, planned)
        raise AssertionError("it does not settle")

    def phases(self) -> list[str]:
        return [pod["status"]["phase"] for pod in self.send("GET", PODS)["items"]]


def pod(name: str, policy: str = "Always", **notes: str) -> dict[str, Any]:
    annotations = {
        f"simulated.fnop.dev/{key.replace('_', '-')}": value
        for key, value in notes.items()
    }
    return {
        "metadata": {"name": name, "annotations": annotations, "labels": {"app": "a"}},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": "c", "image": "i:1"}],
        },
    }


def deployment(replicas: int) -> dict[str, Any]:
    template = pod("x")
    del template["metadata"]["name"]
    return {
        "metadata": {"name": "d"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "a"}},
            "template": template,
        },
    }


def test_an_idle_cluster_stays_the_same_value() -> None:
    world = World()
    world.settle()
    assert tick(world.cluster, world.now)[0] is world.cluster
    assert due(world.cluster) is None


def test_unknown_controllers_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no controller nonsense; .*deployment"):
        paced(empty_cluster(), {"nonsense": Off()})


def test_a_deployment_becomes_available() -> None:
    world = World()
    world.send("POST", DEPLOYMENTS, deployment(3))
    world.settle()
    assert world.phases() == ["Running"] * 3
    status = world.send("GET", f"{DEPLOYMENTS}/d")["status"]
    assert status["availableReplicas"] == status["updatedReplicas"] == 3


def test_what_is_stuck_piles_up() -> None:
    world = World(deployment=Stuck())
    world.send("POST", DEPLOYMENTS, deployment(1))
    world.settle()
    assert world.phases() == []
    world.pace(deployment=On())
    world.settle()
    assert world.phases() == ["Running"]


def test_what_was_off_looks_at_everything() -> None:
    world = World(replicaset=Off())
    world.send("POST", DEPLOYMENTS, deployment(2))
    world.settle(world.now)
    assert world.phases() == []
    world.pace(replicaset=On())
    world.settle()
    assert world.phases() == ["Running"] * 2


def test_who_is_slow_acts_later() -> None:
    world = World(kubelet=Slow(5))
    world.send("POST", PODS, pod("a"))
    world.settle(START + 4)
    assert world.phases() == ["Pending"]
    assert due(world.cluster) == START + 5
    world.settle()
    assert world.phases() == ["Running"]


def test_a_pod_is_ready_when_it_wants_to_be() -> None:
    world = World()
    world.send("POST", PODS, pod("a", ready_after="10s", start_after="2s"))
    world.settle(START)
    assert world.phases() == ["Pending"]
    world.settle(START + 3)
    assert world.phases() == ["Running"]
    before = world.send("GET", f"{PODS}/a")["status"]["conditions"]
    world.settle()
    after = world.send("GET", f"{PODS}/a")["status"]["conditions"]
    assert {c["type"]: c["status"] for c in before}["Ready"] == "False"
    assert {c["type"]: c["status"] for c in after}["Ready"] == "True"
    assert world.now == START + 12


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
def test_a_pod_ends_as_it_says(code: str, phase: str) -> None:
    world = World()
    world.send("POST", PODS, pod("a", "Never", run_for="1m", exit_code=code))
    world.settle(START + 59)
    assert world.phases() == ["Running"]
    world.settle()
    assert world.phases() == [phase]


def test_what_crashes_is_restarted_and_given_up() -> None:
    world = World()
    world.send("POST", PODS, pod("a", "OnFailure", exit_code="1"))
    world.settle()
    (status,) = world.send("GET", f"{PODS}/a")["status"]["containerStatuses"]
    assert status["restartCount"] == 5
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"


def test_a_deleted_pod_takes_its_time() -> None:
    world = World()
    world.send("POST", PODS, pod("a", stop_after="8s"))
    world.settle()
    world.send("DELETE", f"{PODS}/a")
    world.settle(START + 7)
    assert world.phases() == ["Running"]
    world.settle()
    assert world.phases() == []
    assert world.now == START + 8


def test_a_pod_is_seen_to_stop_before_it_is_gone() -> None:
    """Clients wait for `Ready=False` of what they have deleted, then for its end."""
    world = World()
    world.send("POST", PODS, pod("a"))
    world.settle()
    world.send("DELETE", f"{PODS}/a")
    seen = []
    while events := step(world):
        seen += [(event.type, ready(event.object)) for event in events]
    assert seen == [("MODIFIED", "False"), ("DELETED", "False")]


def step(world: World) -> tuple[StoredEvent, ...]:
    """One round of the controllers: what watches of everything see of it."""
    world.cluster, events = tick(world.cluster, world.now)
    return events


def ready(pod: dict[str, Any]) -> str:
    """The status of a pod's condition Ready."""
    conditions = {each["type"]: each for each in pod["status"]["conditions"]}
    status: str = conditions["Ready"]["status"]
    return status


def test_jobs_end_and_go_after_their_time() -> None:
    world = World()
    template = pod("x", "Never")
    del template["metadata"]["name"]
    spec = {"completions": 3, "ttlSecondsAfterFinished": 50, "template": template}
    world.send("POST", JOBS, {"metadata": {"name": "j"}, "spec": spec})
    world.settle(START + 20)
    status = world.send("GET", f"{JOBS}/j")["status"]
    assert status["succeeded"] == 3
    assert status["conditions"][-1]["type"] == "Complete"
    world.settle()
    assert world.send("GET", JOBS)["items"] == []
    assert world.phases() == []


def test_a_budget_forgets_evictions_that_did_not_happen() -> None:
    world = World()
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    world.send("POST", PODS, pod("a"))
    spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": "a"}}}
    world.send("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
    world.settle()
    evicted = {"status": {"disruptedPods": {"a": "2023-11-14T22:13:20Z"}}}
    world.send("PATCH", f"{budgets}/b/status", evicted)
    world.settle(START + 119)
    assert "disruptedPods" in world.send("GET", f"{budgets}/b")["status"]
    world.settle()
    assert "disruptedPods" not in world.send("GET", f"{budgets}/b")["status"]
    assert world.now == START + 120
