"""Conformance cases of the built-in controllers, on servers without a kubelet.

What a kubelet would say of its pods, the cases say themselves.
"""

from __future__ import annotations

from typing import Any

from fnop.interpreters.runtime.protocol import MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

Json = dict[str, Any]

NS = "/api/v1/namespaces/{ns}"
PODS = f"{NS}/pods"
MAPS = f"{NS}/configmaps"
APPS = "/apis/apps/v1/namespaces/{ns}"
DEPLOYMENTS, SETS = f"{APPS}/deployments", f"{APPS}/replicasets"
STATEFUL, DAEMONS = f"{APPS}/statefulsets", f"{APPS}/daemonsets"
REVISIONS = f"{APPS}/controllerrevisions"
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"


def template(app: str, **spec: Any) -> Json:
    """The template of a pod with this label."""
    containers = [{"name": "c", "image": "i:1"}]
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": containers, **spec},
    }


def workload(kind: str, name: str, replicas: int | None = 1, **spec: Any) -> Json:
    """An apps/v1 object over pods that are labelled with its name."""
    given: Json = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            **given,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name),
            **spec,
        },
    }


def made(path: str, body: Json) -> Step:
    # Pods are refused until the service account of their namespace has a token.
    wait = path == PODS
    return Step("POST", path, body, code=201, compare="code", eventually=wait)


def patched(path: str, change: Json) -> Step:
    return Step("PATCH", path, change, MERGE_PATCH, compare="code")


def seen(path: str, *more: str, query: str = "", **has: Any) -> Step:
    """Look until it is so; of the answer only these parts are compared."""
    wanted = {name.replace("__", "."): value for name, value in has.items()}
    return Step(
        "GET",
        path,
        query={"labelSelector": query} if query else {},
        has=wanted,
        compare=(*wanted, *more),
        eventually=True,
    )


def status(name: str, conditions: list[Json] | None = None, **more: Any) -> Step:
    """A kubelet's report about a pod."""
    found: Json = {**more}
    if conditions is not None:
        found["conditions"] = conditions
    return patched(f"{PODS}/{name}/status", {"status": found})


def ready(name: str) -> Step:
    """A pod that runs and is ready, for a while."""
    condition = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    return status(name, [condition], phase="Running")


def ended(name: str, phase: str) -> Step:
    return status(name, phase=phase)


def counted(path: str, *more: str, **numbers: Any) -> Step:
    """Numbers in a status; what is 0 is mostly not said."""
    has = {f"status.{name}": number for name, number in numbers.items()}
    return Step("GET", path, has=has, compare=(*has, *more), eventually=True)


def exists(path: str, *parts: str) -> Step:
    return Step("GET", path, compare=parts or "code", eventually=True)


def gone(path: str) -> Step:
    return Step("GET", path, code=404, compare="code", eventually=True)


def pod(name: str, app: str, **more: Any) -> Json:
    return {
        "metadata": {"name": name, "labels": {"app": app}, **more},
        "spec": template(app)["spec"],
    }


def on_node(given: Json) -> Json:
    return {**given, "spec": {**given["spec"], "nodeName": "n"}}


ACCOUNTS: tuple[Case, ...] = (
    Case(
        "every namespace has a service account, again and again",
        (
            exists(f"{NS}/serviceaccounts/default", "metadata.name", "kind"),
            Step("DELETE", f"{NS}/serviceaccounts/default", compare="code"),
            exists(f"{NS}/serviceaccounts/default", "metadata.name"),
        ),
    ),
    Case(
        "every namespace has the certificate of the server, as it is",
        (
            exists(f"{MAPS}/kube-root-ca.crt", "metadata.name", "metadata.labels"),
            Step("DELETE", f"{MAPS}/kube-root-ca.crt", compare="code"),
            exists(f"{MAPS}/kube-root-ca.crt", "metadata.name"),
            patched(f"{MAPS}/kube-root-ca.crt", {"data": {"more": "x"}}),
            seen(f"{MAPS}/kube-root-ca.crt", data__more=ABSENT),
        ),
    ),
)

REPLICA_SETS: tuple[Case, ...] = (
    Case(
        "replica set: makes its pods",
        (
            made(SETS, workload("ReplicaSet", "rs-a", 2)),
            counted(
                f"{SETS}/rs-a",
                "status",
                replicas=2,
                fullyLabeledReplicas=2,
                observedGeneration=1,
                readyReplicas=ABSENT,
            ),
            seen(
                PODS,
                "items.0.metadata.generateName",
                "items.0.metadata.labels",
                "items.0.metadata.ownerReferences",
                "items.1.metadata.ownerReferences",
                query="app=rs-a",
                items__2=ABSENT,
            ),
        ),
    ),
    Case(
        "replica set: without replicas it has one",
        (
            made(SETS, workload("ReplicaSet", "rs-one", None)),
            counted(f"{SETS}/rs-one", "status", replicas=1, observedGeneration=1),
        ),
    ),
    Case(
        "replica set: more, fewer and none",
        (
            made(SETS, workload("ReplicaSet", "rs-b", 1)),
            counted(f"{SETS}/rs-b", replicas=1),
            patched(f"{SETS}/rs-b", {"spec": {"replicas": 3}}),
            counted(f"{SETS}/rs-b", "status", replicas=3, observedGeneration=2),
            patched(f"{SETS}/rs-b", {"spec": {"replicas": 0}}),
            counted(f"{SETS}/rs-b", "status", replicas=0, observedGeneration=3),
            seen(PODS, query="app=rs-b", items__0=ABSENT),
        ),
    ),
    Case(
        "replica set: a pod that is gone is made again",
        (
            made(SETS, workload("ReplicaSet", "rs-c", 1)),
            counted(f"{SETS}/rs-c", replicas=1, fullyLabeledReplicas=1),
            Step("DELETE", PODS, query={"labelSelector": "app=rs-c"}, compare="code"),
            counted(f"{SETS}/rs-c", "status", replicas=1, observedGeneration=1),
            seen(
                PODS,
                query="app=rs-c",
                items__0__metadata__labels={"app": "rs-c"},
                items__1=ABSENT,
            ),
        ),
    ),
    Case(
        "replica set: adopts what it selects and nobody owns",
        (
            made(PODS, pod("orphan", "rs-d")),
            made(SETS, workload("ReplicaSet", "rs-d", 1)),
            counted(f"{SETS}/rs-d", replicas=1),
            seen(
                f"{PODS}/orphan",
                "metadata.ownerReferences",
                metadata__ownerReferences__0__kind="ReplicaSet",
                metadata__ownerReferences__0__controller=True,
            ),
            seen(PODS, query="app=rs-d", items__1=ABSENT),
        ),
    ),
    Case(
        "replica set: lets go of what it does not select any more",
        (
            made(PODS, pod("drop", "rs-e")),
            made(SETS, workload("ReplicaSet", "rs-e", 1)),
            seen(f"{PODS}/drop", metadata__ownerReferences__0__kind="ReplicaSet"),
            patched(f"{PODS}/drop", {"metadata": {"labels": {"app": "other"}}}),
            seen(f"{PODS}/drop", metadata__ownerReferences=ABSENT),
            counted(f"{SETS}/rs-e", replicas=1, fullyLabeledReplicas=1),
            seen(PODS, query="app=rs-e", items__1=ABSENT),
        ),
    ),
    Case(
        "replica set: too many adopted pods go",
        (
            made(PODS, pod("many-1", "rs-f")),
            made(PODS, pod("many-2", "rs-f")),
            ready("many-2"),
            made(SETS, workload("ReplicaSet", "rs-f", 1)),
            gone(f"{PODS}/many-1"),
            counted(f"{SETS}/rs-f", "status", replicas=1, readyReplicas=1),
        ),
    ),
    Case(
        "replica set: counts ready and available pods",
        (
            made(PODS, pod("rsg-1", "rs-g")),
            made(SETS, workload("ReplicaSet", "rs-g", 1)),
            counted(f"{SETS}/rs-g", replicas=1, readyReplicas=ABSENT),
            ready("rsg-1"),
            counted(f"{SETS}/rs-g", "status", readyReplicas=1, availableReplicas=1),
            status("rsg-1", [{"type": "Ready", "status": "False"}]),
            counted(f"{SETS}/rs-g", "status", replicas=1, readyReplicas=ABSENT),
        ),
    ),
    Case(
        "replica set: pods that have ended count no more",
        (
            made(PODS, pod("rsh-1", "rs-h")),
            made(SETS, workload("ReplicaSet", "rs-h", 1)),
            seen(f"{PODS}/rsh-1", metadata__ownerReferences__0__kind="ReplicaSet"),
            ended("rsh-1", "Failed"),
            seen(PODS, query="app=rs-h", items__2=ABSENT),
            counted(f"{SETS}/rs-h", "status", replicas=1, fullyLabeledReplicas=1),
        ),
    ),
    Case(
        "replica set: its pods go with it, or stay",
        (
            made(PODS, pod("rsi-1", "rs-i")),
            made(SETS, workload("ReplicaSet", "rs-i", 1)),
            seen(f"{PODS}/rsi-1", metadata__ownerReferences__0__kind="ReplicaSet"),
            Step(
                "DELETE",
                f"{SETS}/rs-i",
                {"propagationPolicy": "Orphan"},
                compare="code",
            ),
            gone(f"{SETS}/rs-i"),
            seen(f"{PODS}/rsi-1", metadata__ownerReferences=ABSENT),
            made(SETS, workload("ReplicaSet", "rs-i", 1)),
            seen(f"{PODS}/rsi-1", metadata__ownerReferences__0__kind="ReplicaSet"),
            Step("DELETE", f"{SETS}/rs-i", compare="code"),
            gone(f"{PODS}/rsi-1"),
        ),
    ),
)


DEPLOYMENT_CASES: tuple[Case, ...] = (
    Case(
        "deployment: makes a replica set, which makes pods",
        (
            made(DEPLOYMENTS, workload("Deployment", "dep-a", 2)),
            counted(
                f"{DEPLOYMENTS}/dep-a",
                "status.conditions.0.type",
                "status.conditions.0.status",
                "status.conditions.1.type",
                "status.conditions.1.status",
                replicas=2,
                updatedReplicas=2,
                unavailableReplicas=2,
                readyReplicas=ABSENT,
                observedGeneration=1,
            ),
            seen(
                SETS,
                "items.0.metadata.labels",
                "items.0.metadata.annotations",
                "items.0.metadata.ownerReferences",
                "items.0.spec",
                query="app=dep-a",
                items__0__status__replicas=2,
                items__1=ABSENT,
            ),
            seen(
                f"{DEPLOYMENTS}/dep-a",
                "metadata.annotations",
                metadata__generation=1,
            ),
        ),
    ),
    Case(
        "deployment: without a ready pod it is not available",
        (
            made(DEPLOYMENTS, workload("Deployment", "dep-b", 1)),
            Step(
                "GET",
                f"{DEPLOYMENTS}/dep-b",
                has={
                    "status.replicas": 1,
                    "status.unavailableReplicas": 1,
                    "status.observedGeneration": 1,
                },
                compare=("status.replicas", "status.unavailableReplicas"),
                eventually=True,
            ),
        ),
    ),
    Case(
        "deployment: more and fewer",
        (
            made(DEPLOYMENTS, workload("Deployment", "dep-c", 1)),
            counted(f"{DEPLOYMENTS}/dep-c", replicas=1),
            patched(f"{DEPLOYMENTS}/dep-c", {"spec": {"replicas": 3}}),
            counted(f"{DEPLOYMENTS}/dep-c", replicas=3, observedGeneration=2),
            seen(
                SETS,
                "items.0.metadata.annotations",
                query="app=dep-c",
                items__0__spec__replicas=3,
            ),
            patched(f"{DEPLOYMENTS}/dep-c", {"spec": {"replicas": 0}}),
            counted(f"{DEPLOYMENTS}/dep-c", replicas=ABSENT, observedGeneration=3),
            seen(PODS, query="app=dep-c", items__0=ABSENT),
        ),
    ),
    Case(
        "deployment: another template, another replica set",
        (
            made(DEPLOYMENTS, workload("Deployment", "dep-d", 1)),
            counted(f"{DEPLOYMENTS}/dep-d", replicas=1, updatedReplicas=1),
            patched(
                f"{DEPLOYMENTS}/dep-d",
                {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}},
            ),
            # One more than asked for may be there, none less: both wait.
            seen(
                f"{DEPLOYMENTS}/dep-d",
                "metadata.annotations",
                status__observedGeneration=2,
                status__replicas=2,
                status__updatedReplicas=1,
                status__unavailableReplicas=2,
            ),
            seen(SETS, query="app=dep-d", items__2=ABSENT),
        ),
    ),
    Case(
        "deployment: Recreate ends the old pods first",
        (
            made(
                DEPLOYMENTS,
                workload("Deployment", "dep-e", 2, strategy={"type": "Recreate"}),
            ),
            counted(f"{DEPLOYMENTS}/dep-e", replicas=2, updatedReplicas=2),
            patched(
                f"{DEPLOYMENTS}/dep-e",
                {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}},
            ),
            counted(
                f"{DEPLOYMENTS}/dep-e",
                observedGeneration=2,
                replicas=2,
                updatedReplicas=2,
            ),
            seen(PODS, query="app=dep-e", items__2=ABSENT),
            seen(
                f"{DEPLOYMENTS}/dep-e",
                metadata__generation=2,
            ),
        ),
    ),
    Case(
        "deployment: paused, it does not follow its template",
        (
            made(DEPLOYMENTS, workload("Deployment", "dep-f", 1, paused=True)),
            Step(
                "GET",
                f"{DEPLOYMENTS}/dep-f",
                has={
                    "status.observedGeneration": 1,
                    "status.conditions.0.type": "Progressing",
                    "status.conditions.0.status": "Unknown",
                    "status.conditions.0.reason": "DeploymentPaused",
                },
                compare=("status.conditions.0.message", "status.replicas"),
                eventually=True,
            ),
            seen(SETS, query="app=dep-f", items__0=ABSENT),
            patched(f"{DEPLOYMENTS}/dep-f", {"spec": {"paused": False}}),
            counted(f"{DEPLOYMENTS}/dep-f", replicas=1, observedGeneration=2),
        ),
    ),
    Case(
        "deployment: adopts a replica set of its template",
        (
            made(
                SETS,
                workload("ReplicaSet", "dep-g-old", 1)
                | {
                    "metadata": {"name": "dep-g-old", "labels": {"app": "dep-g-old"}},
                },
            ),
            counted(f"{SETS}/dep-g-old", replicas=1),
            made(
                DEPLOYMENTS,
                {
                    **workload("Deployment", "dep-g-old", 1),
                    "metadata": {"name": "dep-g"},
                },
            ),
            seen(
                f"{SETS}/dep-g-old",
                metadata__ownerReferences__0__kind="Deployment",
                metadata__ownerReferences__0__name="dep-g",
                # What it wants of the set it says when it makes or resizes it.
                metadata__annotations={"deployment.kubernetes.io/revision": "1"},
            ),
            counted(f"{DEPLOYMENTS}/dep-g", replicas=1, updatedReplicas=1),
            seen(SETS, query="app=dep-g-old", items__1=ABSENT),
        ),
    ),
    Case(
        "deployment: annotations go to the replica set, some do not",
        (
            made(
                DEPLOYMENTS,
                {
                    **workload("Deployment", "dep-h", 1),
                    "metadata": {
                        "name": "dep-h",
                        "annotations": {
                            "mine": "x",
                            "kubectl.kubernetes.io/last-applied-configuration": "y",
                        },
                    },
                },
            ),
            counted(f"{DEPLOYMENTS}/dep-h", replicas=1),
            seen(
                SETS,
                "items.0.metadata.annotations",
                query="app=dep-h",
                items__0__metadata__annotations__mine="x",
            ),
            patched(
                f"{DEPLOYMENTS}/dep-h", {"metadata": {"annotations": {"mine": "z"}}}
            ),
            seen(
                SETS,
                "items.0.metadata.annotations",
                query="app=dep-h",
                items__0__metadata__annotations__mine="z",
            ),
        ),
    ),
    Case(
        "deployment: everything goes with it",
        (
            made(DEPLOYMENTS, workload("Deployment", "dep-i", 2)),
            counted(f"{DEPLOYMENTS}/dep-i", replicas=2),
            Step("DELETE", f"{DEPLOYMENTS}/dep-i", compare="code"),
            gone(f"{DEPLOYMENTS}/dep-i"),
            seen(SETS, query="app=dep-i", items__0=ABSENT),
            seen(PODS, query="app=dep-i", items__0=ABSENT),
        ),
    ),
)


def sts(name: str, count: int, **spec: Any) -> Json:
    return workload("StatefulSet", name, count, serviceName="svc", **spec)


STATEFUL_CASES: tuple[Case, ...] = (
    Case(
        "stateful set: one pod after the other",
        (
            made(STATEFUL, sts("sts-a", 2)),
            exists(f"{PODS}/sts-a-0", "spec.hostname", "spec.subdomain"),
            counted(f"{STATEFUL}/sts-a", replicas=1, observedGeneration=1),
            Step("GET", f"{PODS}/sts-a-1", code=404, compare="code"),
            ready("sts-a-0"),
            exists(f"{PODS}/sts-a-1", "metadata.ownerReferences"),
            ready("sts-a-1"),
            counted(
                f"{STATEFUL}/sts-a",
                replicas=2,
                readyReplicas=2,
                currentReplicas=2,
                updatedReplicas=2,
                collisionCount=0,
            ),
        ),
    ),
    Case(
        "stateful set: all at once where nobody minds",
        (
            made(STATEFUL, sts("sts-b", 3, podManagementPolicy="Parallel")),
            counted(f"{STATEFUL}/sts-b", replicas=3, currentReplicas=3),
            exists(f"{PODS}/sts-b-2"),
            patched(f"{STATEFUL}/sts-b", {"spec": {"replicas": 1}}),
            gone(f"{PODS}/sts-b-2"),
            gone(f"{PODS}/sts-b-1"),
            exists(f"{PODS}/sts-b-0"),
        ),
    ),
    Case(
        "stateful set: the last goes first",
        (
            made(STATEFUL, sts("sts-c", 2)),
            exists(f"{PODS}/sts-c-0"),
            ready("sts-c-0"),
            exists(f"{PODS}/sts-c-1"),
            ready("sts-c-1"),
            counted(f"{STATEFUL}/sts-c", readyReplicas=2),
            patched(f"{STATEFUL}/sts-c", {"spec": {"replicas": 1}}),
            gone(f"{PODS}/sts-c-1"),
            exists(f"{PODS}/sts-c-0"),
            counted(f"{STATEFUL}/sts-c", replicas=1, readyReplicas=1),
        ),
    ),
    Case(
        "stateful set: a pod comes again under its name",
        (
            made(STATEFUL, sts("sts-d", 1)),
            exists(f"{PODS}/sts-d-0", "metadata.name"),
            Step("DELETE", f"{PODS}/sts-d-0", compare="code"),
            exists(f"{PODS}/sts-d-0", "metadata.name"),
            ended("sts-d-0", "Failed"),
            seen(f"{PODS}/sts-d-0", status__phase="Pending"),
        ),
    ),
    Case(
        "stateful set: claims are made, and stay",
        (
            made(
                STATEFUL,
                sts(
                    "sts-e",
                    1,
                    volumeClaimTemplates=[
                        {
                            "metadata": {"name": "data"},
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1Gi"}},
                            },
                        }
                    ],
                ),
            ),
            exists(
                f"{NS}/persistentvolumeclaims/data-sts-e-0",
                "metadata.labels",
                "metadata.ownerReferences",
                "spec",
            ),
            seen(
                f"{PODS}/sts-e-0",
                "spec.volumes.0",
                spec__volumes__0__name="data",
            ),
            Step("DELETE", f"{STATEFUL}/sts-e", compare="code"),
            gone(f"{PODS}/sts-e-0"),
            exists(f"{NS}/persistentvolumeclaims/data-sts-e-0"),
        ),
    ),
    Case(
        "stateful set: a revision for each template",
        (
            made(STATEFUL, sts("sts-f", 1)),
            seen(
                REVISIONS,
                "items.0.metadata.ownerReferences",
                query="app=sts-f",
                items__0__revision=1,
                items__0__data__spec__template__metadata__labels__app="sts-f",
                items__1=ABSENT,
            ),
            exists(f"{PODS}/sts-f-0"),
            ready("sts-f-0"),
            counted(f"{STATEFUL}/sts-f", readyReplicas=1),
            patched(
                f"{STATEFUL}/sts-f",
                {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}},
            ),
            seen(f"{PODS}/sts-f-0", metadata__annotations__v="2"),
            ready("sts-f-0"),
            counted(
                f"{STATEFUL}/sts-f",
                replicas=1,
                readyReplicas=1,
                currentReplicas=1,
                updatedReplicas=1,
                observedGeneration=2,
            ),
        ),
    ),
    Case(
        "stateful set: what is below the partition stays as it is",
        (
            made(
                STATEFUL,
                sts(
                    "sts-g",
                    2,
                    podManagementPolicy="Parallel",
                    updateStrategy={
                        "type": "RollingUpdate",
                        "rollingUpdate": {"partition": 1},
                    },
                ),
            ),
            exists(f"{PODS}/sts-g-1"),
            exists(f"{PODS}/sts-g-0"),
            ready("sts-g-0"),
            ready("sts-g-1"),
            counted(f"{STATEFUL}/sts-g", readyReplicas=2),
            patched(
                f"{STATEFUL}/sts-g",
                {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}},
            ),
            seen(f"{PODS}/sts-g-1", metadata__annotations__v="2"),
            ready("sts-g-1"),
            counted(
                f"{STATEFUL}/sts-g",
                readyReplicas=2,
                updatedReplicas=1,
                currentReplicas=1,
            ),
            seen(f"{PODS}/sts-g-0", metadata__annotations=ABSENT),
        ),
    ),
    Case(
        "stateful set: OnDelete renews who is deleted",
        (
            made(STATEFUL, sts("sts-h", 1, updateStrategy={"type": "OnDelete"})),
            exists(f"{PODS}/sts-h-0"),
            ready("sts-h-0"),
            counted(f"{STATEFUL}/sts-h", readyReplicas=1),
            patched(
                f"{STATEFUL}/sts-h",
                {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}},
            ),
            counted(f"{STATEFUL}/sts-h", observedGeneration=2, readyReplicas=1),
            seen(f"{PODS}/sts-h-0", metadata__annotations=ABSENT),
            Step("DELETE", f"{PODS}/sts-h-0", compare="code"),
            seen(f"{PODS}/sts-h-0", metadata__annotations__v="2"),
        ),
    ),
)


def job(name: str, **spec: Any) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {"template": template(name, restartPolicy="Never"), **spec},
    }


JOB_CASES: tuple[Case, ...] = (
    Case(
        "job: as many pods as may run at once",
        (
            made(JOBS, job("job-a", completions=3, parallelism=2)),
            counted(f"{JOBS}/job-a", active=2, succeeded=ABSENT, failed=ABSENT),
            seen(
                PODS,
                "items.0.metadata.generateName",
                query="app=job-a",
                items__2=ABSENT,
            ),
            patched(f"{JOBS}/job-a", {"spec": {"parallelism": 1}}),
            counted(f"{JOBS}/job-a", active=1),
            patched(f"{JOBS}/job-a", {"spec": {"parallelism": 0}}),
            counted(f"{JOBS}/job-a", active=ABSENT),
            seen(PODS, query="app=job-a", items__0=ABSENT),
        ),
    ),
    Case(
        "job: too long is too long",
        (
            # The controller deletes the pods of its cache, and never looks again at
            # a job that has failed.  That it removes one pod shows that it knows both.
            made(JOBS, job("job-b", completions=2, parallelism=2)),
            seen(PODS, query="app=job-b", items__1__metadata__generateName="job-b-"),
            patched(f"{JOBS}/job-b", {"spec": {"parallelism": 1}}),
            seen(
                PODS,
                query="app=job-b",
                items__0__metadata__generateName="job-b-",
                items__1=ABSENT,
            ),
            patched(f"{JOBS}/job-b", {"spec": {"activeDeadlineSeconds": 1}}),
            Step(
                "GET",
                f"{JOBS}/job-b",
                has={
                    "status.conditions.0.type": "Failed",
                    "status.conditions.0.reason": "DeadlineExceeded",
                    "status.active": ABSENT,
                },
                compare=(
                    "status.conditions.0.type",
                    "status.conditions.0.status",
                    "status.conditions.0.message",
                ),
                eventually=True,
            ),
            seen(PODS, query="app=job-b", items__0=ABSENT),
        ),
    ),
    Case(
        "job: deleted in the background, its pods go; by default they stay",
        (
            made(JOBS, job("job-c")),
            counted(f"{JOBS}/job-c", active=1),
            Step(
                "DELETE",
                f"{JOBS}/job-c",
                {"propagationPolicy": "Background"},
                compare="code",
            ),
            gone(f"{JOBS}/job-c"),
            seen(PODS, query="app=job-c", items__0=ABSENT),
        ),
    ),
)

DAEMON_CASES: tuple[Case, ...] = (
    Case(
        "daemon set: without nodes there is nothing to do",
        (
            made(DAEMONS, workload("DaemonSet", "ds-a", None)),
            counted(
                f"{DAEMONS}/ds-a",
                "status",
                desiredNumberScheduled=0,
                currentNumberScheduled=0,
                numberReady=0,
                observedGeneration=1,
            ),
        ),
    ),
)

SERVICE_CASES: tuple[Case, ...] = (
    Case(
        "endpoints: of the pods with an address",
        (
            made(
                f"{NS}/services",
                {
                    "metadata": {"name": "svc-a", "labels": {"l": "1"}},
                    "spec": {"selector": {"app": "svc-a"}, "ports": [{"port": 80}]},
                },
            ),
            seen(f"{NS}/endpoints/svc-a", "metadata.labels", subsets=ABSENT),
            # Endpoints need the node of their pod.
            made(PODS, on_node(pod("svc-a-1", "svc-a"))),
            status(
                "svc-a-1",
                phase="Running",
                podIP="10.1.2.3",
                podIPs=[{"ip": "10.1.2.3"}],
            ),
            seen(
                f"{NS}/endpoints/svc-a",
                "subsets.0.ports",
                subsets__0__notReadyAddresses__0__ip="10.1.2.3",
                subsets__0__addresses=ABSENT,
            ),
            ready("svc-a-1"),
            seen(
                f"{NS}/endpoints/svc-a",
                "subsets.0.addresses.0.targetRef.name",
                subsets__0__addresses__0__ip="10.1.2.3",
                subsets__0__notReadyAddresses=ABSENT,
            ),
            Step("DELETE", f"{NS}/services/svc-a", compare="code"),
            gone(f"{NS}/endpoints/svc-a"),
        ),
    ),
    Case(
        "endpoints: nobody makes them for a service without selector",
        (
            made(
                f"{NS}/services",
                {"metadata": {"name": "svc-b"}, "spec": {"ports": [{"port": 80}]}},
            ),
            made(
                f"{NS}/services",
                {
                    "metadata": {"name": "svc-c"},
                    "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]},
                },
            ),
            exists(f"{NS}/endpoints/svc-c", "metadata.name"),
            Step("GET", f"{NS}/endpoints/svc-b", code=404, compare="code"),
        ),
    ),
)

CASES: tuple[Case, ...] = (
    *ACCOUNTS,
    *REPLICA_SETS,
    *DEPLOYMENT_CASES,
    *STATEFUL_CASES,
    *JOB_CASES,
    *DAEMON_CASES,
    *SERVICE_CASES,
)
