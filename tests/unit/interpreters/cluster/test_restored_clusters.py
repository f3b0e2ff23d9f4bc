"""Simulated clusters that are restored from objects read elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.api.resources import path_of
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.cluster import (
    Cluster,
    answer,
    blank_cluster,
    describing,
    due,
    restored,
    tick,
)
from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.scenario import catalogue_of, objects_of
from fnop.testing import Simulation
from tests.simulations import DEFINITION, Scenario, example, manifests_of

NOW = 1_800_000_000.0


@pytest.fixture
def origin() -> Scenario:
    run = Scenario(Registry(), [*manifests_of("20-tenants"), example("owner")])
    owner = run.get("fnopexamples", "owner")
    assert owner is not None
    reference = {
        **{key: owner[key] for key in ("apiVersion", "kind")},
        **{key: owner["metadata"][key] for key in ("name", "uid")},
    }
    child = {"name": "child", "namespace": "default", "ownerReferences": [reference]}
    run.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": child})
    run.edit("fnopexamples", "owner/status", status={"seen": True})
    run.settle()
    return run


def copied(run: Scenario) -> Cluster:
    """The objects that a reader of all kinds can restore: definitions first."""
    cluster = blank_cluster("copy", 0)
    resources = sorted(
        catalogue_of(run).resources,
        key=lambda each: each.plural != "customresourcedefinitions",
    )
    for each in resources:
        if each.group != "events.k8s.io" and "list" in each.verbs:
            path = (each.group, each.version, each.plural)
            cluster = restored(cluster, path, objects_of(run, each))
    return cluster


def test_what_was_read_is_there_as_it_was(origin: Scenario) -> None:
    cluster = copied(origin)
    for each in catalogue_of(origin).resources:
        request = ApiRequest("GET", path_of(each, None))
        _, mine, events = answer(cluster, request, NOW)
        theirs = origin.request(request)
        assert mine.status == theirs.status
        assert mine.body.get("items") == theirs.body.get("items"), each
        assert events == ()
    assert due(cluster) is None
    assert cluster.size == origin.cluster.size


def test_writes_go_on_from_the_versions_that_were_read(origin: Scenario) -> None:
    cluster, path = copied(origin), origin.path("fnopexamples", "owner")
    found = origin.get("fnopexamples", "owner")
    assert found is not None
    version = found["metadata"]["resourceVersion"]
    body = {"spec": {"a": "b"}, "metadata": {"resourceVersion": version}}
    change = ApiRequest("PATCH", path, (), body, MERGE_PATCH)
    after, response, (event,) = answer(cluster, change, NOW)
    assert response.status == 200
    assert response.body["metadata"]["uid"] == found["metadata"]["uid"]
    assert response.body["status"] == found["status"]
    generation = response.body["metadata"]["generation"]
    assert generation == found["metadata"]["generation"] + 1
    assert event.version > int(version)
    assert after.version == cluster.version + 1
    assert answer(after, change, NOW)[1].status == 409


def test_the_children_of_what_was_restored_are_collected(origin: Scenario) -> None:
    cluster = copied(origin)
    delete = ApiRequest("DELETE", origin.path("fnopexamples", "owner"))
    cluster, response, _ = answer(cluster, delete, NOW)
    assert response.status == 200
    while due(cluster) is not None:
        cluster, _ = tick(cluster, NOW)
    child = ApiRequest("GET", origin.path("configmaps", "child"))
    assert answer(cluster, child, NOW)[1].status == 404


def test_it_serves_the_kinds_that_it_is_told() -> None:
    cluster = blank_cluster("0", 5, {("", "v1", "pods")})
    pods, secrets = (
        answer(cluster, ApiRequest("GET", f"/api/v1/{kind}"), NOW)[1].status
        for kind in ("pods", "secrets")
    )
    assert (pods, secrets) == (200, 404)
    thing: dict[str, Any] = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {
                "plural": "things",
                "singular": "thing",
                "kind": "Thing",
                "listKind": "ThingList",
            },
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    cluster = describing(cluster, [thing])
    things = ApiRequest("GET", "/apis/example.com/v1/things")
    assert answer(cluster, things, NOW)[1].body["items"] == []
    with pytest.raises(KeyError):
        restored(cluster, ("example.com", "v2", "things"), [{"metadata": {}}])


def managed(manager: str, operation: str, *names: str) -> dict[str, Any]:
    """An entry of managed fields for some names of a selector, as 1.20 writes it."""
    selector: dict[str, Any] = {f"f:{each}": {} for each in names}
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:spec": {"f:selector": selector}},
    }


def test_fields_are_managed_as_today_where_an_older_server_had_parts_of_them() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [
                managed("operator", "Apply", "app"),
                managed("kubectl-patch", "Update", "app", "other"),
            ],
        },
        "spec": {"selector": {"app": "drifted", "other": "x"}, "ports": [{"port": 1}]},
    }
    path = ("", "v1", "services")
    cluster = restored(blank_cluster("0", 10, {path}), path, [service])
    config = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}},
    }
    query = (("fieldManager", "operator"), ("force", "true"))
    where = "/api/v1/namespaces/default/services/web"
    request = ApiRequest("PATCH", where, query, config, APPLY_PATCH)
    _, response, _ = answer(cluster, request, NOW)
    assert response.status == 200, response.body
    assert response.body["spec"]["selector"] == {"app": "web"}
    fields = {
        each["manager"]: each["fieldsV1"]["f:spec"]
        for each in response.body["metadata"]["managedFields"]
    }
    assert fields == {"operator": {"f:selector": {}}}


APPS = ("apps", "v1", "statefulsets")
METADATA: dict[str, Any] = {
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "7",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
LABELS = {"app": "db"}
# As 1.20 returns it.
TEMPLATE: dict[str, Any] = {
    "metadata": {"creationTimestamp": None, "labels": LABELS},
    "spec": {
        "containers": [
            {
                "name": "db",
                "image": "db:1",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
}
STATEFUL: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {**METADATA, "name": "db"},
    "spec": {
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "serviceName": "db",
        "selector": {"matchLabels": LABELS},
        "template": TEMPLATE,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "volumeClaimTemplates": [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"creationTimestamp": None, "name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            }
        ],
    },
    "status": {"replicas": 0},
}
SETS = "/apis/apps/v1/namespaces/default/statefulsets/db"


def with_namespace(cluster: Cluster) -> Cluster:
    space: dict[str, Any] = {"metadata": {**METADATA, "name": "default"}}
    del space["metadata"]["namespace"]
    space |= {"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"}}
    return restored(cluster, ("", "v1", "namespaces"), [space])


def test_nulls_of_a_server_are_no_change_and_stay() -> None:
    cluster = restored(with_namespace(blank_cluster("0", 10)), APPS, [STATEFUL])
    same, response, events = answer(cluster, ApiRequest("PUT", SETS, (), STATEFUL), NOW)
    assert (response.status, response.body, events) == (200, STATEFUL, ())
    body: dict[str, Any] = {"spec": {"replicas": 3}}
    _, response, _ = answer(same, ApiRequest("PATCH", SETS, (), body, MERGE_PATCH), NOW)
    assert response.status == 200, response.body
    assert response.body["spec"] == {**STATEFUL["spec"], "replicas": 3}
    body = {"spec": {"volumeClaimTemplates": []}}
    _, response, _ = answer(same, ApiRequest("PATCH", SETS, (), body, MERGE_PATCH), NOW)
    assert response.status == 422


def test_a_controller_takes_null_for_absent() -> None:
    deployment: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**METADATA, "name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "strategy": {"type": "Recreate"},
        },
    }
    path = ("apps", "v1", "deployments")
    cluster = restored(with_namespace(blank_cluster("0", 10)), path, [deployment])
    where = "/apis/apps/v1/namespaces/default/deployments/web"
    for image in ("db:2", "db:3"):
        pod = {"containers": [{"name": "db", "image": image}]}
        body = {"spec": {"template": {"spec": pod}}}
        change = ApiRequest("PATCH", where, (), body, MERGE_PATCH)
        cluster, response, _ = answer(cluster, change, NOW)
        assert response.status == 200
        for _ in range(100):
            if due(cluster) is None:
                break
            cluster, _ = tick(cluster, NOW)
    sets = ApiRequest("GET", "/apis/apps/v1/namespaces/default/replicasets")
    assert len(answer(cluster, sets, NOW)[1].body["items"]) == 2


CRON_JOB: dict[str, Any] = {
    "apiVersion": "batch/v1beta1",
    "kind": "CronJob",
    "metadata": {**METADATA, "name": "nightly"},
    "spec": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "metadata": {"creationTimestamp": None},
            "spec": {
                "template": {
                    **TEMPLATE,
                    "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"},
                }
            },
        },
        "schedule": "@daily",
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "status": {},
}
del CRON_JOB["metadata"]["generation"]  # which 1.20 does not count


def test_older_versions_of_built_in_kinds_have_their_types() -> None:
    served = {("", "v1", "namespaces"), ("batch", "v1beta1", "cronjobs")}
    cluster = with_namespace(blank_cluster("0", 10, served))
    path = ("batch", "v1beta1", "cronjobs")
    cluster = restored(cluster, path, [CRON_JOB])
    where = "/apis/batch/v1beta1/namespaces/default/cronjobs/nightly"
    pod = {"restartPolicy": "Never", "containers": [{"name": "db", "image": "db:1"}]}
    config = {
        "apiVersion": "batch/v1beta1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    }
    query = (("fieldManager", "me"), ("force", "true"))
    apply = ApiRequest("PATCH", where, query, config, APPLY_PATCH)
    cluster, response, _ = answer(cluster, apply, NOW)
    assert response.status == 200, response.body
    assert response.body["spec"] == CRON_JOB["spec"]
    assert "generation" not in response.body["metadata"]
    bad = {"spec": {"schedule": "now and then"}}
    patch = ApiRequest("PATCH", where, (), bad, MERGE_PATCH)
    assert answer(cluster, patch, NOW)[1].status == 422


def test_a_simulation_of_such_objects_serves_their_version() -> None:
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns=["cronjobs.batch"], registry=registry)
    def keep(**_: Any) -> Any:
        child = {**CRON_JOB, "metadata": {"name": "other"}}
        del child["status"]
        return fnop.desired(child)

    sim = Simulation(registry, crds=[DEFINITION], restored=[CRON_JOB])
    sim.apply(example("owner"))
    sim.settle()
    found, made = sim.get("cronjobs/nightly"), sim.get("cronjobs/other")
    assert found is not None
    assert made is not None
    assert found["spec"] == CRON_JOB["spec"]
    assert made["apiVersion"] == "batch/v1beta1"
