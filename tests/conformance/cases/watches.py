"""Watches: from a version, with initial events, by selectors, in other forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import JSON, MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS"]

Json = dict[str, Any]

GROUP = "watches.conf.dev"
THINGS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/views"
EVERY_THING = f"/apis/{GROUP}/v1/views"
OLD_THINGS = f"/apis/{GROUP}/v1/watch/namespaces/{{ns}}/views"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
OLD_MAPS = "/api/v1/watch/namespaces/{ns}/configmaps"
BOTH = ("1.20", "1.36")
NEW = ("1.36",)
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
CRDS = (
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"views.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "views", "kind": "View"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                    "additionalPrinterColumns": COLUMNS,
                }
            ],
        },
    },
)


def post(path: str, body: Any, **more: Any) -> Step:
    return Step("POST", path, body, code=201, **more)


def view(name: str, size: int = 1, **metadata: Any) -> Json:
    named = {"name": name, **metadata}
    head = {"apiVersion": f"{GROUP}/v1", "kind": "View"}
    return {**head, "metadata": named, "spec": {"size": size}}


def create(*names: str, **metadata: Any) -> tuple[Step, ...]:
    return tuple(post(THINGS, view(name, **metadata)) for name in names)


def config(name: str, **metadata: Any) -> Json:
    named = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}


def patch(path: str, body: Any) -> Step:
    return Step("PATCH", path, body, MERGE_PATCH)


def watch(path: str = THINGS, code: int = 200, /, **more: Any) -> Step:
    """A watch whose query has all parameters that are not options of a step."""
    names = ("has", "compare", "old", "accept")
    options = {name: more.pop(name) for name in names if name in more}
    query = {"watch": "true", **{name: str(value) for name, value in more.items()}}
    return Step("GET", path, query=query, code=code, **options)


VERSION = "$0.metadata.resourceVersion"
SELECTED = {"fieldSelector": "metadata.name=a"}
# A controller makes one in every namespace.
OWN = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}


def types(*found: str) -> Json:
    wanted: Json = {f"{i}.type": kind for i, kind in enumerate(found)}
    return {**wanted, str(len(found)): ABSENT}


# ---------------------------------------------------------------------- events


def events() -> Iterator[Case]:
    yield Case(
        "a watch from a version shows what came later",
        (
            *create("a"),
            patch(f"{THINGS}/a", {"spec": {"size": 2}}),
            *create("b"),
            Step("DELETE", f"{THINGS}/a"),
            watch(
                resourceVersion=VERSION,
                has={
                    **types("MODIFIED", "ADDED", "DELETED"),
                    "0.object.spec.size": 2,
                    "2.object.metadata.name": "a",
                },
            ),
            watch(resourceVersion="$2.metadata.resourceVersion", has=types("DELETED")),
        ),
        servers=BOTH,
    )
    yield Case(
        "a watch of a built-in kind",
        (
            post(MAPS, config("a")),
            patch(f"{MAPS}/a", {"data": {"k": "v"}}),
            Step("DELETE", f"{MAPS}/a"),
            watch(
                MAPS,
                resourceVersion=VERSION,
                **OWN,
                has={**types("MODIFIED", "DELETED"), "0.object.kind": "ConfigMap"},
            ),
        ),
    )
    yield Case(
        "a watch without a version begins with what there is",
        (
            *create("a"),
            watch(**SELECTED, has=types("ADDED")),
            watch(**SELECTED, resourceVersion=0, has=types("ADDED")),
            watch(**SELECTED, resourceVersion="", has=types("ADDED")),
            watch(fieldSelector="metadata.name=b", has=types()),
        ),
        servers=BOTH,
    )
    yield Case(
        "a watch with a selector shows what enters and leaves it",
        (
            *create("a"),
            patch(f"{THINGS}/a", {"metadata": {"labels": {"l": "1"}}}),
            patch(f"{THINGS}/a", {"spec": {"size": 2}}),
            patch(f"{THINGS}/a", {"metadata": {"labels": {"l": "2"}}}),
            patch(f"{THINGS}/a", {"spec": {"size": 3}}),
            patch(f"{THINGS}/a", {"metadata": {"labels": {"l": "1"}}}),
            Step("DELETE", f"{THINGS}/a"),
            watch(
                resourceVersion=VERSION,
                labelSelector="l=1",
                has=types("ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"),
            ),
            watch(
                resourceVersion=VERSION,
                labelSelector="l=2",
                has={
                    **types("ADDED", "MODIFIED", "DELETED"),
                    "2.object.metadata.labels.l": "2",
                },
            ),
            watch(
                resourceVersion=VERSION, fieldSelector="metadata.name=b", has=types()
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "an object that waits for a finalizer is modified first",
        (
            *create("a", finalizers=["conf.dev/wait"]),
            Step("DELETE", f"{THINGS}/a"),
            patch(f"{THINGS}/a", {"metadata": {"finalizers": None}}),
            watch(
                resourceVersion=VERSION,
                has={
                    **types("MODIFIED", "DELETED"),
                    "0.object.metadata.generation": 2,
                },
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "a watch across namespaces",
        (
            *create("a", labels={"of": "{ns}"}),
            *create("b", labels={"of": "{ns}"}),
            watch(
                EVERY_THING,
                resourceVersion=VERSION,
                labelSelector="of={ns}",
                has={**types("ADDED"), "0.object.metadata.name": "b"},
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "a watch from the future is empty",
        (watch(resourceVersion=99999999, has=types()),),
        servers=BOTH,
    )
    yield Case(
        "a version that is too old is told in the stream",
        (
            *create("a"),
            watch(
                resourceVersion=1,
                has={
                    **types("ERROR"),
                    "0.object.code": 410,
                    "0.object.reason": "Expired",
                },
                compare=("0.type", "0.object.reason", "0.object.kind", "1"),
            ),
        ),
        servers=BOTH,
    )


# ------------------------------------------------------------------- addresses


def addresses() -> Iterator[Case]:
    yield Case(
        "what counts as a watch",
        (
            *create("a"),
            Step(
                "GET",
                THINGS,
                query={**SELECTED, "watch": "0"},
                has={"kind": "ViewList"},
            ),
            Step(
                "GET",
                THINGS,
                query={**SELECTED, "watch": "False"},
                has={"kind": "ViewList"},
            ),
            Step("GET", f"{THINGS}/a", query={"watch": "yes"}, has={"kind": "View"}),
            watch(**SELECTED, watch="1", has=types("ADDED")),
        ),
        servers=BOTH,
    )
    yield Case(
        "the old paths of watches",
        (
            *create("a"),
            watch(OLD_THINGS, **SELECTED, has=types("ADDED")),
            watch(f"{OLD_THINGS}/a", has=types("ADDED")),
            watch(f"{OLD_THINGS}/b", has=types()),
            watch(f"{OLD_THINGS}/a", **SELECTED, has=types("ADDED")),
            watch(
                f"{OLD_THINGS}/a",
                400,
                fieldSelector="metadata.name=b",
                has={
                    "message": "fieldSelector metadata.name doesn't match "
                    "requested name"
                },
            ),
            watch(f"{OLD_THINGS}/a", resourceVersion=VERSION, has=types()),
        ),
        servers=BOTH,
    )
    yield Case(
        "the old paths of watches of built-in kinds",
        (
            post(MAPS, config("a")),
            post(MAPS, config("b")),
            watch(f"{OLD_MAPS}/a", has=types("ADDED")),
            watch(OLD_MAPS, resourceVersion=VERSION, **OWN, has=types("ADDED")),
            watch(
                "/api/v1/watch/namespaces/{ns}",
                compare=("0.type", "0.object.metadata.name", "1"),
                has=types("ADDED"),
            ),
            watch("/api/v1/watch/nothings", 404),
            watch("/api/v1/nothings", 404),
        ),
    )


# --------------------------------------------------------------------- options


def options() -> Iterator[Case]:
    yield Case(
        "options of watches that cannot be read",
        (
            *(
                watch(THINGS, 500, resourceVersion=version, has={"reason": ABSENT})
                for version in ("abc", "-1")
            ),
            *(
                watch(THINGS, 400, timeoutSeconds=text, has={"reason": "BadRequest"})
                for text in ("abc", "", "99999999999999999999", "1.5")
            ),
            watch(THINGS, 400, limit="abc"),
            watch(THINGS, 400, labelSelector="a in"),
            watch(THINGS, 400, fieldSelector="spec.size=1"),
            watch(limit=1, fieldSelector="metadata.name=no", has=types()),
        ),
        servers=BOTH,
    )
    yield Case(
        "options of watches that exclude each other",
        tuple(
            watch(THINGS, 422, **query, has={"reason": "Invalid"}, old=(code, {}))
            for code, query in (
                (422, {"resourceVersionMatch": "NotOlderThan"}),
                (422, {"resourceVersionMatch": "Exact", "resourceVersion": "0"}),
                (422, {"resourceVersionMatch": "Exact", "resourceVersion": "7"}),
                (200, {"continue": "abc"}),
                (200, {"sendInitialEvents": "true"}),
                (200, {"sendInitialEvents": "false"}),
                (200, {"sendInitialEvents": "", "allowWatchBookmarks": "true"}),
                (422, {"sendInitialEvents": "1", "resourceVersionMatch": "Exact"}),
            )
        ),
        servers=BOTH,
    )
    initial = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    end = {"k8s.io/initial-events-end": "true"}
    yield Case(
        "initial events, and the bookmark behind them",
        (
            *create("a", "b"),
            watch(
                **initial,
                has={
                    **types("ADDED", "ADDED", "BOOKMARK"),
                    "2.object.metadata.annotations": end,
                    "2.object.kind": "View",
                    "2.object.spec": ABSENT,
                },
            ),
            watch(**initial, **SELECTED, has=types("ADDED", "BOOKMARK")),
            watch(
                **initial,
                resourceVersion=VERSION,
                labelSelector="no",
                has=types("BOOKMARK"),
            ),
            watch(
                **initial,
                resourceVersion=0,
                **SELECTED,
                has=types("ADDED", "BOOKMARK"),
            ),
        ),
        servers=NEW,
    )
    yield Case(
        "initial events without bookmarks",
        (
            *create("a"),
            watch(
                sendInitialEvents="true",
                resourceVersionMatch="NotOlderThan",
                has=types("ADDED"),
            ),
            watch(
                sendInitialEvents="false",
                resourceVersionMatch="NotOlderThan",
                has=types(),
            ),
            watch(
                sendInitialEvents="0",
                resourceVersionMatch="NotOlderThan",
                resourceVersion=VERSION,
                has=types(),
            ),
        ),
        servers=NEW,
    )
    yield Case(
        "initial events of a version that is yet to come",
        (
            watch(
                **initial,
                resourceVersion=99999999,
                timeoutSeconds=5,
                has={
                    **types("ERROR"),
                    "0.object.reason": "Timeout",
                    "0.object.code": 504,
                },
                compare=("0.type", "0.object.reason", "0.object.details"),
            ),
        ),
        servers=NEW,
    )
    yield Case(
        "a bookmark in another form",
        (
            watch(
                **initial,
                fieldSelector="metadata.name=no",
                accept=f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                has={
                    **types("BOOKMARK"),
                    "0.object.kind": "PartialObjectMetadata",
                    "0.object.metadata.annotations": end,
                },
            ),
        ),
        servers=NEW,
    )


# ----------------------------------------------------------------------- forms

TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"


def forms() -> Iterator[Case]:
    yield Case(
        "a watch of metadata only",
        (
            *create("a"),
            watch(
                **SELECTED,
                accept=f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                has={
                    **types("ADDED"),
                    "0.object.kind": "PartialObjectMetadata",
                    "0.object.spec": ABSENT,
                },
            ),
            watch(
                **SELECTED,
                accept=f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
                has=types(),
            ),
        ),
        servers=BOTH,
    )
    table = {"0.object.kind": "Table", "0.object.columnDefinitions.1.name": "Size"}
    yield Case(
        "a watch of tables names the columns once",
        (
            *create("a"),
            patch(f"{THINGS}/a", {"spec": {"size": 2}}),
            patch(f"{THINGS}/a", {"spec": {"size": 3}}),
            watch(
                resourceVersion=VERSION,
                accept=TABLE,
                has={
                    **types("MODIFIED", "MODIFIED"),
                    **table,
                    "1.object.columnDefinitions": None,
                    "1.object.rows.0.cells.1": 3,
                },
                compare=(
                    "0.object.rows",
                    "1.object.rows",
                    "1.object.columnDefinitions",
                ),
            ),
            watch(
                resourceVersion=VERSION,
                includeObject="None",
                accept=TABLE,
                has={**types("MODIFIED", "MODIFIED"), "0.object.rows.0.object": None},
                compare=("0.object.rows", "1.object"),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "forms that a watch cannot have",
        (
            watch(THINGS, 406, accept="text/plain"),
            watch(THINGS, 406, accept="application/yaml", compare="code"),
            watch(THINGS, 406, accept=f"{JSON};as=Thing;v=v1;g=meta.k8s.io"),
            watch(
                fieldSelector="metadata.name=no",
                accept=f"{JSON};stream=watch",
                has=types(),
            ),
        ),
        servers=BOTH,
    )


CASES = (*events(), *addresses(), *options(), *forms())
