"""Features in the definitions of well-known projects.

They are defaults in the status, several versions, approved groups, and fields without a
meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH
from tests.conformance.suite import Case, Step

__all__ = ["CASES", "CRDS_136"]

Json = dict[str, Any]

GROUP = "projects.conf.dev"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
S: Json = {"type": "string"}
NEW = ("1.36",)


def fields(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def version(name: str, schema: Json, **more: Any) -> Json:
    found = {"name": name, "served": True, "storage": True, **more}
    return {**found, "schema": {"openAPIV3Schema": schema}}


def definition(kind: str, *versions: Json, group: str = GROUP, **more: Any) -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": list(versions),
            **more,
        },
    }


# As Gateway of the Gateway API: conditions that no controller has checked yet.
CONDITIONS: Json = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": S, "status": {**S, "default": "Unknown"}, "reason": S},
    },
}
STATUS: Json = {
    **fields(conditions=CONDITIONS, phase=S),
    "default": {"conditions": [{"type": "Accepted"}, {"type": "Programmed"}]},
}
GATE = version(
    "v1", fields(spec=fields(a=S, x={**S, "default": "X"}), status=STATUS)
) | {"subresources": {"status": {}}}
OLD_GATE = version(
    "v1beta1",
    fields(
        spec=fields(a=S, y={**S, "default": "Y"}),
        status={**fields(phase=S), "default": {"phase": "old"}},
    ),
    storage=False,
    subresources={"status": {}},
)
CRDS_136: tuple[Json, ...] = (
    definition("Gate", GATE, OLD_GATE),
    # Without the subresource, a status is a field as any other.
    definition("Fence", version("v1", fields(spec=fields(a=S), status=STATUS))),
)


def path(plural: str, name: str = "", version: str = "v1", sub: str = "") -> str:
    parts = f"/apis/{GROUP}/{version}/namespaces/{{ns}}/{plural}", name, sub
    return "/".join(part for part in parts if part)


def body(kind: str, name: str, version: str = "v1", **parts: Any) -> Json:
    head = {"apiVersion": f"{GROUP}/{version}", "kind": kind}
    return {**head, "metadata": {"name": name}, **parts}


def gate(name: str, version: str = "v1", **parts: Any) -> Step:
    made = body("Gate", name, version, **parts)
    return Step("POST", path("gates", version=version), made, code=201)


def gates(name: str, *steps: Step) -> Case:
    return Case(f"projects: {name}", steps, NEW)


def merge(name: str, version: str = "v1", sub: str = "", **parts: Any) -> Step:
    return Step("PATCH", path("gates", name, version, sub), parts, MERGE_PATCH)


UNKNOWN = [
    {"type": "Accepted", "status": "Unknown"},
    {"type": "Programmed", "status": "Unknown"},
]
STATUSES = (
    gates(
        "a new object has the default of its status",
        Step(
            "POST",
            path("gates"),
            body("Gate", "a", spec={"a": "1"}),
            code=201,
            has={"status.conditions": UNKNOWN, "metadata.generation": 1},
        ),
        Step("GET", path("gates", "a"), has={"status.conditions": UNKNOWN}),
    ),
    gates(
        "whatever status a creation sends",
        Step(
            "POST",
            path("gates"),
            body("Gate", "a", status={"phase": "mine"}),
            code=201,
            has={"status": {"conditions": UNKNOWN}},
        ),
    ),
    gates(
        "a creation that is only tried has it, too",
        Step(
            "POST",
            path("gates"),
            body("Gate", "a"),
            query={"dryRun": "All"},
            code=201,
            has={"status.conditions": UNKNOWN},
        ),
    ),
    gates(
        "an applied object has it, and its applier does not manage it",
        Step(
            "PATCH",
            path("gates", "a"),
            body("Gate", "a", spec={"a": "1"}),
            APPLY_PATCH,
            query={"fieldManager": "m"},
            code=201,
            has={"status.conditions": UNKNOWN},
        ),
        Step(
            "PATCH",
            path("gates", "a", sub="status"),
            body("Gate", "a", status={"phase": "Ready"}),
            APPLY_PATCH,
            query={"fieldManager": "m"},
        ),
    ),
    gates(
        "a status that is taken away comes back",
        gate("a"),
        merge("a", sub="status", status={"conditions": None, "phase": "p"}),
        merge("a", sub="status", status=None),
        merge("a", spec={"a": "2"}),
    ),
    gates(
        "the same twice in a status",
        gate("a"),
        Step(
            "PATCH",
            path("gates", "a", sub="status"),
            {"status": {"conditions": [{"type": "A"}, {"type": "A"}]}},
            MERGE_PATCH,
            code=422,
        ),
        Step(
            "PATCH",
            path("gates", "a", sub="status"),
            {"status": {"conditions": [{"status": "A"}, {"type": "A"}, {}]}},
            MERGE_PATCH,
            code=422,
        ),
    ),
    Case(
        "projects: a status without its subresource is kept as it was sent",
        (
            Step(
                "POST",
                path("fences"),
                body("Fence", "a", status={"phase": "mine"}),
                code=201,
                has={"status": {"phase": "mine"}},
            ),
            Step(
                "POST",
                path("fences"),
                body("Fence", "b"),
                code=201,
                has={"status.conditions": UNKNOWN},
            ),
        ),
        NEW,
    ),
)
VERSIONS = (
    gates(
        "another version shows what it has, and fills in nothing",
        gate("a", spec={"a": "1"}),
        Step(
            "GET",
            path("gates", "a", "v1beta1"),
            has={"spec": {"a": "1"}, "status": {}},
        ),
        Step("GET", path("gates", version="v1beta1"), has={"items.0.status": {}}),
        Step(
            "GET",
            path("gates", version="v1beta1"),
            query={"watch": "true"},
            has={"0.object.spec": {"a": "1"}},
        ),
    ),
    gates(
        "what came in another version has the defaults of the stored one",
        gate("a", "v1beta1", spec={"a": "1", "x": "lost"}),
        Step("GET", path("gates", "a"), has={"spec": {"a": "1", "x": "X"}}),
    ),
    gates(
        "a write through another version loses what that does not have",
        gate("a", spec={"a": "1", "x": "mine"}),
        merge("a", sub="status", status={"conditions": [{"type": "Accepted"}]}),
        merge("a", "v1beta1", spec={"a": "2"}),
        Step("GET", path("gates", "a"), has={"spec": {"a": "2", "x": "X"}}),
        merge("a", "v1beta1", "status", status={"phase": "new"}),
        Step("GET", path("gates", "a"), has={"status": {"phase": "new"}}),
    ),
    gates(
        "so does a deletion that has to wait",
        Step(
            "POST",
            path("gates"),
            {
                **body("Gate", "a", spec={"a": "1", "x": "mine"}),
                "metadata": {"name": "a", "finalizers": ["conf.dev/x"]},
            },
            code=201,
        ),
        Step("DELETE", path("gates", "a", "v1beta1")),
        Step("GET", path("gates", "a"), has={"spec": {"a": "1", "x": "X"}}),
    ),
    gates(
        "the first write stores the defaults that were only read, and counts",
        gate("a", spec={"a": "1"}),
        merge("a", spec={"a": "1"}),
        merge("a", spec={"a": "1"}),
    ),
    gates(
        "an apply that changes nothing fills in nothing",
        gate("a", spec={"a": "1"}),
        *(
            Step(
                "PATCH",
                path("gates", "a", "v1beta1"),
                body("Gate", "a", "v1beta1", spec={"a": "1"}),
                APPLY_PATCH,
                query={"fieldManager": manager},
                has={"metadata.generation": 1},
            )
            for manager in ("m", "k")
        ),
        merge("a", "v1beta1", spec={"y": "Z"}),
    ),
)


# ---------------------------------------------------------- how it is written down

EMPTY = definition(
    "Empty",
    version(
        "v1",
        {
            **fields(
                spec={
                    **fields(
                        a={
                            **S,
                            "description": "",
                            "nullable": False,
                            "unknown": 1,
                            "x-kubernetes-validations": [
                                {"rule": "self != ''", "message": "", "fieldPath": ""}
                            ],
                            "maxLength": 0,
                        },
                        b={"type": "integer", "minimum": 0, "maximum": 1.0},
                        c={
                            "type": "array",
                            "items": {**S, "pattern": ""},
                            "x-kubernetes-list-map-keys": [],
                        },
                    ),
                    "required": [],
                }
            ),
        },
        deprecated=False,
        subresources={"status": {"nothing": 1}},
        additionalPrinterColumns=[
            {
                "name": "A",
                "type": "string",
                "jsonPath": ".spec.a",
                "priority": 0,
                "description": "",
                "format": "",
                "width": 3,
            },
            {"name": "B", "type": "string", "jsonPath": ".spec.a", "priority": 1},
        ],
        selectableFields=[],
        unknown=1,
    ),
    preserveUnknownFields=False,
    conversion={"strategy": "None", "webhook": None},
    unknown={"a": 1},
)
EMPTY["spec"]["names"] |= {"shortNames": [], "categories": [], "singular": ""}
HOOKED = definition(
    "Hooked",
    version("v1", fields(spec=fields(a=S))),
    conversion={
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {
                "caBundle": "",
                "service": {"name": "s", "namespace": "n", "path": "/convert"},
            },
        },
    },
)


def tried(definition: Json) -> Step:
    return Step("POST", DEFINITIONS, definition, query={"dryRun": "All"}, code=201)


def refused_schema(schema: Json, **more: Any) -> Step:
    made = definition("Refused", version("v1", {**schema, **more}))
    return Step("POST", DEFINITIONS, made, query={"dryRun": "All"}, code=422)


WRITTEN = (
    gates("a definition without what says nothing", tried(EMPTY)),
    gates("the port of a conversion webhook's service", tried(HOOKED)),
)

# --------------------------------------------------------------- approved groups

APPROVAL = "api-approved.kubernetes.io"
URL = "https://example.com/approved"


def approved(group: str, approval: str | None) -> Json:
    found = definition("Approval", version("v1", fields(spec=fields(a=S))), group=group)
    if approval is not None:
        found["metadata"]["annotations"] = {APPROVAL: approval}
    return found


def approvals(group: str) -> Iterator[Step]:
    """The condition follows the annotation."""
    name = f"{DEFINITIONS}/approvals.{group}"
    yield Step("POST", DEFINITIONS, approved(group, URL), code=201, compare="code")
    for approval, status, reason in (
        (URL, "True", "ApprovedAnnotation"),
        ("unapproved, a test", "False", "UnapprovedAnnotation"),
        (f"{URL}/2", "True", "ApprovedAnnotation"),
    ):
        patch = {"metadata": {"annotations": {APPROVAL: approval}}}
        yield Step("PATCH", name, patch, MERGE_PATCH, compare="code")
        selector = f"metadata.name=approvals.{group}"
        yield Step(
            "GET",
            DEFINITIONS,
            query={"fieldSelector": selector},
            # The controllers add their conditions in any order.
            has={"items.0.status.conditions": Condition(status, reason)},
            compare="code",
            eventually=True,
        )
    yield Step("DELETE", name, compare="code")


class Condition:
    """Equal to conditions if one of them says this about the approval."""

    def __init__(self, status: str, reason: str) -> None:
        self.wanted = status, reason

    def __eq__(self, conditions: object) -> bool:
        return isinstance(conditions, list) and any(
            one["type"] == "KubernetesAPIApprovalPolicyConformant"
            and (one["status"], one["reason"]) == self.wanted
            for one in conditions
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"with {' '.join(self.wanted)}"


def refused(group: str, approval: str | None) -> Step:
    made = approved(group, approval)
    return Step("POST", DEFINITIONS, made, query={"dryRun": "All"}, code=422)


APPROVALS = (
    gates("the approval of a group of Kubernetes", *approvals("approved.conf.k8s.io")),
    gates(
        "groups that need an approval",
        *(
            refused(group, approval)
            for group in ("k8s.io", "kubernetes.io", "conf.k8s.io")
            for approval in (None, "yes")
        ),
    ),
    gates("groups that need none", tried(approved("conf.x-k8s.io", None))),
)
STRUCTURES = (
    gates(
        "a default is checked as it is written, without defaults of its parts",
        refused_schema(
            fields(
                spec={
                    **fields(a={**S, "default": "x"}),
                    "required": ["a"],
                    "default": {},
                }
            )
        ),
        refused_schema(
            fields(
                spec={**fields(a={"type": "integer", "default": "x"}), "default": {}}
            )
        ),
    ),
    gates(
        "a default keeps to the rules",
        refused_schema(
            fields(
                spec=fields(
                    a={
                        "type": "integer",
                        "default": 3,
                        "x-kubernetes-validations": [{"rule": "self < 2"}],
                    }
                )
            )
        ),
        refused_schema(
            fields(
                spec={
                    **fields(
                        a={
                            **S,
                            "maxLength": 9,
                            "x-kubernetes-validations": [{"rule": "self != 'x'"}],
                        }
                    ),
                    "default": {"a": "x"},
                }
            )
        ),
    ),
    gates(
        "alternatives at the root check what is there",
        refused_schema(
            fields(spec=fields(a=S)),
            oneOf=[
                {"required": ["spec"], "properties": {"b": {"pattern": "x"}}},
                {"properties": {"spec": {"properties": {"q": {"minLength": 1}}}}},
                {"items": {"pattern": "x"}},
            ],
        ),
    ),
    gates(
        "an integer or a text inside of an alternative",
        refused_schema(
            fields(
                spec={
                    "x-kubernetes-preserve-unknown-fields": True,
                    "oneOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}],
                }
            )
        ),
    ),
)


# ------------------------------------------------------------------------- scale

SCALED = version(
    "v1",
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.n",
            "statusReplicasPath": ".status.n",
            "labelSelectorPath": ".status.selector",
        },
    },
)
CRDS_136 = (*CRDS_136, definition("Crew", SCALED))
CREW = path("crews", "a")
SCALE = path("crews", "a", sub="scale")


def crew(**parts: Any) -> Step:
    return Step("POST", path("crews"), body("Crew", "a", **parts), code=201)


def scale(replicas: Any = 3, **metadata: Any) -> Json:
    found = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    named = {"name": "a", **metadata}
    return {**found, "metadata": named, "spec": {"replicas": replicas}}


def put(body: Any, code: int = 200, **more: Any) -> Step:
    return Step("PUT", SCALE, body, code=code, **more)


def change(patch: Json, code: int = 200, where: str = SCALE, **more: Any) -> Step:
    return Step("PATCH", where, patch, MERGE_PATCH, code=code, **more)


def applied(replicas: Any, code: int, **query: str) -> Step:
    query = {"fieldManager": "m", **query}
    return Step("PATCH", SCALE, scale(replicas), APPLY_PATCH, query=query, code=code)


SCALING = (
    gates(
        "what is scaled has replicas",
        crew(spec={"x": 1}),
        Step("GET", SCALE, code=500),
        change({"metadata": {}}, 400),
        change({"spec": {"replicas": 4}}),
        Step("GET", SCALE, has={"spec.replicas": 4}),
    ),
    gates(
        "scales that are none, or another's",
        crew(spec={"n": 1}),
        put([1], 400),
        put({"spec": {"replicas": 2}}, 400),
        put({**scale(), "kind": "Other"}, 400),
        put({**scale(), "apiVersion": "autoscaling/v2"}, 400),
        put(scale(name="b"), 400),
        put(scale(namespace="elsewhere"), 400),
        put(scale(uid="another"), 409, compare="code"),
        put(scale(resourceVersion="1"), 409),
        put(scale(2**31), 400),
        put(scale("x"), 400),
        put(scale(-1), 422),
        change({"spec": {"replicas": "x"}}, 422, compare="code"),
        change({"spec": {"replicas": -1}}, 422),
        Step("DELETE", SCALE, code=405),
        Step("POST", SCALE, scale(), code=405),
        Step("GET", CREW, has={"spec.n": 1}),
    ),
    gates(
        "nobody manages no replicas",
        crew(spec={"n": 1}),
        put(scale(3)),
        Step("GET", CREW),
        change({"spec": {"replicas": None}}),
        Step("GET", CREW, has={"spec.n": 0}),
        applied(2, 500),
        put(scale(2)),
        applied(2, 500),
    ),
    gates(
        "applied replicas are in conflict, or cannot be converted",
        crew(spec={"n": 1}),
        put(scale(2)),
        applied(4, 409),
        applied("x", 500),
        applied(4, 500, force="true"),
        # What changes nothing needs no conversion.
        applied(2, 200),
        Step("GET", CREW),
        applied(2, 200, fieldManager="k"),
        applied(4, 409),
        Step("GET", CREW),
    ),
    gates(
        "replicas that are no numbers",
        crew(spec={"n": 1}),
        *(
            change({"spec": spec}, 422, where=CREW)
            for spec in (
                {"n": "x"},
                {"n": 1.5},
                {"n": True},
                {"n": {"a": [1]}},
                {"n": -1},
                {"n": 2**31},
                "x",
                ["x", {"a": "b"}],
            )
        ),
        *(
            change({"status": status}, 422, where=f"{CREW}/status")
            for status in ({"n": "x"}, {"n": -1}, {"selector": 1}, "x")
        ),
        Step("POST", path("crews"), body("Crew", "b", spec={"n": "x"}), code=422),
    ),
)
# ------------------------------------------------------------------------- nulls

CRDS_136 = (
    *CRDS_136,
    definition(
        "Null",
        version(
            "v1",
            fields(
                spec={
                    **fields(a={**fields(b=S), "nullable": True}, c=S),
                    "oneOf": [
                        {"not": {"required": ["a"]}},
                        {
                            "required": ["a"],
                            "properties": {"a": {"oneOf": [{"required": ["b"]}]}},
                        },
                    ],
                }
            ),
        ),
    ),
)
NULLS = (
    gates(
        "of a null no alternative asks anything",
        *(
            Step("POST", path("nulls"), body("Null", name, spec=spec), code=code)
            for name, spec, code in (
                ("a", {"a": None}, 201),
                ("b", {"a": {}}, 422),
                ("c", {"a": {"b": "x"}}, 201),
                ("d", {}, 201),
            )
        ),
    ),
)
CASES = (
    *STATUSES,
    *VERSIONS,
    *WRITTEN,
    *APPROVALS,
    *STRUCTURES,
    *SCALING,
    *NULLS,
)
