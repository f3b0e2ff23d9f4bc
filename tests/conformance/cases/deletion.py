"""Conformance cases of deletion: options, propagation, grace, collections."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.protocol import MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

Json = dict[str, Any]

SPACES = "/api/v1/namespaces"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
HELD = ["del.conf.dev/hold"]


def configmap(name: str, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}}


def made(body: Json, path: str = MAPS) -> Step:
    # Pods are refused until the service account of their namespace has a token.
    wait = path == PODS
    return Step("POST", path, body, code=201, compare="code", eventually=wait)


def owned_by(number: int, name: str, *, blocks: bool = False) -> Json:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": name,
        "uid": f"${number}.metadata.uid",
    }
    return {**reference, "blockOwnerDeletion": True} if blocks else reference


def gone(path: str) -> Step:
    return Step("GET", path, code=404, compare="code", eventually=True)


def there(path: str, **has: Any) -> Step:
    return Step("GET", path, has=has)


def delete(path: str, options: Json | None = None, **more: Any) -> Step:
    return Step("DELETE", path, options, **more)


def freed(path: str) -> Step:
    change = {"metadata": {"finalizers": None}}
    return Step("PATCH", path, change, MERGE_PATCH, compare="code")


def pod(name: str, **spec: Any) -> Json:
    containers = [{"name": "c", "image": "i:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


OPTIONS: tuple[Case, ...] = (
    Case(
        "deletion: a policy that does not exist",
        (
            made(configmap("opt-a")),
            delete(
                f"{MAPS}/opt-a",
                {"propagationPolicy": "Sideways"},
                code=422,
                has={"reason": "Invalid"},
            ),
            there(f"{MAPS}/opt-a"),
        ),
    ),
    Case(
        "deletion: orphanDependents and a policy exclude each other",
        (
            made(configmap("opt-b")),
            delete(
                f"{MAPS}/opt-b",
                {"propagationPolicy": "Orphan", "orphanDependents": True},
                code=422,
            ),
        ),
    ),
    Case(
        "deletion: preconditions by uid and by version",
        (
            made(configmap("opt-c")),
            delete(f"{MAPS}/opt-c", {"preconditions": {"uid": "other"}}, code=409),
            delete(
                f"{MAPS}/opt-c",
                {"preconditions": {"resourceVersion": "1"}},
                code=409,
                compare=("reason", "details"),
            ),
            delete(
                f"{MAPS}/opt-c",
                {
                    "preconditions": {
                        "uid": "$0.metadata.uid",
                        "resourceVersion": "$0.metadata.resourceVersion",
                    }
                },
            ),
            gone(f"{MAPS}/opt-c"),
        ),
    ),
    Case(
        "deletion: a dry run deletes nothing",
        (
            made(configmap("opt-d")),
            delete(f"{MAPS}/opt-d", query={"dryRun": "All"}),
            there(f"{MAPS}/opt-d"),
            delete(f"{MAPS}/opt-d", {"dryRun": ["Some"]}, code=422, old=(422, {})),
            there(f"{MAPS}/opt-d"),
        ),
    ),
    Case(
        "deletion: what is not there is not found, whatever the options",
        (
            delete(f"{MAPS}/opt-none", code=404),
            delete(f"{MAPS}/opt-none", {"preconditions": {"uid": "x"}}, code=404),
        ),
    ),
    Case(
        "deletion: a precondition holds for what is being deleted, too",
        (
            made(configmap("opt-e", finalizers=HELD)),
            delete(f"{MAPS}/opt-e"),
            delete(f"{MAPS}/opt-e", {"preconditions": {"uid": "other"}}, code=409),
            delete(f"{MAPS}/opt-e", {"preconditions": {"uid": "$0.metadata.uid"}}),
            freed(f"{MAPS}/opt-e"),
            gone(f"{MAPS}/opt-e"),
        ),
    ),
)

PROPAGATION: tuple[Case, ...] = (
    Case(
        "deletion: Foreground waits for a dependent that blocks",
        (
            made(configmap("fg-a")),
            made(
                configmap(
                    "fg-a-1",
                    finalizers=HELD,
                    ownerReferences=[owned_by(0, "fg-a", blocks=True)],
                )
            ),
            delete(f"{MAPS}/fg-a", {"propagationPolicy": "Foreground"}, compare="code"),
            Step(
                "GET",
                f"{MAPS}/fg-a-1",
                has={"metadata.finalizers": HELD},
                compare=("metadata.finalizers",),
                eventually=True,
            ),
            Step(
                "GET",
                f"{MAPS}/fg-a",
                has={"metadata.finalizers": ["foregroundDeletion"]},
                compare=("metadata.finalizers",),
            ),
        ),
    ),
    Case(
        "deletion: a policy is changed while the object waits",
        (
            made(configmap("fg-c", finalizers=HELD)),
            delete(f"{MAPS}/fg-c", {"propagationPolicy": "Background"}, compare="code"),
            Step(
                "GET",
                f"{MAPS}/fg-c",
                has={"metadata.finalizers": HELD},
                compare=("metadata.finalizers",),
            ),
            freed(f"{MAPS}/fg-c"),
            gone(f"{MAPS}/fg-c"),
        ),
    ),
    Case(
        "deletion: who is being deleted is not made again",
        (
            made(configmap("again", finalizers=HELD)),
            delete(f"{MAPS}/again", compare="code"),
            Step(
                "POST",
                MAPS,
                configmap("again"),
                code=409,
                has={"reason": "AlreadyExists"},
                compare="code",
            ),
            freed(f"{MAPS}/again"),
            made(configmap("again")),
            there(f"{MAPS}/again", **{"metadata.deletionTimestamp": ABSENT}),
        ),
    ),
)

GRACE: tuple[Case, ...] = (
    Case(
        "deletion: a pod without a node has no grace",
        (
            made(pod("grace-a"), PODS),
            delete(f"{PODS}/grace-a", compare="code"),
            gone(f"{PODS}/grace-a"),
        ),
    ),
    Case(
        "deletion: a pod on a node has its grace, which only shrinks",
        (
            made(pod("grace-b", nodeName="n"), PODS),
            delete(
                f"{PODS}/grace-b",
                has={"metadata.deletionGracePeriodSeconds": 30},
                compare=("metadata.deletionGracePeriodSeconds",),
            ),
            delete(
                f"{PODS}/grace-b",
                {"gracePeriodSeconds": 60},
                has={"metadata.deletionGracePeriodSeconds": 30},
                compare=("metadata.deletionGracePeriodSeconds",),
            ),
            delete(
                f"{PODS}/grace-b",
                {"gracePeriodSeconds": 5},
                has={"metadata.deletionGracePeriodSeconds": 5},
                compare=("metadata.deletionGracePeriodSeconds",),
            ),
            delete(f"{PODS}/grace-b", {"gracePeriodSeconds": 0}, compare="code"),
            gone(f"{PODS}/grace-b"),
        ),
    ),
    Case(
        "deletion: the grace of a pod's own",
        (
            made(pod("grace-c", nodeName="n", terminationGracePeriodSeconds=7), PODS),
            delete(
                f"{PODS}/grace-c",
                has={"metadata.deletionGracePeriodSeconds": 7},
                compare=("metadata.deletionGracePeriodSeconds",),
            ),
            delete(
                f"{PODS}/grace-c", query={"gracePeriodSeconds": "0"}, compare="code"
            ),
            gone(f"{PODS}/grace-c"),
        ),
    ),
)

COLLECTIONS: tuple[Case, ...] = (
    Case(
        "deletion: of a collection, by labels",
        (
            made(configmap("col-a", labels={"col": "1"})),
            made(configmap("col-b", labels={"col": "2"})),
            delete(MAPS, query={"labelSelector": "col=1"}, compare="code"),
            gone(f"{MAPS}/col-a"),
            there(f"{MAPS}/col-b"),
        ),
    ),
    Case(
        "deletion: of a collection, by name",
        (
            made(configmap("col-c", labels={"col": "3"})),
            made(configmap("col-d", labels={"col": "3"})),
            delete(
                MAPS, query={"fieldSelector": "metadata.name=col-c"}, compare="code"
            ),
            gone(f"{MAPS}/col-c"),
            there(f"{MAPS}/col-d"),
        ),
    ),
    Case(
        "deletion: of a collection, tried only",
        (
            made(configmap("col-e", labels={"col": "4"})),
            delete(
                MAPS,
                query={"labelSelector": "col=4", "dryRun": "All"},
                compare="code",
            ),
            there(f"{MAPS}/col-e"),
        ),
    ),
)

SPACE: tuple[Case, ...] = (
    Case(
        "deletion: a namespace says what holds it",
        (
            made({"metadata": {"name": "{ns}-held"}}, SPACES),
            made(
                configmap("holder", finalizers=HELD), f"{SPACES}/{{ns}}-held/configmaps"
            ),
            delete(f"{SPACES}/{{ns}}-held", compare="code"),
            Step(
                "GET",
                f"{SPACES}/{{ns}}-held",
                has={
                    "status.phase": "Terminating",
                    "status.conditions.3.type": "NamespaceContentRemaining",
                    "status.conditions.3.reason": "SomeResourcesRemain",
                    "status.conditions.4.message": "Some content in the namespace has "
                    "finalizers remaining: del.conf.dev/hold in 1 resource instances",
                },
                compare=("status",),
                eventually=True,
            ),
            freed(f"{SPACES}/{{ns}}-held/configmaps/holder"),
            gone(f"{SPACES}/{{ns}}-held"),
        ),
    ),
)

CASES: tuple[Case, ...] = (*OPTIONS, *PROPAGATION, *GRACE, *COLLECTIONS, *SPACE)
