"""Conformance cases of deletion: options, propagation, grace, collections."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.runtime.protocol import MERGE_PATCH
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


def linked(name: str, *owners: Json, **metadata: Any) -> Step:
    return made(configmap(name, ownerReferences=list(owners), **metadata))


def owners_of(name: str, *names: str) -> Step:
    """Look until these, in this order, own the object."""
    has: Json = {
        f"metadata.ownerReferences.{number}.name": owner
        for number, owner in enumerate(names)
    }
    has[f"metadata.ownerReferences.{len(names)}"] = ABSENT
    if not names:
        has = {"metadata.ownerReferences": ABSENT}
    return Step(
        "GET", f"{MAPS}/{name}", has=has, compare=(*has, "metadata"), eventually=True
    )


def in_the(policy: str, name: str) -> Step:
    return delete(f"{MAPS}/{name}", {"propagationPolicy": policy}, compare="code")


OWNERS: tuple[Case, ...] = (
    Case(
        "garbage: a chain goes in the background",
        (
            made(configmap("chain-1")),
            linked("chain-2", owned_by(0, "chain-1")),
            linked("chain-3", owned_by(1, "chain-2")),
            in_the("Background", "chain-1"),
            gone(f"{MAPS}/chain-3"),
            gone(f"{MAPS}/chain-2"),
        ),
    ),
    Case(
        "garbage: a chain goes in the foreground, the last one first",
        (
            made(configmap("front-1")),
            linked("front-2", owned_by(0, "front-1", blocks=True)),
            linked("front-3", owned_by(1, "front-2", blocks=True), finalizers=HELD),
            in_the("Foreground", "front-1"),
            Step(
                "GET",
                f"{MAPS}/front-2",
                has={"metadata.finalizers": ["foregroundDeletion"]},
                compare=("metadata.finalizers",),
                eventually=True,
            ),
            freed(f"{MAPS}/front-3"),
            gone(f"{MAPS}/front-1"),
            gone(f"{MAPS}/front-2"),
        ),
    ),
    Case(
        "garbage: a diamond goes as a whole",
        (
            made(configmap("top")),
            linked("left", owned_by(0, "top", blocks=True)),
            linked("right", owned_by(0, "top", blocks=True)),
            linked(
                "bottom",
                owned_by(1, "left", blocks=True),
                owned_by(2, "right", blocks=True),
            ),
            in_the("Foreground", "top"),
            gone(f"{MAPS}/top"),
            gone(f"{MAPS}/bottom"),
        ),
    ),
    Case(
        "garbage: one owner of two is enough to live",
        (
            made(configmap("two-a")),
            made(configmap("two-b")),
            linked("two-c", owned_by(0, "two-a"), owned_by(1, "two-b")),
            in_the("Background", "two-a"),
            owners_of("two-c", "two-b"),
            in_the("Background", "two-b"),
            gone(f"{MAPS}/two-c"),
        ),
    ),
    Case(
        "garbage: orphans keep their own dependents",
        (
            made(configmap("orph-1")),
            linked("orph-2", owned_by(0, "orph-1")),
            linked("orph-3", owned_by(1, "orph-2")),
            in_the("Orphan", "orph-1"),
            gone(f"{MAPS}/orph-1"),
            owners_of("orph-2"),
            owners_of("orph-3", "orph-2"),
        ),
    ),
    Case(
        "garbage: who does not block does not hold its owner",
        (
            made(configmap("free-1")),
            linked("free-2", owned_by(0, "free-1"), finalizers=HELD),
            in_the("Foreground", "free-1"),
            gone(f"{MAPS}/free-1"),
            freed(f"{MAPS}/free-2"),
            gone(f"{MAPS}/free-2"),
        ),
    ),
    Case(
        "garbage: owners that have never been there",
        (
            linked(
                "never",
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "x",
                    "uid": "00000000-0000-0000-0000-000000000001",
                },
            ),
            gone(f"{MAPS}/never"),
        ),
    ),
    Case(
        "garbage: an owner under that name, but another one",
        (
            made(configmap("namesake")),
            linked(
                "mistaken",
                {
                    **owned_by(0, "namesake"),
                    "uid": "00000000-0000-0000-0000-000000000002",
                },
            ),
            gone(f"{MAPS}/mistaken"),
            there(f"{MAPS}/namesake"),
        ),
    ),
    Case(
        "garbage: an owner elsewhere is none",
        (
            made({"metadata": {"name": "{ns}-else"}}, SPACES),
            made(configmap("far"), f"{SPACES}/{{ns}}-else/configmaps"),
            linked("near", owned_by(1, "far")),
            gone(f"{MAPS}/near"),
            there(f"{SPACES}/{{ns}}-else/configmaps/far"),
            delete(f"{SPACES}/{{ns}}-else", compare="code"),
        ),
    ),
    Case(
        "garbage: a circle in the foreground",
        (
            made(configmap("ring-a")),
            linked("ring-b", owned_by(0, "ring-a", blocks=True)),
            Step(
                "PATCH",
                f"{MAPS}/ring-a",
                {"metadata": {"ownerReferences": [owned_by(1, "ring-b", blocks=True)]}},
                MERGE_PATCH,
                compare="code",
            ),
            in_the("Foreground", "ring-a"),
            gone(f"{MAPS}/ring-a"),
            gone(f"{MAPS}/ring-b"),
        ),
    ),
    Case(
        "garbage: an owner of an unknown kind is waited for",
        (
            linked(
                "unknown",
                {
                    "apiVersion": "nobody.conf.dev/v1",
                    "kind": "Nobody",
                    "name": "x",
                    "uid": "00000000-0000-0000-0000-000000000003",
                },
            ),
            owners_of("unknown", "x"),
        ),
    ),
    Case(
        "deletion: a second, gentler policy orphans after all",
        (
            made(configmap("soft-1", finalizers=HELD)),
            linked("soft-2", owned_by(0, "soft-1", blocks=True), finalizers=HELD),
            in_the("Foreground", "soft-1"),
            in_the("Orphan", "soft-1"),
            # Whether it was deleted in the meantime is a matter of luck.
            Step(
                "GET",
                f"{MAPS}/soft-2",
                has={"metadata.ownerReferences": ABSENT},
                compare=("metadata.ownerReferences", "metadata.finalizers"),
                eventually=True,
            ),
            freed(f"{MAPS}/soft-1"),
            gone(f"{MAPS}/soft-1"),
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
        "deletion: of a collection, some of it held",
        (
            made(configmap("col-f", labels={"col": "5"}, finalizers=HELD)),
            made(configmap("col-g", labels={"col": "5"})),
            delete(MAPS, query={"labelSelector": "col in (5)"}, compare="code"),
            gone(f"{MAPS}/col-g"),
            there(f"{MAPS}/col-f", **{"metadata.deletionGracePeriodSeconds": 0}),
            freed(f"{MAPS}/col-f"),
            gone(f"{MAPS}/col-f"),
        ),
    ),
    Case(
        "deletion: of a collection, in the foreground",
        (
            made(configmap("col-h", labels={"col": "6"})),
            linked("col-i", owned_by(0, "col-h", blocks=True), finalizers=HELD),
            delete(
                MAPS,
                {"propagationPolicy": "Foreground"},
                query={"labelSelector": "col=6"},
                compare="code",
            ),
            Step(
                "GET",
                f"{MAPS}/col-h",
                has={"metadata.finalizers": ["foregroundDeletion"]},
                compare=("metadata.finalizers",),
            ),
            Step(
                "GET",
                f"{MAPS}/col-i",
                has={"metadata.deletionGracePeriodSeconds": 0},
                compare=("metadata.finalizers",),
                eventually=True,
            ),
            freed(f"{MAPS}/col-i"),
            gone(f"{MAPS}/col-h"),
        ),
    ),
    Case(
        "deletion: of a collection that has nothing, and of a wrong selector",
        (
            delete(MAPS, query={"labelSelector": "col=none"}, compare=("items",)),
            delete(MAPS, query={"labelSelector": "col in"}, code=400, compare="code"),
            delete(
                MAPS,
                {"propagationPolicy": "Sideways"},
                query={"labelSelector": "col=none"},
                code=422,
            ),
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
        "deletion: nothing is made in a namespace that ends",
        (
            made({"metadata": {"name": "{ns}-end"}}, SPACES),
            made(configmap("last", finalizers=HELD), f"{SPACES}/{{ns}}-end/configmaps"),
            delete(f"{SPACES}/{{ns}}-end", compare=("status", "spec")),
            Step(
                "POST",
                f"{SPACES}/{{ns}}-end/configmaps",
                configmap("late"),
                code=403,
                has={"details.causes.0.reason": "NamespaceTerminating"},
            ),
            Step(
                "PATCH",
                f"{SPACES}/{{ns}}-end/configmaps/last",
                {"data": {"a": "b"}},
                MERGE_PATCH,
                compare=("data",),
            ),
            delete(f"{SPACES}/{{ns}}-end", compare=("spec", "status.phase")),
            freed(f"{SPACES}/{{ns}}-end/configmaps/last"),
        ),
    ),
    Case(
        "deletion: a namespace's dry run and preconditions",
        (
            made({"metadata": {"name": "{ns}-dry"}}, SPACES),
            delete(
                f"{SPACES}/{{ns}}-dry", query={"dryRun": "All"}, compare=("status",)
            ),
            delete(
                f"{SPACES}/{{ns}}-dry", {"preconditions": {"uid": "other"}}, code=409
            ),
            delete(
                f"{SPACES}/{{ns}}-dry",
                {"preconditions": {"resourceVersion": "1"}},
                code=409,
                compare=("reason", "details"),
            ),
            delete(
                f"{SPACES}/{{ns}}-dry",
                {"preconditions": {"uid": "$0.metadata.uid"}},
                compare=("status",),
            ),
        ),
    ),
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
        slow=True,
    ),
)

CASES: tuple[Case, ...] = (
    *OPTIONS,
    *PROPAGATION,
    *OWNERS,
    *GRACE,
    *COLLECTIONS,
    *SPACE,
)
