"""The conformance cases, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS"]

Json = dict[str, Any]

FOOS = "/apis/conf.dev/v1/namespaces/{ns}/foos"
BARS = "/apis/conf.dev/v1/namespaces/{ns}/bars"
VALS = "/apis/conf.dev/v1/namespaces/{ns}/vals"
SIZES = "/apis/conf.dev/v1/namespaces/{ns}/sizes"
TWICE_1 = "/apis/conf.dev/v1/namespaces/{ns}/twices"
TWICE_2 = "/apis/conf.dev/v2/namespaces/{ns}/twices"
WIDES = "/apis/conf.dev/v1/wides"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
PODS = "/api/v1/namespaces/{ns}/pods"
SPACES = "/api/v1/namespaces"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


# ------------------------------------------------------------------ the kinds

OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
INTEGER: Json = {"type": "integer"}
TEXT: Json = {"type": "string"}


def version(name: str, schema: Json, **more: Any) -> Json:
    found = {"name": name, "served": True, "storage": True, **more}
    return {**found, "schema": {"openAPIV3Schema": schema}}


def crd(kind: str, *versions: Json, scope: str = "Namespaced", **names: Any) -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.conf.dev"},
        "spec": {
            "group": "conf.dev",
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions),
        },
    }


STATUS: Json = {"subresources": {"status": {}}}
ITEM: Json = {
    "type": "object",
    "required": ["k"],
    "properties": {"k": TEXT, "v": {**INTEGER, "default": 5}},
}
KEYED: Json = {
    "type": "array",
    "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT}},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
}
SPEC: dict[str, Json] = {
    "size": {**INTEGER, "minimum": 1, "maximum": 10},
    "name": {**TEXT, "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
    "mode": {**TEXT, "enum": ["A", "B"], "default": "A"},
    "ratio": {"type": "number"},
    "maybe": {**TEXT, "nullable": True},
    "or": {**TEXT, "nullable": True, "default": "d"},
    "def": {**TEXT, "default": "d"},
    "port": {"x-kubernetes-int-or-string": True},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": ITEM},
    "map": {"type": "object", "additionalProperties": INTEGER, "maxProperties": 2},
    "free": {
        **OPEN,
        "properties": {"known": {"type": "object", "properties": {"a": INTEGER}}},
    },
    "template": {**OPEN, "x-kubernetes-embedded-resource": True},
    "flag": {"type": "boolean"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    "keyed": KEYED,
    "one": {
        "type": "object",
        "properties": {"a": INTEGER, "b": INTEGER},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "when": {**TEXT, "format": "date-time"},
    "deep": {
        "type": "object",
        "default": {},
        "properties": {"inner": {**INTEGER, "default": 3}},
    },
}
VAL: Json = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": SPEC},
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}
SIZE: Json = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
}
CRDS = (
    crd("Foo", version("v1", OPEN, **STATUS), shortNames=["fo"], categories=["all"]),
    crd("Bar", version("v1", OPEN)),
    crd("Val", version("v1", VAL, **STATUS)),
    crd("Wide", version("v1", OPEN), scope="Cluster"),
    crd("Size", version("v1", OPEN, **SIZE)),
    crd("Twice", version("v1", OPEN), version("v2", OPEN, storage=False)),
)


# -------------------------------------------------------------------- objects


def made(api: str, kind: str, name: str, meta: Json | None, parts: Json) -> Json:
    metadata = {"name": name, **(meta or {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def foo(name: str = "a", meta: Json | None = None, **parts: Any) -> Json:
    return made("conf.dev/v1", "Foo", name, meta, parts)


def bar(name: str = "a", meta: Json | None = None, **parts: Any) -> Json:
    return made("conf.dev/v1", "Bar", name, meta, parts)


def val(called: str = "a", /, **spec: Any) -> Json:
    return made("conf.dev/v1", "Val", called, None, {"spec": spec})


def configmap(name: str = "a", meta: Json | None = None, **parts: Any) -> Json:
    return made("v1", "ConfigMap", name, meta, parts)


POD_SPEC: Json = {
    "containers": [{"name": "c", "image": "i"}],
    "automountServiceAccountToken": False,
}


def pod(name: str = "a", meta: Json | None = None) -> Json:
    return made("v1", "Pod", name, meta, {"spec": POD_SPEC})


def deployment(name: str = "a", **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": POD_SPEC}
    parts = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return made("apps/v1", "Deployment", name, None, {"spec": parts})


def owned(index: int, **more: Any) -> Json:
    """Metadata of an object owned by the config map of an earlier answer."""
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": f"${index}.metadata.name",
        "uid": f"${index}.metadata.uid",
        **more,
    }
    return {"ownerReferences": [reference]}


# ---------------------------------------------------------------------- steps


def get(path: str, **more: Any) -> Step:
    return Step("GET", path, **more)


def post(path: str, body: Any, code: int = 201, **more: Any) -> Step:
    return Step("POST", path, body, code=code, **more)


def put(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PUT", path, body, code=code, **more)


def merge(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PATCH", path, body, type=MERGE_PATCH, code=code, **more)


def json_patch(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PATCH", path, body, type=JSON_PATCH, code=code, **more)


def strategic(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PATCH", path, body, type=STRATEGIC_PATCH, code=code, **more)


def delete(path: str, body: Any = None, code: int = 200, **more: Any) -> Step:
    return Step("DELETE", path, body, code=code, **more)


def operation(op: str, path: str, **more: Any) -> Json:
    return {"op": op, "path": path, **more}


NOT_FOUND = {"reason": "NotFound", "code": 404}
CONFLICT = {"reason": "Conflict", "code": 409}
INVALID = {"reason": "Invalid", "code": 422}
BAD = {"reason": "BadRequest", "code": 400}
# Answers whose texts come from a decoder: their words differ between versions.
WORDLESS = ("status", "reason", "code")
META = ("metadata",)
# Cases of custom kinds alone, which a current server answers as 1.20 did.
BOTH = ("1.20", "1.36")


# ---------------------------------------------------------------------- cases


def discovery() -> Iterator[Case]:
    yield Case(
        "discovery of a custom kind",
        (
            get(
                "/apis/conf.dev/v1",
                has={"groupVersion": "conf.dev/v1", "kind": "APIResourceList"},
            ),
            get(
                "/apis/apps/v1",
                has={"resources.0.kind": "ControllerRevision"},
                # 1.20 returns no singular names of built-in kinds.
                old=(200, {"resources.0.singularName": ""}),
            ),
        ),
    )
    yield Case(
        "discovery of a custom group",
        (
            get(
                "/apis/conf.dev",
                has={
                    "kind": "APIGroup",
                    "name": "conf.dev",
                    "preferredVersion.version": "v2",
                },
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "unknown groups, versions and resources",
        (
            get("/apis/none.dev", code=404),
            get("/apis/none.dev/v1", code=404),
            get("/apis/none.dev/v1/things", code=404),
            get("/apis/conf.dev/v9", code=404),
            get("/apis/conf.dev/v1/nonsense", code=404),
            get("/api/v1/nonsense", code=404, has=NOT_FOUND),
            get("/apis/apps/v1/nonsense", code=404, has=NOT_FOUND),
            get(MAPS + "/a/nonsense", code=404, has=NOT_FOUND),
            get(FOOS + "/a/nonsense", code=404, has=NOT_FOUND),
            get("/api/v1/configmaps/a", code=404, has=NOT_FOUND),
            get("/apis/conf.dev/v1/foos/a", code=404),
        ),
    )
    yield Case(
        "the health of a server",
        (get("/healthz"), get("/readyz"), get("/version", compare="code")),
        servers=BOTH,
    )


def creation() -> Iterator[Case]:
    yield Case(
        "create a custom object",
        (
            post(
                FOOS,
                foo(spec={"x": 1}, status={"y": 1}),
                has={
                    "metadata.generation": 1,
                    "metadata.namespace": ANY,
                    "status": ABSENT,
                },
            ),
            get(FOOS + "/a", has={"spec.x": 1, "status": ABSENT}),
            post(FOOS, foo(), 409, has={"reason": "AlreadyExists"}),
        ),
        servers=BOTH,
    )
    yield Case(
        "create without status subresource keeps status",
        (post(BARS, bar(status={"y": 1}), has={"status.y": 1}),),
        servers=BOTH,
    )
    yield Case(
        "create a config map",
        (
            post(MAPS, configmap(data={"k": "v"}), has={"metadata.generation": ABSENT}),
            post(MAPS, configmap(), 409, has={"reason": "AlreadyExists"}),
            get(MAPS + "/a"),
        ),
    )
    yield Case(
        "generateName",
        (
            post(FOOS, {**foo(), "metadata": {"generateName": "gen-"}}),
            post(MAPS, {**configmap(), "metadata": {"generateName": "gen-"}}),
        ),
    )
    yield Case(
        "names",
        (
            post(FOOS, {**foo(), "metadata": {}}, 422, has=INVALID),
            post(FOOS, foo("Bad_Name"), 422, has=INVALID),
            post(MAPS, configmap("Bad_Name"), 422, has=INVALID, compare=WORDLESS),
            post(MAPS, {**configmap(), "metadata": {}}, 422, has=INVALID),
            post(SPACES, made("v1", "Namespace", "a.b", None, {}), 422, has=INVALID),
        ),
    )
    yield Case(
        "labels, annotations, finalizers",
        (
            post(FOOS, foo(meta={"labels": {"a b": "x y"}}), 422, has=INVALID),
            post(FOOS, foo(meta={"annotations": {"a b": "x"}}), 422, has=INVALID),
            post(FOOS, foo(meta={"finalizers": ["a b/c"]}), 422, has=INVALID),
            post(FOOS, foo(meta={"labels": {"a": 1}}), 400, has=BAD, compare=WORDLESS),
            post(FOOS, foo(meta={"labels": [1]}), 400, has=BAD, compare=WORDLESS),
            post(FOOS, {**foo(), "metadata": "x"}, 400, has=BAD, compare=WORDLESS),
            post(
                MAPS,
                configmap(meta={"labels": {"a": 1}}),
                400,
                has=BAD,
                compare=WORDLESS,
            ),
        ),
    )
    yield Case(
        "owner references need all their parts",
        (
            post(
                FOOS,
                foo(meta={"ownerReferences": [{"name": "x"}]}),
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "what clients cannot set",
        (
            post(
                FOOS,
                foo(
                    meta={
                        "uid": "u",
                        "generation": 7,
                        "unknown": 1,
                        "selfLink": "x",
                        "creationTimestamp": "2020-01-01T00:00:00Z",
                        "deletionTimestamp": "2020-01-01T00:00:00Z",
                    }
                ),
                has={
                    "metadata.generation": 1,
                    "metadata.unknown": ABSENT,
                    "metadata.selfLink": ABSENT,
                    "metadata.deletionTimestamp": ABSENT,
                },
            ),
            post(FOOS, foo("b", {"resourceVersion": "5"}), 500),
            post(MAPS, configmap("b", {"resourceVersion": "5"}), 500),
        ),
    )
    yield Case(
        "bodies of another type",
        (
            post(FOOS, bar(), 422, old=(422, INVALID), compare=WORDLESS),
            post(FOOS, [1], 400, has=BAD, compare=WORDLESS),
            post(FOOS, {"metadata": {"name": "x"}}, 400, has=BAD, compare=WORDLESS),
            post(
                MAPS,
                {**configmap(), "kind": "Secret"},
                400,
                has=BAD,
                compare=WORDLESS,
            ),
            post(
                MAPS,
                {**configmap(), "apiVersion": "v2"},
                400,
                has=BAD,
                compare=WORDLESS,
            ),
            post(MAPS, [1], 400, has=BAD, compare=WORDLESS),
            post(MAPS, configmap("n", data={"k": 1}), 400, has=BAD, compare=WORDLESS),
            post(PODS, {**pod("n"), "spec": [1]}, 400, has=BAD, compare=WORDLESS),
            post(MAPS, {"metadata": {"name": "untyped"}}, has={"kind": "ConfigMap"}),
        ),
    )
    yield Case(
        "namespaces of bodies and paths",
        (
            post(FOOS, foo(meta={"namespace": "other"}), 400, has=BAD),
            post(MAPS, configmap(meta={"namespace": "other"}), 400, has=BAD),
            post(
                "/apis/conf.dev/v1/namespaces/none-such/foos",
                foo(),
                404,
                has=NOT_FOUND,
            ),
            post(
                "/api/v1/namespaces/none-such/configmaps",
                configmap(),
                404,
                has=NOT_FOUND,
            ),
            post("/apis/conf.dev/v1/foos", foo(), 404),
            post("/api/v1/configmaps", configmap(), 405),
            get("/apis/conf.dev/v1/namespaces/none-such/foos", has={"items": []}),
        ),
    )
    yield Case(
        "methods that are not allowed",
        (
            put(MAPS, configmap(), 405),
            merge(MAPS, {}, 405),
            post(MAPS + "/a", configmap(), 405),
            put(FOOS, foo(), 400, has=BAD),
            merge(FOOS, {}, 400, has=BAD),
            post(FOOS, foo()),
            post(FOOS + "/a/status", foo(), 405),
        ),
    )
    yield Case(
        "dry run",
        (
            post(FOOS, foo(), query={"dryRun": "All"}, compare="code"),
            get(FOOS + "/a", code=404),
            post(FOOS, foo(spec={"x": 1})),
            merge(
                FOOS + "/a",
                {"spec": {"x": 2}},
                query={"dryRun": "All"},
                has={"spec.x": 2},
                compare=("spec",),
            ),
            delete(FOOS + "/a", query={"dryRun": "All"}, compare="code"),
            get(FOOS + "/a", has={"spec.x": 1}),
        ),
        servers=BOTH,
    )


class Anything:
    """Equal to whatever is there."""

    def __eq__(self, other: object) -> bool:
        return other is not ABSENT

    __hash__ = None  # type: ignore[assignment]


ANY = Anything()


def updates() -> Iterator[Case]:
    yield Case(
        "put needs a resourceVersion on custom kinds",
        (
            post(FOOS, foo(spec={"x": 1})),
            put(FOOS + "/a", foo(spec={"x": 2}), 422, has=INVALID, old=(422, INVALID)),
            put(
                FOOS + "/a",
                foo(
                    meta={"resourceVersion": "$0.metadata.resourceVersion"},
                    spec={"x": 2},
                    status={"ignored": True},
                ),
                has={"metadata.generation": 2, "status": ABSENT},
            ),
            put(
                FOOS + "/a",
                foo(
                    meta={"resourceVersion": "$0.metadata.resourceVersion"},
                    spec={"x": 3},
                ),
                409,
                has=CONFLICT,
            ),
            put(FOOS + "/none", foo("none"), 404, has=NOT_FOUND),
            put(FOOS + "/b", foo(), 400, has=BAD),
            put(FOOS + "/a", "$2"),
        ),
        servers=BOTH,
    )
    yield Case(
        "unconditional put of built-in kinds",
        (
            post(MAPS, configmap(data={"k": "1"})),
            put(MAPS + "/a", configmap(data={"k": "2"}), has={"data.k": "2"}),
            put(MAPS + "/none", configmap("none"), 404, has=NOT_FOUND),
            put(
                MAPS + "/a",
                configmap(meta={"resourceVersion": "1"}),
                409,
                has=CONFLICT,
            ),
            put(MAPS + "/a", configmap(meta={"uid": "bad"}), 409, has=CONFLICT),
            put(
                MAPS + "/a",
                configmap(meta={"namespace": "other"}),
                400,
                has=BAD,
                old=(400, BAD),
            ),
        ),
    )
    yield Case(
        "put that creates",
        (
            put(
                "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l",
                made("coordination.k8s.io/v1", "Lease", "l", None, {"spec": {}}),
                201,
            ),
        ),
    )
    yield Case(
        "put with another uid is a conflict",
        (
            post(FOOS, foo()),
            put(
                FOOS + "/a",
                foo(
                    meta={
                        "uid": "wrong",
                        "resourceVersion": "$0.metadata.resourceVersion",
                    }
                ),
                409,
                has=CONFLICT,
                compare=WORDLESS,
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "a write that changes nothing",
        (
            post(FOOS, foo(spec={"x": 1})),
            merge(FOOS + "/a", {"spec": {"x": 1}}),
            merge(FOOS + "/a", {"spec": {"x": True}}, has={"metadata.generation": 2}),
            merge(FOOS + "/a", {}),
            post(MAPS, configmap(data={"k": "1"})),
            merge(MAPS + "/a", {"data": {"k": "1"}}),
            # 1.20 rewrites the managers of the status that it ignores.
            merge(FOOS + "/a", {"status": {"ignored": 1}}, compare=("spec", "status")),
        ),
    )
    yield Case(
        "generation",
        (
            post(FOOS, foo(spec={"x": 1})),
            merge(
                FOOS + "/a",
                {"metadata": {"labels": {"l": "1"}}},
                has={"metadata.generation": 1},
            ),
            merge(FOOS + "/a", {"other": 1}, has={"metadata.generation": 2}),
            merge(
                FOOS + "/a/status", {"status": {"y": 1}}, has={"metadata.generation": 2}
            ),
            merge(
                FOOS + "/a",
                {"metadata": {"generation": 99}},
                has={"metadata.generation": 2},
            ),
            post(BARS, bar(spec={"x": 1})),
            merge(BARS + "/a", {"status": {"y": 1}}, has={"metadata.generation": 2}),
            merge(
                BARS + "/a",
                {"metadata": {"annotations": {"a": "1"}}},
                has={"metadata.generation": 2},
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "what a patch cannot change",
        (
            post(FOOS, foo(spec={"x": 1})),
            merge(FOOS + "/a", {"metadata": {"uid": "x"}}, 422, has=INVALID),
            merge(FOOS + "/a", {"metadata": {"name": "x"}}, 400, has=BAD),
            merge(
                FOOS + "/a",
                {"metadata": {"namespace": "x"}},
                400,
                has=BAD,
                old=(400, BAD),
            ),
            merge(FOOS + "/a", {"metadata": None}, 400, has=BAD),
            merge(
                FOOS + "/a",
                {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}},
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            merge(FOOS + "/a", {"metadata": {"creationTimestamp": None}}),
            merge(FOOS + "/a", {"kind": "Other"}, 422, has=INVALID),
            merge(FOOS + "/a", {"apiVersion": "conf.dev/v9"}, 422, has=INVALID),
            post(MAPS, configmap()),
            merge(MAPS + "/a", {"metadata": {"uid": "x"}}, 422, has=INVALID),
            merge(MAPS + "/a", {"metadata": {"name": "x"}}, 400, has=BAD),
            merge(
                MAPS + "/a",
                {"metadata": {"namespace": "x"}},
                400,
                has=BAD,
                old=(400, BAD),
            ),
        ),
    )
    yield Case(
        "a patch with a resourceVersion",
        (
            post(FOOS, foo()),
            merge(
                FOOS + "/a", {"metadata": {"resourceVersion": "1"}}, 409, has=CONFLICT
            ),
            merge(FOOS + "/a", {"metadata": {"resourceVersion": "x"}}, 500),
            merge(
                FOOS + "/a/status",
                {"metadata": {"resourceVersion": "1"}, "status": {"y": 1}},
                409,
                has=CONFLICT,
            ),
            merge(
                FOOS + "/a",
                {
                    "metadata": {"resourceVersion": "$0.metadata.resourceVersion"},
                    "spec": {"x": 1},
                },
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "patches of what is not there",
        (
            merge(FOOS + "/none", {}, 404, has=NOT_FOUND),
            merge(FOOS + "/none/status", {}, 404, has=NOT_FOUND),
            merge(FOOS + "/none", {"metadata": {"uid": "x"}}, 404, has=NOT_FOUND),
            get(FOOS + "/none", code=404, has=NOT_FOUND),
            get(MAPS + "/none", code=404, has=NOT_FOUND),
            delete(FOOS + "/none", code=404, has=NOT_FOUND),
            delete(MAPS + "/none", code=404, has=NOT_FOUND),
        ),
    )


def subresources() -> Iterator[Case]:
    yield Case(
        "status of a custom kind takes only status",
        (
            post(FOOS, foo(spec={"x": 1}, meta={"labels": {"l": "1"}})),
            merge(
                FOOS + "/a/status",
                {
                    "status": {"y": 1},
                    "spec": {"x": 2},
                    "metadata": {
                        "labels": {"l": "2"},
                        "annotations": {"a": "1"},
                        "finalizers": ["a/b"],
                    },
                },
                has={
                    "spec.x": 1,
                    "status.y": 1,
                    "metadata.labels.l": "1",
                    "metadata.annotations": ABSENT,
                    "metadata.finalizers": ABSENT,
                },
            ),
            merge(FOOS + "/a/status", {"metadata": {"labels": {"l": "3"}}}),
            merge(FOOS + "/a/status", {"metadata": {"uid": "x"}, "status": {"z": 1}}),
            get(FOOS + "/a/status", has={"status.z": 1}),
            put(
                FOOS + "/a/status",
                foo(
                    meta={"resourceVersion": "$3.metadata.resourceVersion"},
                    status={"w": 1},
                ),
                has={"status.w": 1, "status.z": ABSENT, "spec.x": 1},
            ),
            put(
                FOOS + "/a",
                foo(
                    meta={"resourceVersion": "$5.metadata.resourceVersion"},
                    spec={"x": 5},
                ),
                has={"status.w": 1, "spec.x": 5},
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "no status subresource",
        (
            post(BARS, bar()),
            merge(BARS + "/a/status", {"status": {}}, 404, has=NOT_FOUND),
            get(BARS + "/a/status", code=404, has=NOT_FOUND),
            merge(MAPS + "/a/status", {"status": {}}, 404, has=NOT_FOUND),
        ),
    )
    yield Case(
        "status of pods",
        (
            # The service account of a new namespace is there a moment later.
            post(
                PODS,
                pod(),
                has={"status.phase": "Pending"},
                compare=META,
                eventually=True,
            ),
            merge(
                PODS + "/a",
                {"status": {"phase": "Failed"}, "metadata": {"labels": {"m": "1"}}},
                has={"status.phase": "Pending"},
                compare=META,
            ),
            merge(
                PODS + "/a/status",
                {
                    "status": {"phase": "Running"},
                    "metadata": {"annotations": {"a": "1"}, "labels": {"l": "1"}},
                },
                has={"status.phase": "Running", "metadata.annotations.a": "1"},
                compare=META,
            ),
            delete(
                PODS + "/a",
                has={"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0},
                compare=META,
            ),
            get(PODS + "/a", code=404),
        ),
    )
    scheduled = {**pod(), "spec": {**POD_SPEC, "nodeName": "nowhere"}}
    yield Case(
        "scheduled pods are given time",
        (
            post(PODS, scheduled, compare=META, eventually=True),
            delete(
                PODS + "/a",
                has={"metadata.deletionGracePeriodSeconds": 30},
                compare=META,
            ),
            delete(
                PODS + "/a",
                {"gracePeriodSeconds": 5},
                has={"metadata.deletionGracePeriodSeconds": 5},
                compare=META,
            ),
            delete(PODS + "/a", compare=META),
            delete(PODS + "/a", {"gracePeriodSeconds": 0}, compare=META),
            get(PODS + "/a", code=404),
        ),
    )
    yield Case(
        "generation and status of deployments",
        (
            post(
                DEPLOYMENTS,
                deployment(paused=True, replicas=0),
                has={"metadata.generation": 1},
                compare=META,
            ),
            merge(
                DEPLOYMENTS + "/a",
                {"metadata": {"labels": {"l": "1"}}},
                has={"metadata.generation": 1},
                compare=("metadata.generation", "metadata.labels"),
            ),
            merge(
                DEPLOYMENTS + "/a",
                {"spec": {"minReadySeconds": 1}},
                has={"metadata.generation": 2},
                compare=("metadata.generation",),
            ),
            merge(
                DEPLOYMENTS + "/a/status",
                {"status": {"collisionCount": 5}, "spec": {"replicas": 9}},
                has={"metadata.generation": 2, "spec.replicas": 0},
                compare=("metadata.generation", "spec.replicas"),
            ),
        ),
    )
    yield Case(
        "scale of a custom kind",
        (
            post(
                SIZES, made("conf.dev/v1", "Size", "a", None, {"spec": {"replicas": 2}})
            ),
            get(SIZES + "/a/scale", has={"kind": "Scale", "spec.replicas": 2}),
            merge(
                SIZES + "/a/scale", {"spec": {"replicas": 5}}, has={"spec.replicas": 5}
            ),
            get(SIZES + "/a", has={"spec.replicas": 5, "metadata.generation": 2}),
            merge(
                SIZES + "/a/status",
                {"status": {"replicas": 3, "selector": "a=b"}},
                has={"status.replicas": 3},
            ),
            get(
                SIZES + "/a/scale",
                has={"status.replicas": 3, "status.selector": "a=b"},
            ),
            merge(
                SIZES + "/a/scale", {"spec": {"replicas": -1}}, 422, compare=WORDLESS
            ),
            get(FOOS + "/a/scale", code=404),
        ),
        servers=BOTH,
    )
    yield Case(
        "scale of a deployment",
        (
            post(DEPLOYMENTS, deployment(paused=True, replicas=0), compare=META),
            get(
                DEPLOYMENTS + "/a/scale",
                has={"status.selector": "app=a"},
                compare="code",
            ),
            merge(
                DEPLOYMENTS + "/a/scale",
                {"spec": {"replicas": 2}},
                has={"spec.replicas": 2},
                compare=("spec", "kind", "apiVersion"),
            ),
        ),
    )


def patches() -> Iterator[Case]:
    yield Case(
        "merge patch",
        (
            post(FOOS, foo(spec={"x": {"y": 1, "z": [1, 2]}, "k": 1})),
            merge(
                FOOS + "/a",
                {"spec": {"x": {"y": None, "z": [3], "w": {"n": None}}, "k": 2}},
                has={"spec.x.z": [3], "spec.x.y": ABSENT},
            ),
            merge(FOOS + "/a", {"spec": None}, has={"spec": ABSENT}),
            merge(
                FOOS + "/a", {"metadata": {"labels": None, "annotations": {"a": "1"}}}
            ),
            merge(FOOS + "/a", [1], 400, old=(422, INVALID), has=BAD),
        ),
        servers=BOTH,
    )
    yield Case(
        "JSON patch",
        (
            post(FOOS, foo(spec={"x": 1, "l": [1, 2]})),
            json_patch(
                FOOS + "/a",
                [
                    operation("test", "/spec/x", value=1),
                    operation("add", "/spec/q", value={"r": 1}),
                    operation("copy", "/spec/w", **{"from": "/spec/q"}),
                    operation("move", "/spec/v", **{"from": "/spec/q"}),
                    operation("replace", "/spec/x", value=2),
                    operation("remove", "/spec/l/0"),
                    operation("add", "/spec/l/-", value=3),
                ],
                has={"spec": {"x": 2, "l": [2, 3], "w": {"r": 1}, "v": {"r": 1}}},
            ),
            json_patch(
                FOOS + "/a", [operation("test", "/spec/x", value=9)], 422, has=INVALID
            ),
            json_patch(
                FOOS + "/a", [operation("remove", "/spec/no")], 422, has=INVALID
            ),
            json_patch(
                FOOS + "/a", [operation("add", "/spec/no/a", value=1)], 422, has=INVALID
            ),
            json_patch(FOOS + "/a", {"op": "add"}, 400, has=BAD, compare=WORDLESS),
            json_patch(
                FOOS + "/a/status",
                [operation("add", "/status", value={"y": 1})],
                has={"status.y": 1},
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "JSON patch that replaces what is not there",
        (
            post(FOOS, foo(spec={"x": 1})),
            json_patch(
                FOOS + "/a",
                [operation("replace", "/spec/no", value=1)],
                422,
                has=INVALID,
                # The library of 1.20 adds it.
                old=(200, {"spec.no": 1}),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "JSON patch with an unknown operation",
        (
            post(FOOS, foo()),
            json_patch(
                FOOS + "/a",
                [operation("bogus", "/spec/x")],
                400,
                has=BAD,
                old=(422, INVALID),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "unknown patch types",
        (
            post(FOOS, foo()),
            strategic(FOOS + "/a", {}, 415),
            Step("PATCH", FOOS + "/a", {}, code=415),
            Step("PATCH", FOOS + "/a", {}, type="text/plain", code=415),
            post(MAPS, configmap()),
            Step("PATCH", MAPS + "/a", {}, code=415, compare=WORDLESS),
        ),
    )
    yield Case(
        "strategic merge patch",
        (
            post(MAPS, configmap(meta={"finalizers": ["a/a"]}, data={"k": "1"})),
            strategic(
                MAPS + "/a",
                {"data": {"l": "2"}, "metadata": {"finalizers": ["b/b"]}},
                has={
                    "data": {"k": "1", "l": "2"},
                    "metadata.finalizers": ["b/b", "a/a"],
                },
            ),
            strategic(
                MAPS + "/a",
                {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/a"]}},
                has={"metadata.finalizers": ["b/b"]},
            ),
            strategic(
                MAPS + "/a",
                {"data": {"$patch": "replace", "m": "3"}},
                has={"data": {"m": "3"}},
            ),
            strategic(MAPS + "/a", {"data": None}, has={"data": ABSENT}),
        ),
    )
    yield Case(
        "strategic merge of containers",
        (
            post(DEPLOYMENTS, deployment(paused=True, replicas=0), compare=META),
            strategic(
                DEPLOYMENTS + "/a",
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [
                                    {"name": "c", "image": "new"},
                                    {"name": "d", "image": "j"},
                                ]
                            }
                        }
                    }
                },
                compare=META,
            ),
            get(
                DEPLOYMENTS + "/a",
                compare=(
                    "spec.template.spec.containers.0.image",
                    "spec.template.spec.containers.0.name",
                    "spec.template.spec.containers.1.name",
                ),
            ),
        ),
    )


def deletions() -> Iterator[Case]:
    yield Case(
        "delete",
        (
            post(FOOS, foo()),
            delete(FOOS + "/a", has={"kind": "Status", "status": "Success"}),
            get(FOOS + "/a", code=404),
            post(MAPS, configmap()),
            delete(MAPS + "/a", has={"status": "Success"}),
            delete(MAPS + "/a", code=404),
        ),
    )
    yield Case(
        "finalizers",
        (
            post(FOOS, foo(meta={"finalizers": ["a/b", "c/d"]})),
            delete(
                FOOS + "/a",
                has={
                    "metadata.generation": 2,
                    "metadata.deletionGracePeriodSeconds": 0,
                    "metadata.deletionTimestamp": ANY,
                },
            ),
            delete(FOOS + "/a", has={"metadata.generation": 2}),
            merge(
                FOOS + "/a",
                {"metadata": {"finalizers": ["a/b", "e/f"]}},
                422,
                has=INVALID,
            ),
            merge(FOOS + "/a", {"metadata": {"deletionTimestamp": None}}),
            merge(
                FOOS + "/a",
                {"metadata": {"deletionGracePeriodSeconds": 7}},
                422,
                has=INVALID,
            ),
            merge(
                FOOS + "/a",
                {"metadata": {"finalizers": ["a/b"]}, "spec": {"x": 1}},
                has={"metadata.generation": 3},
            ),
            merge(
                FOOS + "/a",
                {"metadata": {"finalizers": None}, "spec": {"x": 2}},
                has={"metadata.generation": 4, "spec.x": 2},
            ),
            get(FOOS + "/a", code=404),
        ),
        servers=BOTH,
    )
    yield Case(
        "a name is taken until its object is gone",
        (
            post(FOOS, foo(meta={"finalizers": ["a/b"]})),
            delete(FOOS + "/a"),
            post(FOOS, foo(), 409, has={"reason": "AlreadyExists"}),
            merge(FOOS + "/a", {"metadata": {"finalizers": None}}),
            post(FOOS, foo()),
        ),
        servers=BOTH,
    )
    yield Case(
        "finalizers of built-in kinds",
        (
            post(MAPS, configmap(meta={"finalizers": ["a/b"]})),
            delete(MAPS + "/a", has={"metadata.generation": ABSENT}),
            merge(MAPS + "/a", {"data": {"k": "1"}}),
            json_patch(MAPS + "/a", [operation("remove", "/metadata/finalizers")]),
            get(MAPS + "/a", code=404),
        ),
    )
    yield Case(
        "a deleted object can be made anew",
        (
            post(FOOS, foo(spec={"x": 1})),
            delete(FOOS + "/a"),
            post(FOOS, foo(spec={"x": 2}), has={"metadata.generation": 1}),
            merge(
                FOOS + "/a/status",
                {"metadata": {"uid": "$0.metadata.uid"}, "status": {"y": 1}},
                # The uid of the old object does not protect the new one.
                has={"status.y": 1},
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "preconditions",
        (
            post(FOOS, foo()),
            delete(FOOS + "/a", {"preconditions": {"uid": "x"}}, 409, has=CONFLICT),
            delete(
                FOOS + "/a",
                {"preconditions": {"resourceVersion": "1"}},
                409,
                has=CONFLICT,
            ),
            delete(FOOS + "/a", {"propagationPolicy": "Bogus"}, 422, has=INVALID),
            delete(FOOS + "/a", {"preconditions": {"uid": "$0.metadata.uid"}}),
        ),
        servers=BOTH,
    )
    yield Case(
        "delete a collection",
        (
            post(FOOS, foo("a", {"labels": {"l": "1"}})),
            post(FOOS, foo("b", {"labels": {"l": "1"}, "finalizers": ["x/y"]})),
            post(FOOS, foo("c", {"labels": {"l": "2"}})),
            delete(FOOS, query={"labelSelector": "l=1"}, compare=("kind", "items")),
            get(FOOS + "/a", code=404),
            get(FOOS + "/b", has={"metadata.deletionTimestamp": ANY}),
            get(FOOS + "/c"),
            delete(SPACES, code=405),
        ),
    )
    yield Case(
        "background deletion of dependents",
        (
            post(MAPS, configmap("owner")),
            post(MAPS, configmap("child", owned(0))),
            post(FOOS, foo("child", owned(0))),
            delete(MAPS + "/owner"),
            get(MAPS + "/child", code=404, eventually=True, compare="code"),
            get(FOOS + "/child", code=404, eventually=True, compare="code"),
        ),
    )
    yield Case(
        "foreground deletion",
        (
            post(MAPS, configmap("owner")),
            post(
                MAPS,
                configmap(
                    "child",
                    {**owned(0, blockOwnerDeletion=True), "finalizers": ["x/y"]},
                ),
            ),
            delete(
                MAPS + "/owner",
                {"propagationPolicy": "Foreground"},
                has={"metadata.finalizers": ["foregroundDeletion"]},
            ),
            get(
                MAPS + "/child",
                eventually=True,
                has={"metadata.deletionTimestamp": ANY},
            ),
            get(MAPS + "/owner"),
            merge(MAPS + "/child", {"metadata": {"finalizers": None}}),
            get(MAPS + "/owner", code=404, eventually=True),
        ),
    )
    yield Case(
        "orphaning deletion",
        (
            post(MAPS, configmap("owner")),
            post(MAPS, configmap("child", owned(0))),
            # The collector must have seen the child.
            get(MAPS + "/child"),
            delete(
                MAPS + "/owner",
                {"propagationPolicy": "Orphan"},
                has={"metadata.finalizers": ["orphan"]},
            ),
            get(MAPS + "/owner", code=404, eventually=True),
            get(MAPS + "/child", has={"metadata.ownerReferences": ABSENT}),
        ),
    )
    jobs = "/apis/batch/v1/namespaces/{ns}/jobs"
    job_spec = {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}
    yield Case(
        "jobs orphan their pods unless told otherwise",
        (
            post(
                jobs,
                made("batch/v1", "Job", "j", None, {"spec": job_spec}),
                has={"spec.backoffLimit": 6},
                compare=("spec.backoffLimit", "spec.template.spec.restartPolicy"),
            ),
            delete(
                jobs + "/j",
                has={"kind": "Job", "metadata.finalizers": ["orphan"]},
                compare=("kind", "metadata.finalizers"),
            ),
            get(jobs + "/j", code=404, eventually=True),
        ),
    )
    yield Case(
        "an owner that never was",
        (
            post(
                MAPS,
                configmap(
                    meta={
                        "ownerReferences": [
                            {
                                "apiVersion": "v1",
                                "kind": "ConfigMap",
                                "name": "none",
                                "uid": "11111111-1111-4111-a111-111111111111",
                            }
                        ]
                    }
                ),
            ),
            get(MAPS + "/a", code=404, eventually=True),
        ),
    )
    yield Case(
        "one of two owners goes",
        (
            post(MAPS, configmap("one")),
            post(MAPS, configmap("two")),
            post(
                MAPS,
                configmap(
                    "child",
                    {
                        "ownerReferences": [
                            owned(0)["ownerReferences"][0],
                            owned(1)["ownerReferences"][0],
                        ]
                    },
                ),
            ),
            delete(MAPS + "/one"),
            get(
                MAPS + "/child",
                eventually=True,
                has={
                    "metadata.ownerReferences.0.name": "two",
                    "metadata.ownerReferences.1": ABSENT,
                },
            ),
            delete(MAPS + "/two"),
            get(MAPS + "/child", code=404, eventually=True),
        ),
    )


def namespaces() -> Iterator[Case]:
    yield Case(
        "a namespace and its end",
        (
            post(
                SPACES,
                made("v1", "Namespace", "{ns}-x", None, {}),
                has={"status.phase": "Active", "spec.finalizers": ["kubernetes"]},
                compare=("spec", "status"),
            ),
            post(
                "/api/v1/namespaces/{ns}-x/configmaps",
                configmap(meta={"finalizers": ["a/b"]}),
            ),
            delete(
                SPACES + "/{ns}-x",
                has={
                    "status.phase": "Terminating",
                    "metadata.deletionGracePeriodSeconds": ABSENT,
                },
                compare=("spec", "status", "kind"),
            ),
            post(
                "/api/v1/namespaces/{ns}-x/configmaps",
                configmap("late"),
                403,
                has={"reason": "Forbidden", "details.causes.0.field": ANY},
            ),
            get(
                "/api/v1/namespaces/{ns}-x/configmaps/a",
                eventually=True,
                has={"metadata.deletionTimestamp": ANY},
            ),
            get(SPACES + "/{ns}-x", compare=("metadata.name", "spec")),
            merge(
                "/api/v1/namespaces/{ns}-x/configmaps/a",
                {"metadata": {"finalizers": None}},
            ),
            get(SPACES + "/{ns}-x", code=404, eventually=True),
        ),
    )
    yield Case(
        "immortal namespaces",
        (delete(SPACES + "/default", code=403, has={"reason": "Forbidden"}),),
    )


def defaults() -> Iterator[Case]:
    service = made("v1", "Service", "s", None, {"spec": {"ports": [{"port": 80}]}})
    yield Case(
        "defaults of built-in kinds",
        (
            post(
                DEPLOYMENTS,
                deployment(),
                has={"spec.replicas": 1, "spec.strategy.type": "RollingUpdate"},
                compare=(
                    "spec.replicas",
                    "spec.strategy",
                    "spec.revisionHistoryLimit",
                    "spec.progressDeadlineSeconds",
                    "spec.template.spec.restartPolicy",
                    "spec.template.spec.dnsPolicy",
                    "spec.template.spec.schedulerName",
                    "spec.template.spec.terminationGracePeriodSeconds",
                    "spec.template.spec.containers.0.terminationMessagePolicy",
                    "spec.template.spec.containers.0.resources",
                ),
            ),
            post(
                "/api/v1/namespaces/{ns}/services",
                service,
                compare=("spec.type", "spec.sessionAffinity", "status", "metadata"),
            ),
            post(
                SECRETS,
                made("v1", "Secret", "s", None, {"stringData": {"a": "b"}}),
                has={"type": "Opaque", "data": {"a": "Yg=="}, "stringData": ABSENT},
            ),
            delete(
                "/api/v1/namespaces/{ns}/services/s",
                # Today the deleted service itself is the answer.
                has={"kind": "Service"},
                old=(200, {"status": "Success"}),
            ),
            post(
                "/api/v1/namespaces/{ns}/serviceaccounts",
                made("v1", "ServiceAccount", "s", None, {}),
            ),
            delete(
                "/api/v1/namespaces/{ns}/serviceaccounts/s",
                has={"kind": "ServiceAccount"},
                # A controller may have given it a token by now.
                compare=("kind", "metadata.name"),
            ),
        ),
    )


def lists() -> Iterator[Case]:
    def labelled(name: str, **labels: str) -> Step:
        return post(FOOS, foo(name, {"labels": labels} if labels else None))

    def listed(selector: str, *names: str) -> Step:
        has = {f"items.{i}.metadata.name": name for i, name in enumerate(names)}
        return get(
            FOOS,
            query={"labelSelector": selector},
            has={**has, f"items.{len(names)}": ABSENT},
            compare=("kind", "apiVersion", "items"),
        )

    yield Case(
        "objects selected by their labels",
        (
            labelled("a", env="prod", tier="1"),
            labelled("b", env="test"),
            labelled("c"),
            listed("env=prod", "a"),
            listed("env==prod,tier=1", "a"),
            listed("env!=prod", "b", "c"),
            listed("env in (prod, test)", "a", "b"),
            listed("env notin (prod)", "b", "c"),
            listed("env", "a", "b"),
            listed("!env", "c"),
            listed("tier>0", "a"),
            listed("", "a", "b", "c"),
            get(
                FOOS,
                query={"labelSelector": "a in"},
                code=400,
                has=BAD,
                compare=WORDLESS,
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "field selectors",
        (
            post(FOOS, foo("a")),
            post(FOOS, foo("b")),
            get(
                FOOS,
                query={"fieldSelector": "metadata.name=b"},
                has={"items.0.metadata.name": "b", "items.1": ABSENT},
                compare=("items",),
            ),
            get(
                FOOS,
                query={"fieldSelector": "metadata.name!=b,metadata.namespace={ns}"},
                has={"items.0.metadata.name": "a", "items.1": ABSENT},
                compare=("items",),
            ),
            get(FOOS, query={"fieldSelector": "spec.x=1"}, code=400, has=BAD),
            get(FOOS, query={"fieldSelector": "bad"}, code=400, has=BAD),
            get(MAPS, query={"fieldSelector": "data.x=1"}, code=400, has=BAD),
            get(
                PODS,
                query={"fieldSelector": "status.phase=Running"},
                compare=("items",),
            ),
        ),
    )
    yield Case(
        "pages",
        (
            *(
                post(SECRETS, made("v1", "Secret", name, {"labels": {"p": "1"}}, {}))
                for name in ("p1", "p2", "p3")
            ),
            get(
                SECRETS,
                query={"limit": "2", "labelSelector": "p=1"},
                has={"items.1.metadata.name": "p2", "items.2": ABSENT},
                compare=("items", "kind"),
            ),
            get(
                SECRETS,
                query={
                    "limit": "2",
                    "labelSelector": "p=1",
                    "continue": "$3.metadata.continue",
                },
                has={"items.0.metadata.name": "p3", "metadata.continue": ABSENT},
                compare=("items", "kind"),
            ),
            get(SECRETS, query={"limit": "x"}, code=400, has=BAD),
            get(
                SECRETS,
                query={"limit": "1", "continue": "zzz"},
                code=400,
                has=BAD,
                compare=WORDLESS,
            ),
        ),
    )
    yield Case(
        "pages of custom kinds count what remains",
        (
            *(post(FOOS, foo(name)) for name in "abc"),
            get(
                FOOS,
                query={"limit": "1"},
                has={"metadata.remainingItemCount": 2},
                compare=("items", "metadata.remainingItemCount", "kind"),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "items of built-in lists do not repeat their type",
        (
            post(SECRETS, made("v1", "Secret", "s", {"labels": {"p": "1"}}, {})),
            get(
                SECRETS,
                query={"labelSelector": "p=1"},
                has={"items.0.kind": ABSENT, "kind": "SecretList"},
                compare=("items", "kind", "apiVersion"),
            ),
        ),
    )


def watches() -> Iterator[Case]:
    def since(index: int, **more: str) -> dict[str, str]:
        return {
            "watch": "true",
            "resourceVersion": f"${index}.metadata.resourceVersion",
            **more,
        }

    yield Case(
        "a watch shows every change",
        (
            get(FOOS, compare=("items",)),
            post(FOOS, foo(spec={"x": 1}, meta={"finalizers": ["a/b"]})),
            merge(FOOS + "/a", {"spec": {"x": 2}}),
            merge(FOOS + "/a", {"spec": {"x": 2}}),
            merge(FOOS + "/a/status", {"status": {"y": 1}}),
            delete(FOOS + "/a"),
            merge(FOOS + "/a", {"metadata": {"finalizers": []}, "spec": {"x": 3}}),
            # The deletion shows the object as it was stored, at a new version.
            get(
                FOOS,
                query=since(0),
                has={
                    "4.type": "DELETED",
                    "4.object.metadata.finalizers": ["a/b"],
                    "4.object.spec.x": 2,
                    "5": ABSENT,
                },
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "a watch with a label selector",
        (
            get(FOOS, compare=("items",)),
            post(FOOS, foo("a", {"labels": {"l": "1"}})),
            post(FOOS, foo("b", {"labels": {"l": "2"}})),
            merge(FOOS + "/a", {"metadata": {"labels": {"l": "2"}}}),
            merge(FOOS + "/b", {"metadata": {"labels": {"l": "1"}}}),
            delete(FOOS + "/a"),
            delete(FOOS + "/b"),
            get(
                FOOS,
                query=since(0, labelSelector="l=1"),
                has={
                    "0.type": "ADDED",
                    "1.type": "DELETED",
                    "1.object.metadata.labels.l": "1",
                    "2.type": "ADDED",
                    "2.object.metadata.name": "b",
                    "3.type": "DELETED",
                    "4": ABSENT,
                },
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "a watch without version begins with what is there",
        (
            post(FOOS, foo("a")),
            post(FOOS, foo("b")),
            merge(FOOS + "/a", {"spec": {"x": 1}}),
            # In no order, at least in 1.20, and from a cache that may be behind.
            get(
                FOOS,
                query={"watch": "true"},
                has={"0.type": "ADDED", "1.type": "ADDED", "2": ABSENT},
                compare="code",
                eventually=True,
            ),
            get(
                FOOS,
                query={"watch": "true", "fieldSelector": "metadata.name=a"},
                has={"0.object.spec.x": 1, "1": ABSENT},
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "watches that are refused",
        (
            get(FOOS, query={"watch": "true", "resourceVersion": "x"}, code=500),
            get("/apis/none.dev/v1/things", query={"watch": "true"}, code=404),
        ),
        servers=BOTH,
    )


def schemas() -> Iterator[Case]:
    full = {"def": "d", "mode": "A", "or": "d", "deep": {"inner": 3}}
    yield Case(
        "defaults and pruning",
        (
            post(VALS, val("a", size=1), has={"spec": {"size": 1, **full}}),
            post(
                VALS,
                {**val("b", size=1, unknown=1), "extra": 1},
                has={"spec": {"size": 1, **full}, "extra": ABSENT},
            ),
            post(
                VALS,
                val("c", size=1, deep={"inner": 4, "no": 1}),
                has={"spec.deep": {"inner": 4}},
            ),
            post(
                VALS,
                val("d", size=1, list=[{"k": "x", "z": 1}]),
                has={"spec.list": [{"k": "x", "v": 5}]},
            ),
            post(
                VALS,
                val("e", size=1, free={"x": {"y": 1}, "known": {"a": 1, "z": 2}}),
                has={"spec.free": {"x": {"y": 1}, "known": {"a": 1}}},
            ),
            post(
                VALS,
                val("f", size=1, any={"x": [1, {"y": None}]}),
                has={"spec.any": {"x": [1, {"y": None}]}},
            ),
            merge(VALS + "/a", {"spec": {"mode": None}}, has={"spec.mode": "A"}),
            merge(
                VALS + "/a", {"spec": {"unknown": 1}}, has={"spec": {"size": 1, **full}}
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "nulls",
        (
            post(
                VALS,
                val("a", size=1, mode=None, maybe=None, **{"or": None}),
                has={"spec.mode": "A", "spec.maybe": None, "spec.or": None},
            ),
            post(VALS, val("b", size=None), 422, has=INVALID),
            post(VALS, {**val("c"), "spec": None}, 422, has=INVALID),
            post(
                VALS, val("d", size=1, list=[None]), 422, has=INVALID, compare=WORDLESS
            ),
            post(
                VALS,
                val("e", size=1, name=None, list=None, map={"a": None}, any=None),
                has={"spec": {"size": 1, "map": {}, **full}},
            ),
            post(
                VALS,
                val("f", size=1, list=[{"k": None}]),
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            post(VALS, {**val("g", size=1), "status": None}, has={"status": ABSENT}),
        ),
        servers=BOTH,
    )
    yield Case(
        "numbers",
        (
            post(VALS, val("a", size=1.0, ratio=2.0), has={"spec.size": 1}),
            merge(VALS + "/a", {"spec": {"size": 1, "ratio": 2}}),
            merge(VALS + "/a", {"spec": {"ratio": 2.5}}, has={"spec.ratio": 2.5}),
            post(VALS, val("b", size=0), 422, has=INVALID),
            post(VALS, val("b", size=11), 422, has=INVALID),
            post(VALS, val("b", size=1.5), 422, has=INVALID, compare=WORDLESS),
            post(FOOS, foo(spec={"x": 1.0, "y": [2.0], "z": 1e3}), has={"spec.x": 1}),
        ),
        servers=BOTH,
    )
    yield Case(
        "types",
        tuple(
            # 1.20 calls these causes FieldValueInvalid.
            post(VALS, body, 422, has=INVALID, compare=("message", *WORDLESS))
            for body in (
                {**val(), "spec": []},
                {**val(), "spec": "x"},
                val(size="1"),
                val(size=True),
                val(size=1, port=1.5),
                val(size=1, port=True),
                val(size=1, list={"a": 1}),
                val(size=1, map={"a": 1, "b": "x"}),
                val(size=1, flag="true"),
            )
        ),
        servers=BOTH,
    )
    yield Case(
        "required fields and rules",
        tuple(
            post(VALS, body, 422, has=INVALID)
            for body in (
                {key: part for key, part in val().items() if key != "spec"},
                val(),
                val(size=1, name="a"),
                val(size=1, name="AB"),
                val(size=1, mode="C"),
                val(size=1, set=["a", "a"]),
                val(size=1, one={"a": 1, "b": 2}),
            )
        ),
        servers=BOTH,
    )
    yield Case(
        "rules that are put into other words today",
        tuple(
            post(VALS, body, 422, has=INVALID, compare=WORDLESS)
            for body in (
                val(size=1, keyed=[{"k": "a"}, {"k": "a"}]),
                val(size=1, template={"a": 1}),
                val(size=1, name="abcde"),
                val(size=1, list=[]),
                val(size=1, list=[{"k": "a"}, {}, {"k": 1}]),
                val(size=1, map={"a": 1, "b": 2, "c": 3}),
                val(size=1, one={}),
                val(size=1, when="bogus"),
                val(size=11, name="A"),
            )
        ),
        servers=BOTH,
    )
    yield Case(
        "embedded resources",
        (
            post(
                VALS,
                val(
                    size=1,
                    template={
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "metadata": {"name": "x", "bogus": 1},
                        "spec": {"q": 1},
                    },
                ),
                has={
                    "spec.template.metadata": {"name": "x"},
                    "spec.template.spec.q": 1,
                },
            ),
            post(VALS, val("p", size=1, port="http"), has={"spec.port": "http"}),
            post(VALS, val("q", size=1, port=80), has={"spec.port": 80}),
        ),
        servers=BOTH,
    )
    yield Case(
        "the schema of status",
        (
            post(VALS, val(size=1)),
            merge(
                VALS + "/a/status",
                {"status": {"phase": "x", "no": 1}},
                has={"status": {"phase": "x"}},
            ),
            merge(
                VALS + "/a/status",
                {"status": {"phase": 1}},
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            merge(
                VALS + "/a/status", {"status": "x"}, 422, has=INVALID, compare=WORDLESS
            ),
            merge(VALS + "/a", {"spec": {"size": 99}}, 422, has=INVALID),
        ),
        servers=BOTH,
    )


def definitions() -> Iterator[Case]:
    def changed(name: str, **spec: Any) -> Json:
        body = crd("Bad", version("v1", OPEN))
        return {**body, "metadata": {"name": name}, "spec": {**body["spec"], **spec}}

    yield Case(
        "definitions that are refused",
        (
            post(DEFINITIONS, changed("wrong"), 422, has=INVALID),
            post(DEFINITIONS, changed("bads.conf.dev", scope="X"), 422, has=INVALID),
            post(
                DEFINITIONS,
                changed(
                    "bads.conf.dev",
                    versions=[{"name": "v1", "served": True, "storage": True}],
                ),
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            post(
                DEFINITIONS,
                changed("bads.conf.dev", versions=[version("v1", OPEN, storage=False)]),
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            post(
                DEFINITIONS,
                changed(
                    "bads.conf.dev",
                    versions=[
                        version("v1", {"type": "object", "properties": {"a": {}}})
                    ],
                ),
                422,
                has=INVALID,
            ),
            post(
                DEFINITIONS,
                changed("bads.conf.dev", preserveUnknownFields=True),
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            post(DEFINITIONS, CRDS[0], 409, has={"reason": "AlreadyExists"}),
            post(
                DEFINITIONS,
                changed("bads.conf.dev", versions="x"),
                400,
                has=BAD,
                compare=WORDLESS,
            ),
        ),
        servers=BOTH,
    )
    body = crd("Late", version("v1", OPEN))
    path = DEFINITIONS + "/lates.conf.dev"
    lates = "/apis/conf.dev/v1/namespaces/{ns}/lates"
    late = made("conf.dev/v1", "Late", "a", {"finalizers": ["a/b"]}, {})
    yield Case(
        "the life of a definition",
        (
            post(DEFINITIONS, body, has={"status.storedVersions": ["v1"]}),
            get(
                path,
                eventually=True,
                has={
                    "status.conditions.1.type": "Established",
                    "status.conditions.1.status": "True",
                    "status.acceptedNames.kind": "Late",
                },
                compare=("spec", "status"),
            ),
            get(lates, eventually=True, compare=("items",)),
            post(lates, late, eventually=True),
            merge(
                path, {"spec": {"scope": "Cluster"}}, 422, has=INVALID, compare=WORDLESS
            ),
            delete(
                path,
                has={
                    "metadata.deletionTimestamp": ANY,
                    "metadata.generation": 1,
                    "metadata.deletionGracePeriodSeconds": ABSENT,
                },
                compare=("spec",),
            ),
            get(
                lates + "/a",
                eventually=True,
                has={"metadata.deletionTimestamp": ANY},
            ),
            post(
                lates,
                {**late, "metadata": {"name": "b"}},
                403,
                has={"reason": "Forbidden"},
                old=(405, {"reason": "MethodNotAllowed"}),
            ),
            merge(lates + "/a", {"metadata": {"finalizers": None}}),
            get(path, code=404, eventually=True),
            get(lates, code=404, eventually=True, compare="code"),
        ),
    )
    yield Case(
        "two versions of one kind",
        (
            post(TWICE_1, made("conf.dev/v1", "Twice", "a", None, {"spec": {"x": 1}})),
            get(TWICE_2 + "/a", has={"apiVersion": "conf.dev/v2", "spec.x": 1}),
            merge(
                TWICE_2 + "/a", {"spec": {"x": 2}}, has={"apiVersion": "conf.dev/v2"}
            ),
            get(TWICE_1 + "/a", has={"apiVersion": "conf.dev/v1", "spec.x": 2}),
            get(TWICE_2, has={"items.0.apiVersion": "conf.dev/v2"}, compare=("items",)),
            post(TWICE_2, made("conf.dev/v2", "Twice", "b", None, {})),
            delete(TWICE_2 + "/b"),
        ),
        servers=BOTH,
    )
    yield Case(
        "cluster-scoped custom kinds",
        (
            post(
                WIDES,
                made("conf.dev/v1", "Wide", "{ns}", None, {}),
                has={"metadata.namespace": ABSENT},
            ),
            get(WIDES + "/{ns}"),
            get("/apis/conf.dev/v1/namespaces/{ns}/wides", code=404),
            delete(WIDES + "/{ns}"),
        ),
        servers=BOTH,
    )


def events() -> Iterator[Case]:
    core = "/api/v1/namespaces/{ns}/events"
    new = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
    body = made(
        "v1",
        "Event",
        "e",
        None,
        {
            "involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
            "reason": "R",
            "message": "m",
            "type": "Normal",
        },
    )
    yield Case(
        "events are one resource with two faces",
        (
            post(
                core, body, has={"message": "m"}, compare=("reason", "involvedObject")
            ),
            get(
                new + "/e",
                has={"note": "m", "regarding.name": "p", "message": ABSENT},
                compare=("note", "regarding", "reason"),
            ),
            get(
                core,
                query={"fieldSelector": "involvedObject.name=p"},
                has={"items.0.metadata.name": "e"},
                compare=("kind",),
            ),
            delete(new + "/e"),
            get(core + "/e", code=404),
        ),
    )


CASES = tuple(
    case
    for group in (
        discovery,
        creation,
        updates,
        subresources,
        patches,
        deletions,
        namespaces,
        defaults,
        lists,
        watches,
        schemas,
        definitions,
        events,
    )
    for case in group()
)
