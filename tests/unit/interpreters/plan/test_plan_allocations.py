"""`fnop plan`: values that the API server or a controller decides are unknown."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.adapters.reports.plan_report import as_json, as_lines
from fnop.core.handlers.declare.registry import Registry
from fnop.effects.structs import replace
from fnop.interpreters.cluster import Cluster, answer, empty_cluster, tick
from fnop.interpreters.plan.facts import Plan
from fnop.interpreters.plan.fields import changed_fields
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.plans import Served, planned, planner_of
from tests.simulations import Scenario, example

KIND = "fnopexamples"
NOW = 1_700_000_000.0
UNKNOWN = "(known once it is written)"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def plan_of(registry: Registry, run: Scenario, rounds: int = 1) -> Plan:
    wall = run.clock.now().wall
    served = Served(run.cluster, wall)
    return planned(planner_of(registry, served, wall), rounds, dry_run=True)


def service(name: str, /, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "web", "port": 80, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": ports, **spec},
    }


def change_of(plan: Plan, kind: str) -> dict[str, Any]:
    (found,) = (each for each in as_json(plan)["changes"] if each["kind"] == kind)
    return dict(found)


def test_addresses_and_ports_of_a_service_are_unknown(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns=["services"], registry=registry)
    def keep(name: str, children: Any, **_: Any) -> fnop.Desired:
        kind = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
        spec = children["services"].get(name, {}).get("spec", {})
        status = {"at": spec.get("clusterIP", ""), "type": spec.get("type", "")}
        return fnop.desired([service(name, **kind)], status=status)

    plan = plan_of(registry, Scenario(registry, [example("a")]))
    made = change_of(plan, "Service")
    assert made["after_unknown"]["spec"] == {
        "clusterIP": True,
        "clusterIPs": True,
        "healthCheckNodePort": True,
        "ports": [{"nodePort": True}],
    }
    assert made["after"]["spec"]["ports"] == [
        {"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80}
    ]
    lines = [each.strip() for each in as_lines(plan)]
    for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        assert f"spec.{name}: {UNKNOWN}" in lines
    # What follows from them is not known either.
    status = change_of(plan, "FnopExample")
    assert status["after_unknown"]["status"]["at"] is True
    assert status["after"]["status"]["type"] == "LoadBalancer"
    assert plan.tried == ()


def test_a_port_that_an_update_allocates_is_unknown(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, **_: Any) -> None:
        await fnop.patch(service(name), spec={"type": "NodePort"})

    run = Scenario(registry, [example("a"), service("a")])
    present = run.get("services", "a")
    assert present is not None
    made = change_of(plan_of(registry, run), "Service")
    assert made["after_unknown"]["spec"] == {"ports": [{"nodePort": True}]}
    assert made["after"]["spec"]["clusterIP"] == present["spec"]["clusterIP"]


def test_parts_of_a_new_list_that_are_unknown_are_marked() -> None:
    ports = [{"port": 80, "nodePort": 30_001}]
    (field,) = changed_fields(None, {"ports": ports}, {"ports": [{"nodePort": True}]})
    assert field.new == [{"port": 80, "nodePort": UNKNOWN}]
    assert ports[0]["nodePort"] == 30_001


# What a simulated cluster makes up about these: the paths that may differ in another
# variant of it, and have to.
WORKLOADS = {
    "deployments": "apps/v1",
    "statefulsets": "apps/v1",
    "daemonsets": "apps/v1",
    "jobs": "batch/v1",
}
KINDS = {
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
    "jobs": "Job",
}


def workload(plural: str) -> dict[str, Any]:
    labels = {"app": plural}
    pod = {"containers": [{"name": "c", "image": "i"}]}
    spec: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    if plural == "jobs":
        pod["restartPolicy"] = "Never"  # type: ignore[assignment]
    else:
        spec["selector"] = {"matchLabels": labels}
    if plural == "statefulsets":
        spec["serviceName"] = "s"
    return {
        "apiVersion": WORKLOADS[plural],
        "kind": KINDS[plural],
        "metadata": {"name": plural, "namespace": "default"},
        "spec": spec,
    }


def populated(seed: str, variant: int) -> Cluster:
    """A cluster in which controllers have brought up workloads."""
    cluster = replace(empty_cluster(seed, NOW), variant=variant)
    now = NOW
    for plural, group in WORKLOADS.items():
        path = f"/apis/{group}/namespaces/default/{plural}"
        cluster, response, _ = answer(
            cluster, ApiRequest("POST", path, (), workload(plural)), now
        )
        assert response.status == 201, response.body
    path = "/api/v1/namespaces/default/services"
    body = service("s", selector={"app": "deployments"})
    cluster, _, _ = answer(cluster, ApiRequest("POST", path, (), body), now)
    for _ in range(200):
        now += 1
        cluster, _ = tick(cluster, now)
    return cluster


def told(cluster: Cluster, resource: tuple[str, str]) -> list[dict[str, Any]]:
    return [*cluster.shelves[resource].values()]


def test_another_variant_makes_up_other_nodes_addresses_and_hashes() -> None:
    one, other = populated("a", 0), populated("a", 1)

    def made_up(cluster: Cluster) -> dict[str, set[Any]]:
        pods = told(cluster, ("", "pods"))
        maps = told(cluster, ("", "configmaps"))
        return {
            "nodes": {
                each["metadata"]["name"] for each in told(cluster, ("", "nodes"))
            },
            "bound": {each["spec"]["nodeName"] for each in pods},
            "hosts": {each["status"].get("hostIP") for each in pods},
            "hashes": {
                each["metadata"]["labels"]["pod-template-hash"]
                for each in told(cluster, ("apps", "replicasets"))
            },
            "revisions": {
                each["metadata"]["name"]
                for each in told(cluster, ("apps", "controllerrevisions"))
            },
            "revision": {
                each["metadata"]["labels"].get("controller-revision-hash")
                for each in pods
            }
            - {None},
            "addresses": {
                each["spec"]["clusterIP"]
                for each in told(cluster, ("", "services"))
                if each["metadata"]["name"] == "s"
            },
            "certificates": {
                each["data"]["ca.crt"] for each in maps if "ca.crt" in each["data"]
            },
        }

    mine, theirs = made_up(one), made_up(other)
    assert all(mine.values()), mine
    for name, values in mine.items():
        assert not values & theirs[name], name
    assert mine == made_up(populated("a", 0))


def test_an_operator_that_follows_pods_foresees_no_node(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns=["deployments", "pods"], registry=registry)
    def keep(name: str, children: Any, **_: Any) -> fnop.Desired:
        pods = children["pods"].values()
        found = [
            {
                "node": each["spec"].get("nodeName", ""),
                "host": each["status"].get("hostIP", ""),
                "phase": each["status"].get("phase", ""),
            }
            for each in pods
        ]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        return fnop.desired([pod], status={"pods": found})

    plan = plan_of(registry, Scenario(registry, [example("a")]), 4)
    last = [each for each in as_json(plan)["changes"] if each["kind"] == "FnopExample"]
    assert last[-1]["round"] > 1
    (pod,) = last[-1]["after"]["status"]["pods"]
    (unknown,) = last[-1]["after_unknown"]["status"]["pods"]
    assert pod["phase"] == "Running"
    assert unknown == {"node": True, "host": True}


def test_what_is_allocated_is_managed_by_nobody() -> None:
    """As on a real server: the fields are the creator's before they are allocated."""
    cluster = empty_cluster()
    path = "/api/v1/namespaces/default/services"
    body = service("s", type="LoadBalancer", externalTrafficPolicy="Local")
    cluster, response, _ = answer(cluster, ApiRequest("POST", path, (), body), NOW)
    (entry,) = response.body["metadata"]["managedFields"]
    for name in ("nodePort", "healthCheckNodePort", "clusterIP"):
        assert f"f:{name}" not in str(entry), name
    checked = response.body["spec"]["healthCheckNodePort"]
    patch = ApiRequest(
        "PATCH", f"{path}/s", (), {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH
    )
    cluster, response, _ = answer(cluster, patch, NOW)
    assert response.body["spec"]["healthCheckNodePort"] == checked
