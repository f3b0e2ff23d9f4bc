"""Managed fields and server-side apply.

Custom kinds are compared with 1.36: 1.20 knows neither their shapes nor subresources.
Managers are named so that their order by time and by name is the same.
"""

from __future__ import annotations

from typing import Any

from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS_136"]

Json = dict[str, Any]

GROUP = "apply.conf.dev"
OPENS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/opens"
THINGS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/things"
PLAINS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/plains"
PAIRS_1 = f"/apis/{GROUP}/v1/namespaces/{{ns}}/pairs"
PAIRS_2 = f"/apis/{GROUP}/v2/namespaces/{{ns}}/pairs"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
SERVICES = "/api/v1/namespaces/{ns}/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"

# ------------------------------------------------------------------ the kinds

TEXT: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PORT: Json = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": INTEGER,
        "protocol": {**TEXT, "default": "TCP"},
        "name": TEXT,
        "target": INTEGER,
    },
}
SPEC: Json = {
    "type": "object",
    "properties": {
        "size": INTEGER,
        "replicas": INTEGER,
        "flag": {"type": "boolean"},
        "ratio": {"type": "number"},
        "mode": {**TEXT, "default": "A"},
        "maybe": {**TEXT, "nullable": True},
        "or": {"x-kubernetes-int-or-string": True},
        "list": {"type": "array", "items": TEXT},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "numbers": {
            "type": "array",
            "items": INTEGER,
            "x-kubernetes-list-type": "set",
        },
        "ports": {
            "type": "array",
            "items": PORT,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "envs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": TEXT, "value": TEXT, "sub": OPEN},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "map": {"type": "object", "additionalProperties": TEXT},
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": INTEGER, "b": INTEGER},
        },
        "part": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}},
        "free": OPEN,
    },
}
THING: Json = {
    "type": "object",
    "properties": {
        "spec": SPEC,
        "status": {
            "type": "object",
            "properties": {
                "phase": TEXT,
                "replicas": INTEGER,
                "conditions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": TEXT, "status": TEXT},
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                },
            },
        },
    },
}
SCALE: Json = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
    },
}


def version(name: str, schema: Json, **more: Any) -> Json:
    found = {"name": name, "served": True, "storage": name == "v1", **more}
    return {**found, "schema": {"openAPIV3Schema": schema}}


def crd(kind: str, *versions: Json) -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": list(versions),
        },
    }


CRDS_136 = (
    crd("Open", version("v1", OPEN, subresources={"status": {}})),
    crd("Thing", version("v1", THING, subresources=SCALE)),
    crd("Plain", version("v1", THING)),
    crd("Pair", version("v1", THING), version("v2", THING)),
)

# ------------------------------------------------------------------ the steps

# The object, and who manages what of it.
WHOLE = ("", "metadata.managedFields")


def body(
    name: str, spec: Any = None, kind: str = "Thing", at: str = "v1", **more: Any
) -> Json:
    metadata = {"name": name, **more.pop("metadata", {})}
    found = {"apiVersion": f"{GROUP}/{at}", "kind": kind, "metadata": metadata, **more}
    return found if spec is None else {**found, "spec": spec}


def create(name: str, spec: Any, by: str = "a", **more: Any) -> Step:
    path = more.pop("path", THINGS)
    sent = body(name, spec, **more)
    return Step("POST", path, sent, agent=by, code=201, compare=WHOLE)


def apply(
    name: str,
    spec: Any = None,
    by: str = "one",
    path: str = THINGS,
    sub: str = "",
    code: int = 200,
    has: Json | None = None,
    query: Json | None = None,
    **more: Any,
) -> Step:
    return Step(
        "PATCH",
        f"{path}/{name}{sub}",
        body(name, spec, **more),
        APPLY_PATCH,
        {"fieldManager": by, **(query or {})},
        code=code,
        has=has or {},
        compare=WHOLE,
    )


def force(name: str, spec: Any = None, by: str = "one", **more: Any) -> Step:
    return apply(name, spec, by, query={"force": "true"}, **more)


def patch(
    name: str,
    change: Any,
    by: str = "b",
    path: str = THINGS,
    sub: str = "",
    type: str = MERGE_PATCH,
    **more: Any,
) -> Step:
    where = f"{path}/{name}{sub}"
    return Step("PATCH", where, change, type, agent=by, compare=WHOLE, **more)


def get(name: str, path: str = THINGS, **has: Any) -> Step:
    return Step("GET", f"{path}/{name}", has=has, compare=WHOLE)


def case(name: str, *steps: Step) -> Case:
    return Case(name, steps, ("1.36",))


def old(name: str, *steps: Step) -> Case:
    return Case(name, steps, ("1.20",))


OPEN_BODY: Json = {"path": OPENS, "kind": "Open"}
EVERYTHING: Json = {
    "size": 1,
    "flag": True,
    "ratio": 0.5,
    "or": "50%",
    "list": ["a", "b"],
    "set": ["x", "y"],
    "numbers": [10, 9],
    "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}],
    "envs": [{"name": "A", "value": "1", "sub": {"deep": {"er": 1}}}],
    "map": {"k": "v", "k.l/m": "w"},
    "whole": {"a": 1, "b": 2},
    "part": {"a": 1},
    "free": {"q": {"r": [1], "s": {}}, "t": None},
}

UPDATES = (
    case(
        "managed fields: a creator manages all that it writes and all defaults",
        create("all", EVERYTHING, metadata={"labels": {"l": "1"}}),
        get("all"),
    ),
    case(
        "managed fields: nobody manages what only the server sets",
        create(
            "few",
            {},
            metadata={
                "labels": {"l": "1"},
                "annotations": {"x.dev/y": "1"},
                "finalizers": ["conf.dev/a", "conf.dev/b"],
                "generation": 7,
                "uid": "u",
            },
        ),
        patch("few", {"metadata": {"finalizers": ["conf.dev/b"]}}),
        patch("few", {"metadata": {"finalizers": None, "labels": None}}, "c"),
    ),
    case(
        "managed fields: owner references are managed by uid, as one thing each",
        create("owner", {}),
        create(
            "owned",
            {},
            metadata={
                "ownerReferences": [
                    {
                        "apiVersion": f"{GROUP}/v1",
                        "kind": "Thing",
                        "name": "owner",
                        "uid": "$0.metadata.uid",
                    }
                ]
            },
        ),
    ),
    case(
        "managed fields: who changes a field takes it from the others",
        create("taken", {"size": 1, "map": {"k": "v", "l": "v"}, "set": ["x"]}),
        patch("taken", {"spec": {"size": 2, "map": {"l": "w", "m": "v"}}}),
        patch("taken", {"spec": {"size": 3, "set": ["x", "y"]}}, "c"),
        patch("taken", {"spec": {"size": 4, "map": {"l": "x"}}}, "c"),
    ),
    case(
        "managed fields: what is removed is nobody's, and an empty manager goes",
        create("gone", {"size": 1, "part": {"a": 1, "b": 2}}),
        patch("gone", {"spec": {"list": ["x"]}}),
        patch("gone", {"spec": {"list": None, "part": {"b": None}}}, "c"),
        patch("gone", {"spec": {"part": None}}, "c"),
    ),
    case(
        "managed fields: a map whose entries have all changed hands",
        create("hands", {"map": {"a": "1", "b": "2"}}),
        patch("hands", {"spec": {"map": {"a": "3", "c": "1"}}}),
        patch("hands", {"spec": {"map": {"b": None}}}, "c"),
        patch("hands", {"metadata": {"annotations": {"x": "y"}}}, "d"),
    ),
    case(
        "managed fields: items of lists that are maps",
        create("items", {"ports": [{"port": 80}, {"port": 81, "name": "x"}]}),
        patch(
            "items", {"spec": {"ports": [{"port": 80, "name": "y"}, {"port": 82}]}}, "b"
        ),
        patch("items", {"spec": {"ports": [{"port": 82}, {"port": 80}]}}, "c"),
        patch("items", {"spec": {"ports": []}}, "c"),
        patch("items", {"spec": {"ports": None}}, "c"),
    ),
    case(
        "managed fields: an atomic map and a plain list change hands as one",
        create("atoms", {"whole": {"a": 1, "b": 1}, "list": ["a"]}),
        patch("atoms", {"spec": {"whole": {"b": 2}}}),
        patch("atoms", {"spec": {"list": ["a", "b"]}}, "c"),
    ),
    case(
        "managed fields: a map becomes a scalar and back where anything may be",
        create("free", {"a": {"b": {"c": 1}}, "l": [1]}, **OPEN_BODY),
        patch("free", {"spec": {"a": {"b": 1}}}, path=OPENS),
        patch("free", {"spec": {"a": [1], "l": {"x": 1}}}, "c", path=OPENS),
        patch("free", {"spec": {"a": {"z": {}}}}, "d", path=OPENS),
    ),
    case(
        "managed fields: a value that changes its type only",
        create("numbers", {"n": 1, "t": True}, **OPEN_BODY),
        patch("numbers", {"spec": {"t": 1}}, path=OPENS),
        patch("numbers", {"spec": {"n": "1"}}, "c", path=OPENS),
    ),
    case(
        "managed fields: a write that changes nothing changes no managers",
        create("same", {"size": 1}),
        patch("same", {"spec": {"size": 1}}),
        patch("same", {}, "c"),
        Step("PUT", f"{THINGS}/same", "$0", agent="d", compare=WHOLE),
    ),
    case(
        "managed fields: a PUT without them keeps them",
        create("put", {"size": 1, "flag": True}),
        Step(
            "PUT",
            f"{THINGS}/put",
            {
                **body("put", {"size": 2}),
                "metadata": {
                    "name": "put",
                    "resourceVersion": "$0.metadata.resourceVersion",
                },
            },
            agent="b",
            compare=WHOLE,
        ),
    ),
    case(
        "managed fields: json patches count, too",
        create("json", {"size": 1, "list": ["a"]}),
        patch(
            "json",
            [
                {"op": "replace", "path": "/spec/size", "value": 2},
                {"op": "add", "path": "/spec/list/-", "value": "b"},
                {"op": "add", "path": "/metadata/labels", "value": {"a~b": "c"}},
            ],
            type=JSON_PATCH,
            code=422,
        ),
        patch(
            "json",
            [
                {"op": "replace", "path": "/spec/size", "value": 2},
                {"op": "add", "path": "/metadata/labels", "value": {"a": "c"}},
            ],
            type=JSON_PATCH,
        ),
    ),
    case(
        "managed fields: status has managers of its own",
        create("status", {"size": 1}, status={"phase": "x"}),
        patch("status", {"status": {"phase": "y"}, "spec": {"size": 5}}, sub="/status"),
        patch("status", {"status": {"replicas": 3}}, "c", sub="/status"),
        patch("status", {"status": {"phase": "z"}}, "c"),
        patch("status", {"metadata": {"labels": {"a": "b"}}}, "c", sub="/status"),
    ),
    case(
        "managed fields: status of a wrong type leaves no managers",
        create("wrong", {"size": 1}),
        patch("wrong", {"status": {"unknown": 1, "phase": None}}),
        patch("wrong", {"status": {"conditions": [{"type": "A"}, {"type": "A"}]}}),
        patch("wrong", {"status": {"phase": 1}}),
        patch("wrong", {"spec": {"size": 2}}),
        apply("wrong", {"size": 2}),
    ),
    case(
        "managed fields: status of items without keys leaves no managers",
        create("keyless", {"size": 1}),
        patch("keyless", {"status": {"conditions": [{"status": "x"}]}}),
        create("born", {"size": 1}, status={"phase": 1}),
        create("fit", {"size": 1}, status={"phase": "x"}),
        Step(
            "PUT",
            f"{THINGS}/fit",
            {"metadata": "$3.metadata", "spec": {"size": 1}, "status": "x"}
            | {"apiVersion": f"{GROUP}/v1", "kind": "Thing"},
            agent="b",
            compare=WHOLE,
        ),
    ),
    case(
        "managed fields: spec of a wrong type beside a status leaves no managers",
        create("beside", {"size": 1}),
        patch(
            "beside", {"spec": {"size": "x"}, "status": {"phase": "y"}}, sub="/status"
        ),
        patch("beside", {"status": {"phase": "z"}}, sub="/status"),
    ),
    case(
        "managed fields: without the subresource status is a field like others",
        create("plain", {"size": 1}, path=PLAINS, kind="Plain", status={"phase": "x"}),
        patch("plain", {"status": {"phase": "y"}}, path=PLAINS),
    ),
    case(
        "managed fields: who scales manages the replicas, at no known time",
        create("scaled", {"replicas": 1, "size": 1}),
        Step(
            "PATCH",
            f"{THINGS}/scaled/scale",
            {"spec": {"replicas": 2}},
            MERGE_PATCH,
            agent="b",
        ),
        get("scaled"),
        Step(
            "PATCH",
            f"{THINGS}/scaled/scale",
            {"spec": {"replicas": 3}},
            MERGE_PATCH,
            agent="c",
        ),
        get("scaled"),
        apply("scaled", {"replicas": 4}, code=409),
        patch("scaled", {"spec": {"replicas": 5}}, "d"),
    ),
    case(
        "managed fields: an empty list, or one empty entry, forgets all",
        create("reset", {"size": 1}),
        patch("reset", {"metadata": {"managedFields": []}}),
        patch("reset", {"spec": {"size": 2}}),
        apply("reset", {"flag": True}),
        patch("reset", {"metadata": {"managedFields": [{}]}, "spec": {"size": 3}}),
        patch("reset", {"spec": {"size": 4}}),
    ),
    case(
        "managed fields: null leaves them alone",
        create("null", {"size": 1}),
        patch("null", {"metadata": {"managedFields": None}}),
        patch("null", {"metadata": {"managedFields": None}, "spec": {"size": 2}}),
    ),
    case(
        "managed fields: a client may bring its own",
        create("own", {"size": 1}),
        patch(
            "own",
            {
                "metadata": {
                    "managedFields": [
                        {
                            "manager": "q",
                            "operation": "Update",
                            "apiVersion": f"{GROUP}/v1",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"f:spec": {"f:size": {}, "x:y": {}}},
                            "time": "2020-01-01T00:00:00Z",
                        },
                        {
                            "manager": "p",
                            "operation": "Apply",
                            "apiVersion": f"{GROUP}/v1",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"f:spec": {".": {}, "f:mode": {".": {}}}},
                        },
                    ]
                }
            },
        ),
        patch("own", {"spec": {"size": 2}}, "r"),
    ),
    case(
        "managed fields: what cannot be read is not looked at",
        create("odd", {"size": 1}),
        patch("odd", {"metadata": {"managedFields": [{"manager": "x"}]}}),
        patch(
            "odd",
            {
                "metadata": {
                    "managedFields": [
                        {
                            "manager": "x",
                            "operation": "Update",
                            "apiVersion": "v1",
                            "fieldsType": "FieldsV2",
                        }
                    ]
                },
                "spec": {"size": 2},
            },
        ),
        patch(
            "odd",
            {
                "metadata": {
                    "managedFields": [
                        {
                            "manager": "x",
                            "operation": "Update",
                            "apiVersion": f"{GROUP}/v1",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"spec": {}},
                        }
                    ]
                }
            },
        ),
    ),
    case(
        "managed fields: a creation may bring its own, of what it does not write",
        create(
            "brought",
            {"size": 1},
            metadata={
                "managedFields": [
                    {
                        "manager": "q",
                        "operation": "Apply",
                        "apiVersion": f"{GROUP}/v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:spec": {"f:size": {}, "f:list": {}}},
                        "time": "2020-01-01T00:00:00Z",
                    }
                ]
            },
        ),
    ),
    case(
        "managed fields: the manager is the query's, the client's, or unknown",
        Step("POST", THINGS, body("m1", {}), agent="", code=201, compare=WHOLE),
        Step(
            "POST",
            THINGS,
            body("m2", {}),
            agent="kubectl/v1.30 (linux/amd64)",
            code=201,
            compare=WHOLE,
        ),
        Step(
            "POST",
            THINGS,
            body("m3", {}),
            agent="an agent (of nothing)",
            code=201,
            compare=WHOLE,
        ),
        Step(
            "POST",
            THINGS,
            body("m4", {}),
            query={"fieldManager": "me/1"},
            code=201,
            compare=WHOLE,
        ),
        Step("POST", THINGS, body("m5", {}), agent="x" * 140, code=201, compare=WHOLE),
    ),
    case(
        "managed fields: more than ten updaters are put together",
        create("many", {"size": 0}, "m00"),
        *(
            patch("many", {"spec": {"map": {f"k{index:02}": "v"}}}, f"m{index:02}")
            for index in range(1, 13)
        ),
        get("many"),
    ),
    case(
        "managed fields: each version of a kind has managers of its own",
        create("pair", {"size": 1, "flag": True}, path=PAIRS_1, kind="Pair"),
        patch("pair", {"spec": {"size": 2, "part": {"a": 1}}}, path=PAIRS_2),
        Step("GET", f"{PAIRS_1}/pair", compare=WHOLE),
        patch("pair", {"spec": {"part": {"a": 2}}}, "c", path=PAIRS_1),
        patch("pair", {"spec": {"part": None, "size": 3}}, "d", path=PAIRS_1),
    ),
    case(
        "managed fields: dry runs show who would manage what",
        create("dry", {"size": 1}),
        patch("dry", {"spec": {"size": 2}}, query={"dryRun": "All"}),
        get("dry"),
    ),
    case(
        "managed fields: a deletion that waits changes no managers",
        create("dying", {"size": 1}, metadata={"finalizers": ["conf.dev/a"]}),
        Step("DELETE", f"{THINGS}/dying", agent="b", compare=WHOLE),
        get("dying"),
        patch("dying", {"metadata": {"finalizers": None}}, "c"),
    ),
    case(
        "managed fields: managers that are too long, or not to be printed",
        Step("POST", THINGS, body("bad"), query={"fieldManager": "x" * 129}, code=422),
        Step("POST", THINGS, body("bad"), query={"fieldManager": "a\nb"}, code=422),
        create("bad", {}),
        Step(
            "PATCH",
            f"{THINGS}/bad",
            {},
            MERGE_PATCH,
            {"fieldManager": "x" * 129},
            code=422,
        ),
        Step(
            "PUT",
            f"{THINGS}/bad",
            "$2",
            query={"fieldManager": "y" * 129},
            code=422,
        ),
    ),
)

APPLIES = (
    case(
        "apply: creates what is not there",
        apply("new", {"size": 1, "map": {"k": "v"}, "set": ["x"]}, code=201),
        get("new"),
    ),
    case(
        "apply: creates everything",
        apply("every", EVERYTHING, code=201, metadata={"labels": {"l": "1"}}),
        apply("every", EVERYTHING, metadata={"labels": {"l": "1"}}),
    ),
    case(
        "apply: creates where anything may be",
        apply("any", {"a": {"b": [1], "c": {}}, "n": None}, code=201, **OPEN_BODY),
        apply("any", {"a": {"b": [2]}}, **OPEN_BODY),
        apply("any", {}, **OPEN_BODY),
        apply("any", **OPEN_BODY),
    ),
    case(
        "apply: the same again is no write",
        apply("again", {"size": 1, "ports": [{"port": 80}]}, code=201),
        apply(
            "again",
            {"size": 1, "ports": [{"port": 80}]},
            has={"metadata.generation": 1},
        ),
        apply("again", {"size": 1, "ports": [{"port": 80, "protocol": "TCP"}]}),
    ),
    case(
        "apply: what is no longer applied is removed",
        apply(
            "less",
            {
                "size": 1,
                "map": {"k": "v", "l": "v"},
                "set": ["x", "y"],
                "ports": [{"port": 80, "name": "a"}, {"port": 81}],
                "part": {"a": 1, "b": 2},
                "whole": {"a": 1},
                "list": ["a"],
            },
            code=201,
        ),
        apply(
            "less",
            {
                "map": {"l": "v"},
                "set": ["y"],
                "ports": [{"port": 80}],
                "part": {"b": 2},
                "list": ["a"],
            },
        ),
        apply("less", {"part": {"b": 2}}),
        apply("less"),
    ),
    case(
        "apply: what others manage, too, stays when one gives it up",
        apply("both", {"size": 1, "map": {"k": "v"}}, "one", code=201),
        apply("both", {"size": 1, "map": {"l": "v"}}, "two"),
        apply("both", {"flag": True}, "two"),
        apply("both", by="one"),
    ),
    case(
        "apply: what an update has taken is not removed",
        apply("kept", {"size": 1, "map": {"k": "v"}}, code=201),
        patch("kept", {"spec": {"size": 2, "map": {"m": "v"}}}),
        apply("kept", {}),
    ),
    case(
        "apply: items that somebody else has filled stay",
        apply("filled", {"ports": [{"port": 80}], "envs": [{"name": "A"}]}, code=201),
        patch(
            "filled",
            {"spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "x"}]}},
        ),
        # The list is empty then, which the server takes for null.
        apply("filled", {"envs": [{"name": "B"}]}, code=422),
        apply("filled", {"ports": [{"port": 81}]}),
    ),
    case(
        "apply: a conflict names the fields and their managers",
        create("clash", {"size": 1, "map": {"k": "v"}, "ports": [{"port": 80}]}),
        patch("clash", {"spec": {"flag": True}}),
        apply("clash", {"size": 2}, code=409),
        apply("clash", {"size": 2, "map": {"k": "w"}, "flag": False}, code=409),
        apply(
            "clash",
            {"ports": [{"port": 80, "name": "x"}], "size": 1},
            has={"spec.ports.0.name": "x"},
        ),
    ),
    case(
        "apply: a conflict with another applier",
        apply("rival", {"size": 1, "set": ["x"], "whole": {"a": 1}}, code=201),
        apply("rival", {"size": 2, "whole": {"b": 1}}, "two", code=409),
        apply("rival", {"size": 1, "set": ["x", "y"]}, "two"),
        apply("rival", {"size": 2, "set": ["y"]}, "two", code=409),
        apply("rival", {"size": 2}, "one", code=409),
    ),
    case(
        "apply: force takes what others manage",
        apply("forced", {"size": 1, "map": {"k": "v"}}, code=201),
        create("forced-too", {"size": 1}),
        force("forced", {"size": 2, "map": {"k": "w"}}, "two"),
        apply("forced", {"map": {"k": "w"}}, "zed"),
        force("forced-too", {"size": 2, "flag": True}, "two"),
    ),
    case(
        "apply: no conflict where the value is the same",
        create("agreed", {"size": 1, "list": ["a"], "part": {"a": 1}}),
        apply("agreed", {"size": 1, "list": ["a"], "part": {"a": 1}}),
        apply("agreed", {}),
    ),
    case(
        "apply: who shares a field without changing anything has no time",
        create("timeless", {"size": 1}),
        apply("timeless", {"size": 1}, has={"metadata.managedFields.0.time": ABSENT}),
        apply("timeless", {"size": 1}),
        apply("timeless", {"size": 1, "flag": True}),
    ),
    case(
        "apply: conflicts of items by key and by value",
        create(
            "keys",
            {
                "ports": [{"port": 80, "name": "a"}, {"port": 53, "protocol": "UDP"}],
                "envs": [{"name": 'q"r', "value": "1"}],
            },
        ),
        apply(
            "keys",
            {
                "ports": [
                    {"port": 80, "name": "b"},
                    {"port": 53, "protocol": "UDP", "target": 1},
                ],
                "envs": [{"name": 'q"r', "value": "2"}],
            },
            code=409,
        ),
    ),
    case(
        "apply: lists are merged in the order of the configuration",
        create("order", {"set": ["a", "b", "c", "d"], "envs": [{"name": "x"}]}),
        apply("order", {"set": ["d", "e", "b"]}, has={"spec.set.0": "a"}),
        apply("order", {"set": ["b", "f"], "envs": [{"name": "w"}, {"name": "x"}]}),
        apply("order", {"set": ["z", "a"]}),
    ),
    case(
        "apply: a list of maps is merged item by item",
        create(
            "merge",
            {"envs": [{"name": "a", "value": "1"}, {"name": "b"}, {"name": "c"}]},
        ),
        apply("merge", {"envs": [{"name": "c", "value": "3"}, {"name": "a"}]}),
        apply("merge", {"envs": [{"name": "d"}, {"name": "c", "value": "4"}]}),
    ),
    case(
        "apply: defaults belong to nobody, and come back",
        apply("defaults", {"mode": "B", "ports": [{"port": 80}]}, code=201),
        apply("defaults", {"ports": [{"port": 80}]}, has={"spec.mode": "A"}),
        apply("defaults", {"mode": "C"}, "two"),
        patch("defaults", {"spec": {"mode": None}}),
    ),
    case(
        "apply: nulls",
        apply("nulls", {"maybe": None, "size": 1}, code=201),
        apply("nulls", {"maybe": "x", "mode": None}),
        apply("nulls", {"map": None}, code=422),
        apply("nulls", {"maybe": None}),
        apply("nulls"),
    ),
    case(
        "apply: empty lists and maps",
        apply("empty", {"map": {}, "set": [], "list": [], "part": {}}, code=201),
        apply("empty", {"map": {}, "set": ["x"], "free": {}}),
        apply("empty", {"map": {"k": "v"}}),
        apply("empty", {"map": {}}, code=422),
    ),
    case(
        "apply: to the status",
        create("stated", {"size": 1}),
        apply(
            "stated",
            {"size": 7},
            sub="/status",
            status={"phase": "x", "conditions": [{"type": "A", "status": "True"}]},
            metadata={"labels": {"a": "b"}},
        ),
        apply(
            "stated",
            sub="/status",
            by="two",
            status={"conditions": [{"type": "B", "status": "True"}]},
        ),
        apply("stated", sub="/status", by="two", status={"phase": "y"}, code=409),
        apply("stated", sub="/status", by="two", status={"phase": "x"}),
        apply("stated", sub="/status", by="two", status={}),
        apply("stated", {"size": 1}, "zed", status={"phase": "q"}),
    ),
    case(
        "apply: to the status of what is not there",
        apply("nothing", sub="/status", status={"phase": "x"}, code=404),
    ),
    case(
        "apply: the status through the main endpoint is not heard",
        apply("deaf", {"size": 1}, status={"phase": "x"}, code=201),
        apply("deaf", {"size": 1}, status={"phase": "y"}),
        apply("deaf", status={"phase": "y"}),
    ),
    case(
        "apply: needs a manager",
        Step("PATCH", f"{THINGS}/who", body("who"), APPLY_PATCH, code=422),
        apply("who", by="", code=422),
        apply("who", by="x" * 129, code=422),
        apply("who", by="a\tb", code=422),
    ),
    case(
        "apply: options of other patches, and force",
        create("options", {}),
        Step(
            "PATCH", f"{THINGS}/options", {}, MERGE_PATCH, {"force": "true"}, code=422
        ),
        patch("options", {}, query={"dryRun": "Some"}, code=422),
        apply("options", {"mode": "B"}, query={"force": "false"}, code=409),
        apply("options", {"mode": "B"}, query={"force": "yes"}),
    ),
    case(
        "apply: the body must be an object of the kind",
        *(
            Step(
                "PATCH",
                f"{THINGS}/what",
                sent,
                APPLY_PATCH,
                {"fieldManager": "one"},
                code=400,
            )
            for sent in (
                [1],
                "text",
                {},
                {"apiVersion": f"{GROUP}/v1", "metadata": {"name": "what"}},
                {"kind": "Thing", "metadata": {"name": "what"}},
                body("what", kind="Plain"),
                body("what", at="v2"),
                {"apiVersion": f"{GROUP}/v1", "kind": "Thing"},
                {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "spec": {"size": 1}},
                body("other"),
                body("what", metadata={"namespace": "elsewhere"}),
            )
        ),
    ),
    case(
        "apply: a name may be missing where the object is there",
        create("named", {"size": 1}),
        Step(
            "PATCH",
            f"{THINGS}/named",
            {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "spec": {"flag": True}},
            APPLY_PATCH,
            {"fieldManager": "one"},
            compare=WHOLE,
        ),
        apply("named", {}, metadata={"name": "other"}, code=400),
    ),
    case(
        "apply: managed fields are not applied",
        apply("own-up", metadata={"managedFields": []}, code=400),
        apply("own-up", metadata={"managedFields": [{}]}, code=400),
        apply("own-up", metadata={"managedFields": None}, code=201),
    ),
    case(
        "apply: preconditions",
        apply("sure", metadata={"uid": "u"}, code=409),
        apply("sure", {"size": 1}, metadata={"resourceVersion": "5"}, code=201),
        apply("sure", {"size": 2}, metadata={"resourceVersion": "5"}, code=409),
        apply("sure", {"size": 2}, metadata={"resourceVersion": "x"}, code=500),
        apply("sure", {"size": 2}, metadata={"uid": "u"}, code=422),
        apply(
            "sure",
            {"size": 2},
            metadata={
                "resourceVersion": "$1.metadata.resourceVersion",
                "uid": "$1.metadata.uid",
            },
        ),
    ),
    case(
        "apply: dry runs",
        apply("dried", {"size": 1}, query={"dryRun": "All"}, code=201),
        Step("GET", f"{THINGS}/dried", code=404),
        create("dried", {"size": 1}),
        apply("dried", {"flag": True}, query={"dryRun": "All"}),
        get("dried"),
        apply("dried", {"size": 2}, query={"dryRun": "All"}, code=409),
    ),
    case(
        "apply: fields that the schema does not have",
        apply("strange", {"what": 1}, code=500),
        apply("strange", {"ports": [{"port": 1, "what": 1}]}, code=500),
        apply("strange", top=1, code=500),
        apply("strange", {"free": {"what": {"ever": 1}}}, code=201),
    ),
    case(
        "apply: values of a wrong type",
        apply("wrong", {"size": "x"}, code=500),
        apply("wrong", {"mode": 5}, code=500),
        apply("wrong", {"flag": "x"}, code=500),
        apply("wrong", {"map": ["x"]}, code=500),
        apply("wrong", {"set": "x"}, code=500),
        apply("wrong", "x", code=500),
        apply("wrong", {"map": {"k": 1}}, code=500),
        apply("wrong", {"size": 1.5}, code=422),
    ),
    case(
        "apply: items that cannot be told from each other",
        apply("twice", {"set": ["a", "a"]}, code=500),
        apply("twice", {"numbers": [1, 1]}, code=500),
        apply("twice", {"ports": [{"port": 1}, {"port": 1}]}, code=500),
        apply("twice", {"envs": [{"value": "x"}]}, code=500),
        apply("twice", {"envs": [None]}, code=500),
        apply("twice", {"set": [None]}, code=500),
        apply("twice", {"ports": [{"name": "x"}]}, code=422),
    ),
    case(
        "apply: what is refused after the merge",
        apply("refused", {}, metadata={"labels": {"a": "-"}}, code=422),
        apply("refused", {"or": "x"}, metadata={"finalizers": ["a b"]}, code=422),
    ),
    case(
        "apply: metadata",
        apply(
            "meta",
            {},
            code=201,
            metadata={
                "labels": {"a": "1", "b": "1"},
                "annotations": {"a": "1"},
                "finalizers": ["conf.dev/a"],
            },
        ),
        apply("meta", {}, "two", metadata={"finalizers": ["conf.dev/b"]}),
        apply("meta", {}, "two", metadata={"labels": {"c": "2"}}),
        apply("meta", {}, "two"),
        apply("meta", {}),
    ),
    case(
        "apply: kubectl takes over from its client-side apply",
        create(
            "moved",
            {"size": 1, "flag": True},
            "kubectl-client-side-apply",
            metadata={
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": (
                        f'{{"apiVersion":"{GROUP}/v1","kind":"Thing",'
                        '"metadata":{"name":"moved"},"spec":{"size":1,"flag":true}}'
                    )
                }
            },
        ),
        apply("moved", {"size": 2, "flag": True}, "other", code=409),
        apply("moved", {"size": 2, "flag": True}, "kubectl"),
        patch("moved", {"spec": {"size": 3}}, "x"),
        apply("moved", {"size": 4}, "kubectl", code=409),
        apply("moved", {"flag": True}, "kubectl"),
    ),
    case(
        "apply: the same applier in two versions",
        apply("v", {"size": 1, "flag": True}, path=PAIRS_1, kind="Pair", code=201),
        apply("v", {"size": 2}, path=PAIRS_2, kind="Pair", at="v2"),
        apply("v", {"size": 3}, "two", path=PAIRS_1, kind="Pair", code=409),
    ),
    case(
        "apply: after updates in another version",
        create("w", {"size": 1, "flag": True}, path=PAIRS_1, kind="Pair"),
        apply("w", {"size": 2}, path=PAIRS_2, kind="Pair", at="v2", code=409),
        force("w", {"size": 2}, path=PAIRS_2, kind="Pair", at="v2"),
        apply("w", {"part": {"a": 1}}, "two", path=PAIRS_1, kind="Pair"),
        apply("w", {}, path=PAIRS_2, kind="Pair", at="v2"),
    ),
    case(
        "apply: to the scale of a custom kind",
        create("apart", {"replicas": 1}),
        Step(
            "PATCH",
            f"{THINGS}/apart/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "apart"},
                "spec": {"replicas": 3},
            },
            APPLY_PATCH,
            {"fieldManager": "one"},
            code=409,
        ),
    ),
    case(
        "apply: as CBOR is not understood",
        Step(
            "PATCH",
            f"{THINGS}/cbor",
            body("cbor"),
            "application/apply-patch+cbor",
            {"fieldManager": "one"},
            code=415,
        ),
    ),
    case(
        "apply: an object that is being deleted",
        apply("late", {"size": 1}, metadata={"finalizers": ["conf.dev/a"]}, code=201),
        Step("DELETE", f"{THINGS}/late"),
        apply("late", {"size": 2}, metadata={"finalizers": ["conf.dev/a"]}),
        apply("late", {"size": 2}, metadata={"finalizers": ["conf.dev/b"]}, code=422),
        apply("late", {"size": 2}),
        Step("GET", f"{THINGS}/late", code=404),
    ),
)

# ------------------------------------------------------------- built-in kinds

MANAGED = ("metadata.managedFields",)
# Of the objects that controllers also write, only the first: the others depend on their
# order.
FIRST = ("metadata.managedFields.0",)
BOTH = ("metadata.managedFields.0", "metadata.managedFields.1")


def builtin(path: str, sent: Json, by: str = "a", **more: Any) -> Step:
    return Step("POST", path, sent, agent=by, code=201, **{"compare": MANAGED, **more})


def applied(path: str, sent: Json, by: str = "one", **more: Any) -> Step:
    query = {"fieldManager": by, **more.pop("query", {})}
    where = f"{path}/{sent['metadata']['name']}"
    more = {"compare": MANAGED, **more}
    return Step("PATCH", where, sent, APPLY_PATCH, query, **more)


def changed(path: str, name: str, change: Json, by: str = "b", **more: Any) -> Step:
    type = more.pop("type", STRATEGIC_PATCH)
    more = {"compare": MANAGED, **more}
    return Step("PATCH", f"{path}/{name}", change, type, agent=by, **more)


def config_map(data: Json | None, **metadata: Any) -> Json:
    found: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return found if data is None else {**found, "data": data}


def deployment(name: str, *containers: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": list(containers)},
            },
            **spec,
        },
    }


def part(name: str, *containers: Json) -> Json:
    """A configuration of the containers alone."""
    spec = {"template": {"spec": {"containers": list(containers)}}}
    metadata = {"name": name}
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    return {**found, "spec": spec}


CONTAINER: Json = {
    "name": "c",
    "image": "i:1",
    "imagePullPolicy": "Always",
    "ports": [{"containerPort": 80}],
    "env": [{"name": "A", "value": "1"}],
    "resources": {"limits": {"cpu": "1"}},
}

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY: Json = {"dryRun": "All"}
PINNED = crd("Pinned", version("v1", THING, subresources=SCALE))

BUILTINS = (
    case(
        "managed fields: of a definition",
        builtin(DEFINITIONS, PINNED, query=DRY),
        applied(DEFINITIONS, PINNED, query=DRY, code=201),
        applied(
            DEFINITIONS,
            {**PINNED, "spec": {**PINNED["spec"], "what": 1}},
            query=DRY,
            code=500,
        ),
    ),
    old(
        "managed fields: of a config map",
        builtin(MAPS, config_map({"a": "1", "b": "2"}, name="m", labels={"l": "1"})),
        changed(MAPS, "m", {"data": {"a": "3", "c": "1"}}),
        changed(MAPS, "m", {"data": {"b": None}}, "c", type=MERGE_PATCH),
        # 1.20 gives to a what b has.
        changed(
            MAPS, "m", {"metadata": {"annotations": {"x": "y"}}}, "d", old=(200, {})
        ),
    ),
    old(
        "apply: a config map",
        applied(MAPS, config_map({"a": "1"}, name="n", labels={"l": "1"}), code=201),
        applied(MAPS, config_map({"a": "1", "b": "1"}, name="n"), "two"),
        applied(MAPS, config_map({"a": "2"}, name="n"), "two", code=409),
        applied(MAPS, config_map({"b": "1"}, name="n"), "two"),
        applied(MAPS, config_map({"b": "2"}, name="n"), "two"),
    ),
    old(
        "apply: a config map that was created",
        builtin(MAPS, config_map({"a": "1", "b": "1"}, name="o")),
        changed(MAPS, "o", {"data": {"c": "1"}}),
        applied(
            MAPS,
            config_map({"a": "2", "c": "2"}, name="o"),
            code=409,
            compare=("message", "reason", "details"),
        ),
        applied(MAPS, config_map({"a": "2"}, name="o"), query={"force": "true"}),
    ),
    old(
        "apply: a config map with fields and values that it cannot have",
        *(
            applied(
                MAPS,
                sent,
                code=500,
                # 1.20 does not name the object in its message.
                old=(500, {}),
            )
            for sent in (
                {**config_map({}, name="u"), "spec": {}},
                config_map({"a": 1}, name="u"),
                config_map({"a": {"b": "c"}}, name="u"),
            )
        ),
        applied(MAPS, config_map({"a": "1"}, name="u"), code=201),
        applied(MAPS, config_map({"a": None}, name="u")),
        applied(MAPS, config_map(None, name="u")),
    ),
    old(
        "managed fields: of a secret whose data came as text",
        builtin(
            SECRETS,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s"},
                "stringData": {"a": "b"},
            },
        ),
        changed(SECRETS, "s", {"stringData": {"c": "d"}}),
    ),
    old(
        "managed fields: of a deployment: structs and lists by key",
        builtin(DEPLOYMENTS, deployment("d", CONTAINER, replicas=0, paused=True)),
        changed(
            DEPLOYMENTS,
            "d",
            part("d", {"name": "c", "image": "i:2"}),
            compare=FIRST,
        ),
        changed(
            DEPLOYMENTS,
            "d",
            part("d", {"name": "c", "env": [{"name": "A", "value": "2"}]}),
            "c",
            compare=FIRST,
        ),
    ),
    old(
        "apply: a deployment",
        applied(
            DEPLOYMENTS,
            deployment("e", CONTAINER, replicas=0, paused=True),
            code=201,
        ),
        applied(
            DEPLOYMENTS,
            part("e", {"name": "d", "image": "i:3", "imagePullPolicy": "Always"}),
            "two",
            compare=BOTH,
        ),
        applied(
            DEPLOYMENTS,
            part("e", {"name": "c", "image": "i:9"}),
            "two",
            code=409,
            compare=("message", "reason", "details"),
        ),
        applied(
            DEPLOYMENTS,
            part("e", {"name": "c", "image": "i:9"}),
            "two",
            query={"force": "true"},
            compare=BOTH,
        ),
    ),
    Case(
        # 1.20 crashes at this.
        "apply: to the scale of a deployment",
        (
            builtin(DEPLOYMENTS, deployment("f", CONTAINER, replicas=1)),
            Step(
                "PATCH",
                f"{DEPLOYMENTS}/f/scale",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "f"},
                    "spec": {"replicas": 3},
                },
                APPLY_PATCH,
                {"fieldManager": "one"},
                code=409,
                has={"details.causes.0.field": ".spec.replicas"},
            ),
            Step(
                "PATCH",
                f"{DEPLOYMENTS}/f/scale",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "f"},
                    "spec": {"replicas": 3},
                },
                APPLY_PATCH,
                {"fieldManager": "one", "force": "true"},
                has={"spec.replicas": 3},
            ),
            Step(
                "GET",
                f"{DEPLOYMENTS}/f",
                has={
                    "spec.replicas": 3,
                    "metadata.managedFields.0.subresource": "scale",
                    "metadata.managedFields.0.operation": "Apply",
                    "metadata.managedFields.0.fieldsV1": {"f:spec": {"f:replicas": {}}},
                },
            ),
        ),
        (),
    ),
)

CASES = (*UPDATES, *APPLIES, *BUILTINS)

del SERVICES
