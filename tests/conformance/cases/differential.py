"""Findings of the differential test: each was a bug of the simulated cluster.

The kinds are the same as in the random sequences.
"""

from __future__ import annotations

from typing import Any

from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from tests.conformance.sequences import DEFINITIONS_OF_KINDS, GROUP, NOWHERE
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS"]

CRDS = DEFINITIONS_OF_KINDS
Json = dict[str, Any]

PLAINS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/plains"
THINGS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/things"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
BOTH = ("1.20", "1.36")
# Words of decoders show types of Go and bytes of the body.
WORDLESS = ("status", "reason", "code")
UNKEYED: Json = {"name": "x"}


def owner(**more: Any) -> Json:
    """A reference to the first object of the case."""
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Plain", "name": "owner"}
    return {**head, "uid": "$0.metadata.uid", **more}


def plain(name: str = "a", **metadata: Any) -> Json:
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Plain"}
    return {**head, "metadata": {"name": name, **metadata}}


def thing(name: str = "a", **spec: Any) -> Json:
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Thing"}
    return {**head, "metadata": {"name": name}, "spec": {"size": 1, **spec}}


def config_map(name: str = "a", **metadata: Any) -> Json:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**head, "metadata": {"name": name, **metadata}}


def secret(name: str = "a", **parts: Any) -> Json:
    head = {"apiVersion": "v1", "kind": "Secret"}
    return {**head, "metadata": {"name": name}, **parts}


def get(path: str, **more: Any) -> Step:
    return Step("GET", path, **more)


def post(path: str, body: Any, code: int = 201, **more: Any) -> Step:
    return Step("POST", path, body, code=code, **more)


def merge(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PATCH", path, body, type=MERGE_PATCH, code=code, **more)


def strategic(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PATCH", path, body, type=STRATEGIC_PATCH, code=code, **more)


def operate(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PATCH", path, body, type=JSON_PATCH, code=code, **more)


def delete(path: str, body: Any = None, code: int = 200, **more: Any) -> Step:
    return Step("DELETE", path, body, code=code, **more)


DRY = {"dryRun": "All"}
GONE = {"reason": "NotFound"}
INVALID = {"reason": "Invalid"}

DELETION = (
    Case(
        "differential: a deletion's body hides the options of its query",
        (
            post(PLAINS, plain(finalizers=["a.dev/one"])),
            delete(
                f"{PLAINS}/a",
                # In the foreground the collector would soon write, too.
                {"propagationPolicy": "Background"},
                query=DRY,
                has={"metadata.generation": 2, "metadata.finalizers.1": ABSENT},
            ),
            get(f"{PLAINS}/a", has={"metadata.generation": 2}),
        ),
        BOTH,
    ),
    Case(
        "differential: a dry run of a deletion shows what would be left",
        (
            post(PLAINS, plain()),
            delete(f"{PLAINS}/a", query=DRY, has={"status": "Success"}),
            delete(
                f"{PLAINS}/a",
                query={**DRY, "propagationPolicy": "Orphan"},
                has={
                    "metadata.finalizers": ["orphan"],
                    "metadata.deletionGracePeriodSeconds": 0,
                },
            ),
            delete(f"{PLAINS}/a", {"dryRun": ["All"]}, has={"status": "Success"}),
            delete(PLAINS, query=DRY, has={"items.0.metadata.name": "a"}),
            get(f"{PLAINS}/a", has={"metadata.deletionTimestamp": ABSENT}),
        ),
        BOTH,
    ),
    Case(
        "differential: a deletion that loses the version of its precondition",
        (
            post(PLAINS, plain(finalizers=["foregroundDeletion"])),
            delete(
                f"{PLAINS}/a",
                {
                    "propagationPolicy": "Background",
                    "preconditions": {"resourceVersion": "$0.metadata.resourceVersion"},
                },
                409,
                has={"reason": "Conflict"},
                compare=WORDLESS,  # the two servers have different prefixes
            ),
            get(f"{PLAINS}/a", has={"metadata.deletionTimestamp": ABSENT}),
            delete(f"{PLAINS}/a", {"propagationPolicy": "Background"}),
            get(f"{PLAINS}/a", code=404),
        ),
        BOTH,
    ),
    Case(
        "differential: deletion options that are refused",
        (
            post(PLAINS, plain()),
            delete(
                f"{PLAINS}/a",
                {"dryRun": ["Some"]},
                422,
                has={**INVALID, "details.causes.0.field": "dryRun"},
                compare=WORDLESS,  # 1.20 showed the list in Go's syntax
            ),
            delete(
                f"{PLAINS}/a",
                {"propagationPolicy": "Orphan", "orphanDependents": True},
                422,
                has=INVALID,
            ),
            delete(
                f"{PLAINS}/a",
                query={"gracePeriodSeconds": "x"},
                code=400,
                has={"message": 'strconv.ParseInt: parsing "x": invalid syntax'},
            ),
            delete(f"{PLAINS}/a", query={"orphanDependents": "true"}),
        ),
        BOTH,
    ),
)
CREATION = (
    Case(
        "differential: a resourceVersion at birth",
        (
            post(PLAINS, plain("a", resourceVersion="1"), 500),
            post(PLAINS, plain("a", resourceVersion="x")),
            post(PLAINS, plain("b", resourceVersion="0")),
            post(
                PLAINS,
                plain("c", resourceVersion="1", annotations={"a b": ""}),
                422,
                has=INVALID,
            ),
            post(PLAINS, plain("c", resourceVersion="1"), query=DRY),
            post(PLAINS, plain("a", resourceVersion="1"), 409, query=DRY),
        ),
        BOTH,
    ),
    Case(
        "differential: null in metadata is the zero value",
        (
            post(
                PLAINS,
                plain("a", labels={"app": None}, annotations={"b": None}),
                has={"metadata.labels": {"app": ""}, "metadata.annotations": {"b": ""}},
            ),
            operate(
                f"{PLAINS}/a",
                [{"op": "add", "path": "/metadata/labels", "value": {"c": None}}],
                has={"metadata.labels": {"c": ""}},
            ),
            post(PLAINS, plain("b", finalizers=[None]), 422, has=INVALID),
            post(
                PLAINS,
                plain("b", ownerReferences=[None]),
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
        ),
        BOTH,
    ),
    Case(
        "differential: bytes and keys of config maps",
        (
            post(
                MAPS,
                {**config_map(), "binaryData": {"b": "no base64!"}},
                400,
                compare=WORDLESS,
            ),
            post(
                MAPS,
                {**config_map(), "data": {"k": ""}, "binaryData": {"k": "AQ=="}},
                422,
                has={"details.causes.0.field": "data[k]"},
            ),
            post(MAPS, {**config_map(), "data": {"a b": ""}}, 422, has=INVALID),
            post(
                MAPS,
                {**config_map(), "data": {}, "binaryData": {}, "immutable": False},
                has={"data": ABSENT, "binaryData": ABSENT, "immutable": False},
            ),
        ),
    ),
    Case(
        "differential: locked config maps",
        (
            post(MAPS, {**config_map(), "data": {"k": "v"}, "immutable": True}),
            merge(f"{MAPS}/a", {"data": {"k": "w"}}, 422, has=INVALID),
            merge(f"{MAPS}/a", {"immutable": False}, 422, has=INVALID),
            merge(f"{MAPS}/a", {"metadata": {"labels": {"a": "b"}}}),
        ),
    ),
    Case(
        "differential: secrets and their type",
        (
            post(SECRETS, secret(type="my/type", stringData={"k": "v"})),
            merge(f"{SECRETS}/a", {"type": "Opaque"}, 422, has=INVALID),
            post(SECRETS, secret("b", data={"k": "no base64!"}), 400, compare=WORDLESS),
            post(
                SECRETS,
                secret("b", type="kubernetes.io/tls"),
                422,
                has={"details.causes.1.field": "data[tls.key]"},
            ),
        ),
    ),
    Case(
        "differential: generations of kinds that count none",
        (
            post(MAPS, config_map(generation=7), has={"metadata.generation": 7}),
            merge(f"{MAPS}/a", {"metadata": {"generation": 8}}),
            get(f"{MAPS}/a", has={"metadata.generation": 7}),
            post(MAPS, config_map("b", generation=-1), 422, has=INVALID),
        ),
    ),
    Case(
        "differential: null in the metadata of a built-in kind",
        (post(MAPS, config_map("a", labels={"app": None})),),
    ),
    Case(
        "differential: owner references without their parts, in today's words",
        (
            post(
                PLAINS,
                plain("a", ownerReferences=[{}]),
                422,
                has={
                    "details.causes.0.message": 'Invalid value: "": '
                    "version must not be empty",
                    "details.causes.1.message": 'Invalid value: "": must not be empty',
                },
            ),
        ),
        ("1.36",),
    ),
    Case(
        "differential: the same owner twice is one",
        (
            post(MAPS, config_map("owner")),
            post(
                MAPS,
                config_map(
                    "a",
                    ownerReferences=[
                        {
                            "apiVersion": "v1",
                            "kind": "ConfigMap",
                            "name": "owner",
                            "uid": "$0.metadata.uid",
                        }
                    ]
                    * 2,
                ),
                has={"metadata.ownerReferences.1": ABSENT},
            ),
        ),
    ),
)
PATCHES = (
    Case(
        "differential: a patch whose result cannot be read",
        (
            post(PLAINS, plain(labels={"app": "a"})),
            merge(
                f"{PLAINS}/a",
                {"metadata": {"labels": {"app": 1}}},
                422,
                has={**INVALID, "details.causes.0.field": "patch"},
                compare=WORDLESS,
            ),
            merge(
                f"{PLAINS}/a",
                {"metadata": {"finalizers": "x"}},
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            operate(
                f"{PLAINS}/a",
                [{"op": "replace", "path": "/metadata", "value": 1}],
                422,
                has=INVALID,
                compare=WORDLESS,
            ),
            get(f"{PLAINS}/a", has={"metadata.labels": {"app": "a"}}),
        ),
        BOTH,
    ),
    Case(
        "differential: a dry run of something else",
        tuple(
            Step(
                method,
                path,
                body,
                type=kind,
                query={"dryRun": how},
                code=422,
                has={**INVALID, "details.causes.0.field": "dryRun"},
                compare=WORDLESS,  # 1.20 showed the list in Go's syntax
            )
            for how in ("Some", "")
            for method, path, body, kind in (
                ("POST", PLAINS, plain(), "application/json"),
                ("PATCH", f"{PLAINS}/a", {}, MERGE_PATCH),
            )
        ),
        BOTH,
    ),
    Case(
        "differential: a JSON patch tests for null what is not there",
        (
            post(PLAINS, {**plain(), "spec": {"y": 1}}),
            operate(f"{PLAINS}/a", [{"op": "test", "path": "/spec/x", "value": None}]),
            operate(
                f"{PLAINS}/a", [{"op": "test", "path": "/spec/x", "value": 1}], 422
            ),
        ),
        BOTH,
    ),
    Case(
        "differential: a patch of nothing is not read",
        (
            merge(f"{PLAINS}/a", [1], 404, has=GONE),
            operate(f"{PLAINS}/a", {"a": 1}, 404, has=GONE),
            operate(f"{PLAINS}/a", [{"op": "jump"}], 404, has=GONE),
            Step("PATCH", f"{PLAINS}/a", {}, type="text/plain", code=415),
        ),
        BOTH,
    ),
    Case(
        "differential: an apiVersion that is not the path's",
        (
            post(PLAINS, {**plain(), "apiVersion": "other/v1"}, 400),
            post(PLAINS, {**plain(), "apiVersion": "v1", "kind": "Other"}, 400),
            post(PLAINS, plain()),
            merge(
                f"{PLAINS}/a",
                {"apiVersion": "other/v1"},
                422,
                has={**INVALID, "details.group": "other"},
            ),
            merge(f"{PLAINS}/a", {"kind": "Other"}, 422, has=INVALID),
        ),
        BOTH,
    ),
    Case(
        "differential: a put with a uid where nothing is",
        (
            Step(
                "PUT",
                f"{PLAINS}/a",
                plain(uid=NOWHERE),
                code=404,
                has=GONE,
                # It compared the uid with the uid of a missing object.
                old=(409, {"reason": "Conflict"}),
            ),
        ),
        BOTH,
    ),
)
TODAY = (
    Case(
        "differential: JSON patches that cannot be read, in today's words",
        (
            post(PLAINS, plain()),
            *(
                operate(f"{PLAINS}/a", [operation], 400)
                for operation in (
                    {"op": "jump"},
                    {"op": "jump", "path": "/a"},
                    {"path": "/a"},
                    {},
                    {"op": "add"},
                    {"op": "add", "path": "/spec"},
                    {"op": "add", "value": 1},
                    {"op": "remove"},
                    {"op": "move", "path": "/spec"},
                )
            ),
            operate(f"{PLAINS}/a", [{"op": "test", "path": "/spec"}]),
            operate(f"{PLAINS}/a", [{"op": "test", "path": "/kind"}], 422),
        ),
        ("1.36",),
    ),
    Case(
        "differential: an object has one controller",
        (
            post(PLAINS, plain("owner")),
            post(
                PLAINS,
                plain("a", ownerReferences=[owner(controller=True)]),
            ),
            merge(
                f"{PLAINS}/a",
                {
                    "metadata": {
                        "ownerReferences": [
                            owner(controller=True),
                            owner(uid=NOWHERE, controller=True),
                        ]
                    }
                },
                422,
                has={"details.causes.0.field": "metadata.ownerReferences"},
            ),
            post(
                PLAINS,
                plain(
                    "b",
                    ownerReferences=[
                        owner(controller=True, blockOwnerDeletion=False),
                        owner(uid=NOWHERE, controller=False),
                        owner(uid=NOWHERE, name="other", controller=True),
                    ],
                ),
                422,
                has=INVALID,
            ),
        ),
        ("1.36",),
    ),
    Case(
        "differential: nulls in the lists of a merge patch",
        (
            post(PLAINS, {**plain(), "spec": {"list": [1], "object": {"a": 1}}}),
            merge(
                f"{PLAINS}/a",
                {"spec": {"list": [None, {"a": None}, [{"b": None, "c": 1}]]}},
                has={"spec.list": [None, {}, [{"c": 1}]]},
            ),
            merge(
                f"{PLAINS}/a",
                {"spec": {"object": [None, {"a": None}]}},
                has={"spec.object": [None, {"a": None}]},
            ),
            merge(
                f"{PLAINS}/a",
                {"spec": {"new": {"a": None, "list": [{"b": None}]}}},
                has={"spec.new": {"list": [{}]}},
            ),
        ),
        ("1.36",),
    ),
)
SCHEMAS = (
    Case(
        "differential: keyed items without their keys",
        (
            post(
                THINGS,
                thing(items=[{}, {}]),
                422,
                has={"details.causes.2.message": "Duplicate value: {}"},
            ),
        ),
        ("1.36",),
    ),
    Case(
        "differential: a value of the wrong type is not in the list of values either",
        (
            post(
                THINGS,
                thing(mode=1),
                422,
                has={
                    "details.causes.1.message": "Unsupported value: 1: "
                    'supported values: "A", "B"'
                },
            ),
        ),
        ("1.36",),
    ),
    Case(
        "differential: nobody manages what does not fit the schema",
        (
            post(
                THINGS,
                {**thing(), "status": {"phase": ["a"]}},
                has={"metadata.managedFields": ABSENT, "status": ABSENT},
            ),
            Step(
                "PATCH",
                f"{THINGS}/a",
                thing(),
                type=APPLY_PATCH,
                query={"fieldManager": "x"},
            ),
        ),
        ("1.36",),
    ),
)
MERGERS = (
    Case(
        "differential: a deletion that asks for nothing new keeps the order of "
        "finalizers",
        (
            post(PLAINS, plain(finalizers=["foregroundDeletion", "a.dev/one"])),
            delete(
                f"{PLAINS}/a",
                has={"metadata.finalizers": ["foregroundDeletion", "a.dev/one"]},
            ),
        ),
        BOTH,
    ),
    Case(
        "differential: items without a key merge with no list that is there",
        (
            post(PLAINS, plain("owner")),
            post(MAPS, config_map()),
            strategic(
                f"{MAPS}/a",
                {"metadata": {"ownerReferences": [UNKEYED]}},
                422,
                compare=WORDLESS,
            ),
            strategic(f"{MAPS}/a", {"metadata": {"ownerReferences": [owner()]}}),
            strategic(
                f"{MAPS}/a",
                {"metadata": {"ownerReferences": [UNKEYED]}},
                500,
                has={
                    "message": "map: map[name:x] does not contain declared merge key: "
                    "uid"
                },
            ),
            strategic(
                f"{MAPS}/a",
                {"metadata": {"ownerReferences": [{**UNKEYED, "$patch": "delete"}]}},
                500,
            ),
            strategic(
                f"{MAPS}/a",
                {"metadata": {"ownerReferences": [UNKEYED, {"$patch": "replace"}]}},
                500,
            ),
            strategic(
                f"{MAPS}/a", {"metadata": {"ownerReferences": [{"$patch": "replace"}]}}
            ),
        ),
        ("1.20",),
    ),
)
CASES = (*DELETION, *CREATION, *PATCHES, *TODAY, *SCHEMAS, *MERGERS)
