"""Lists: versions, pages, tokens, selectors."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS", "CRDS_136"]

Json = dict[str, Any]

GROUP = "lists.conf.dev"
THINGS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/things"
EVERY_THING = f"/apis/{GROUP}/v1/things"
PAINTS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/paints"
GLOBES = f"/apis/{GROUP}/v1/globes"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
SPACES = "/api/v1/namespaces"
BOTH = ("1.20", "1.36")
NEW = ("1.36",)
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PAINT: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "colour": {"type": "string"},
                "layers": {"type": "integer"},
                "shiny": {"type": "boolean"},
            },
        }
    },
}


def crd(kind: str, schema: Json, scope: str = "Namespaced", **version: Any) -> Json:
    plural = f"{kind.lower()}s"
    found = {"name": "v1", "served": True, "storage": True, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [{**found, "schema": {"openAPIV3Schema": schema}}],
        },
    }


FIELDS = [{"jsonPath": f".spec.{name}"} for name in ("colour", "layers", "shiny")]
CRDS = (crd("Thing", OPEN), crd("Globe", OPEN, "Cluster"))
CRDS_136 = (crd("Paint", PAINT, selectableFields=FIELDS),)


def get(path: str, code: int = 200, **more: Any) -> Step:
    return Step("GET", path, code=code, **more)


def listed(path: str = THINGS, code: int = 200, /, **more: Any) -> Step:
    """A list whose query has all parameters that are not options of a step."""
    options = {
        name: more.pop(name)
        for name in ("has", "compare", "old", "eventually")
        if name in more
    }
    query = {name: str(value) for name, value in more.items()}
    return Step("GET", path, query=query, code=code, **options)


def post(path: str, body: Any, code: int = 201, **more: Any) -> Step:
    return Step("POST", path, body, code=code, **more)


def thing(name: str, kind: str = "Thing", **metadata: Any) -> Json:
    named = {"name": name, **metadata}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": named}


def create(*names: str, **metadata: Any) -> tuple[Step, ...]:
    return tuple(post(THINGS, thing(name, **metadata)) for name in names)


def config(name: str, **metadata: Any) -> Json:
    named = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}


def items(*names: str) -> Json:
    """The items of a list of exactly these objects."""
    found: Json = {f"items.{i}.metadata.name": name for i, name in enumerate(names)}
    return {**found, f"items.{len(names)}": ABSENT}


def token(**parts: Any) -> str:
    return coded(json.dumps(parts))


def coded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


FORM = "meta.k8s.io/v1"
VERSION = "$0.metadata.resourceVersion"


# -------------------------------------------------------------------- versions


def versions() -> Iterator[Case]:
    yield Case(
        "a list at an exact version shows what was there",
        (
            *create("a", "b"),
            Step("PATCH", f"{THINGS}/a", {"spec": {"x": 1}}, MERGE_PATCH),
            Step("DELETE", f"{THINGS}/b"),
            *create("c"),
            listed(
                resourceVersion=VERSION, resourceVersionMatch="Exact", has=items("a")
            ),
            listed(
                resourceVersion="$1.metadata.resourceVersion",
                resourceVersionMatch="Exact",
                has={**items("a", "b"), "items.0.spec": ABSENT},
            ),
            listed(
                resourceVersion="$2.metadata.resourceVersion",
                resourceVersionMatch="Exact",
                has={**items("a", "b"), "items.0.spec.x": 1},
            ),
            listed(has=items("a", "c")),
        ),
        servers=BOTH,
    )
    yield Case(
        "a built-in list at an exact version",
        (
            post(MAPS, config("a", labels={"l": "1"})),
            post(MAPS, config("b", labels={"l": "1"})),
            Step("DELETE", f"{MAPS}/a"),
            listed(
                MAPS,
                labelSelector="l=1",
                resourceVersion="$1.metadata.resourceVersion",
                resourceVersionMatch="Exact",
                has=items("a", "b"),
            ),
        ),
    )
    yield Case(
        "a limit makes a version exact",
        (
            *create("a", "b"),
            listed(resourceVersion=VERSION, limit=5, has=items("a")),
            listed(
                resourceVersion="$1.metadata.resourceVersion",
                limit=5,
                resourceVersionMatch="NotOlderThan",
                has=items("a", "b"),
            ),
            listed(
                resourceVersion="$1.metadata.resourceVersion",
                resourceVersionMatch="NotOlderThan",
                labelSelector="none",
                has=items(),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "the cache that answers for version 0 knows no pages",
        (
            *create("a", "b"),
            listed(
                resourceVersion=0,
                limit=1,
                has={"items.1.metadata.name": "b", "metadata.continue": ""},
                eventually=True,  # that cache may be behind
            ),
            listed(resourceVersion=0, limit=1, resourceVersionMatch="NotOlderThan"),
            listed(resourceVersion=0, has=items("a", "b")),
        ),
        servers=NEW,
    )
    yield Case(
        "options of lists that exclude each other",
        (
            *(
                listed(THINGS, 422, **query, has={"reason": "Invalid"})
                for query in (
                    {"resourceVersionMatch": "Exact"},
                    {"resourceVersionMatch": "NotOlderThan"},
                    {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
                    {"resourceVersion": "5", "resourceVersionMatch": "Newest"},
                    {"resourceVersion": "", "resourceVersionMatch": "Exact"},
                    {
                        "resourceVersion": "5",
                        "resourceVersionMatch": "Exact",
                        "continue": "abc",
                    },
                    {"resourceVersionMatch": "no", "continue": "abc"},
                )
            ),
            listed(
                THINGS,
                422,
                sendInitialEvents="true",
                has={"details.causes.0.field": "sendInitialEvents"},
                old=(200, {}),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "versions that are none",
        (
            *(
                listed(
                    THINGS,
                    400,
                    resourceVersion=version,
                    has={"reason": "BadRequest"},
                    old=(500, {"reason": ABSENT}),
                )
                for version in ("abc", "-5", "1.5", "99999999999999999999")
            ),
            listed(THINGS, 400, resourceVersion="x", resourceVersionMatch="Exact"),
            get(f"{THINGS}/a", 500, query={"resourceVersion": "abc"}),
        ),
        servers=BOTH,
    )
    parts = ("reason", "details", "code")
    future = {"reason": "Timeout", "details.retryAfterSeconds": 1}
    yield Case(
        "a version that is yet to come",
        (
            *create("a"),
            listed(THINGS, 504, resourceVersion=99999999, compare=parts, has=future),
            get(
                f"{THINGS}/a",
                504,
                query={"resourceVersion": "99999999"},
                compare=parts,
                has=future,
            ),
            listed(
                THINGS,
                504,
                resourceVersion=99999999,
                limit=2,
                compare=parts,
                has=future,
                old=(500, {}),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "the options of lists mean nothing to a get",
        (
            *create("a"),
            get(f"{THINGS}/a", query={"limit": "abc", "labelSelector": ",,"}),
            get(f"{THINGS}/a", query={"resourceVersion": "0", "watch": "yes"}),
            get(f"{THINGS}/a", query={"resourceVersion": VERSION}),
        ),
        servers=BOTH,
    )
    # Documented, and seen after a compaction by hand: no case can wait for one.
    yield Case(
        "versions that are forgotten",
        (
            listed(
                THINGS,
                410,
                resourceVersion=1,
                resourceVersionMatch="Exact",
                has={
                    "reason": "Expired",
                    "message": "The resourceVersion for the provided list is too old.",
                },
            ),
            *create("a", "b", "c"),
            listed(
                THINGS,
                410,
                **{"continue": token(v=FORM, rv=1, start="/a\0")},
                has={"reason": "Expired"},
            ),
            listed(
                **{"continue": "$4.metadata.continue"},
                limit=1,
                has={**items("b"), "metadata.remainingItemCount": 1},
            ),
        ),
        servers=(),
    )


# ----------------------------------------------------------------------- pages


def pages() -> Iterator[Case]:
    yield Case(
        "pages show the state of the first one",
        (
            *create("a", "b", "c"),
            listed(limit=1, has={**items("a"), "metadata.remainingItemCount": 2}),
            Step("DELETE", f"{THINGS}/b"),
            *create("bb"),
            Step("PATCH", f"{THINGS}/c", {"spec": {"x": 1}}, MERGE_PATCH),
            listed(
                limit=1,
                **{"continue": "$3.metadata.continue"},
                has={**items("b"), "metadata.remainingItemCount": 1},
            ),
            listed(
                **{"continue": "$7.metadata.continue"},
                has={
                    **items("c"),
                    "items.0.spec": ABSENT,
                    "metadata.continue": "",
                    "metadata.remainingItemCount": ABSENT,
                },
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "pages of a built-in kind",
        (
            *(post(MAPS, config(name)) for name in ("a", "b", "c")),
            listed(MAPS, limit=2, has=items("a", "b"), compare=("items",)),
            Step("DELETE", f"{MAPS}/c"),
            listed(
                MAPS,
                limit=1,
                **{"continue": "$3.metadata.continue"},
                has=items("c"),
                compare=("items",),
            ),
        ),
    )
    yield Case(
        "how many are left is not known behind a selector",
        (
            *create("a", "b", "c", labels={"l": "1"}),
            listed(
                limit=2,
                labelSelector="l=1",
                has={**items("a", "b"), "metadata.remainingItemCount": ABSENT},
            ),
            listed(
                limit=1,
                labelSelector="l=1",
                **{"continue": "$3.metadata.continue"},
                has=items("c"),
            ),
            listed(limit=1, fieldSelector="metadata.name=b", has=items("b")),
        ),
        servers=BOTH,
    )
    yield Case(
        "a full page promises another as long as there are keys behind it",
        (
            *create("a", "b", "c", labels={"l": "1"}),
            *create("d", labels={"l": "2"}),
            listed(limit=3, labelSelector="l=1", has=items("a", "b", "c")),
            listed(
                limit=3,
                labelSelector="l=1",
                **{"continue": "$4.metadata.continue"},
                has=items(),
            ),
            listed(limit=1, fieldSelector="metadata.name!=d", has=items("a")),
            listed(
                limit=2,
                fieldSelector="metadata.name!=d",
                **{"continue": "$6.metadata.continue"},
                has=items("b", "c"),
            ),
            listed(limit=4, labelSelector="l=1", has=items("a", "b", "c")),
            listed(limit=1, labelSelector="l=2", has=items("d")),
            listed(limit=1, labelSelector="l=3", has=items()),
        ),
        servers=BOTH,
    )
    yield Case(
        "limits",
        (
            *create("a", "b"),
            listed(limit=0, has=items("a", "b")),
            listed(limit=-1, has=items("a", "b")),
            listed(limit=2**62, has=items("a", "b")),
            listed(limit="+1", has=items("a")),
            *(
                listed(THINGS, 400, limit=limit, has={"reason": "BadRequest"})
                for limit in ("abc", "2.5", "", "1e3", str(10**20), "-" + str(10**20))
            ),
            listed(THINGS, 400, timeoutSeconds="soon"),
        ),
        servers=BOTH,
    )
    yield Case(
        "a token comes without a version",
        (
            *create("a", "b"),
            listed(limit=1),
            listed(
                THINGS,
                400,
                limit=1,
                **{"continue": "$2.metadata.continue"},
                resourceVersion=VERSION,
                has={
                    "message": "specifying resource version is not allowed when "
                    "using continue"
                },
            ),
            listed(
                limit=5,
                **{"continue": "$2.metadata.continue"},
                resourceVersion=0,
                has=items("b"),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "tokens that are none",
        tuple(
            listed(THINGS, 400, **{"continue": text}, has={"reason": "BadRequest"})
            for text in (
                "abc",
                "garbage!!",
                coded("{"),
                token(v=FORM, rv=0, start="b"),
                token(v=FORM, rv=7, start=""),
                token(v=FORM, rv=7, start="../b"),
                token(v=FORM, rv="a", start="b"),
                token(v=1),
            )
        ),
        servers=BOTH,
    )
    yield Case(
        "tokens of another form",
        tuple(
            listed(
                THINGS,
                400,
                **{"continue": text},
                has={"reason": "BadRequest"},
                old=(400, {"reason": "BadRequest"}),
            )
            for text in (
                token(v="x", rv=1, start="b"),
                coded("null"),
                coded("[]"),
                coded("3"),
                token(),
            )
        ),
        servers=BOTH,
    )
    yield Case(
        "a token that goes on in the present",
        (
            *create("a", "b", "c"),
            listed(
                **{"continue": token(v=FORM, rv=-1, start="b")},
                limit=1,
                has={**items("b"), "metadata.remainingItemCount": 1},
            ),
            listed(**{"continue": token(v=FORM, rv=-1, start="/b\0")}, has=items("c")),
        ),
        servers=BOTH,
    )
    yield Case(
        "lists are ordered as etcd orders keys",
        (
            post(SPACES, {"metadata": {"name": "{ns}-b"}}, compare="code"),
            *create("a", "b.c", "b-c", labels={"of": "{ns}"}),
            post(THINGS.replace("{ns}", "{ns}-b"), thing("a", labels={"of": "{ns}"})),
            listed(
                EVERY_THING,
                labelSelector="of={ns}",
                has={
                    # "-" comes before "/" which comes before letters.
                    "items.0.metadata.name": "a",
                    "items.1.metadata.name": "a",
                    "items.2.metadata.name": "b-c",
                    "items.3.metadata.name": "b.c",
                },
            ),
            listed(EVERY_THING, labelSelector="of={ns}", limit=1),
            listed(
                EVERY_THING,
                labelSelector="of={ns}",
                limit=2,
                **{"continue": "$6.metadata.continue"},
                has={
                    "items.0.metadata.name": "a",
                    "items.1.metadata.name": "b-c",
                },
            ),
        ),
    )
    yield Case(
        "lists of nothing",
        (
            listed(has={"kind": "ThingList", "items": []}),
            listed(limit=3, resourceVersion=0, has={"items": []}),
            listed(GLOBES, labelSelector="no", has={"kind": "GlobeList", "items": []}),
        ),
        servers=BOTH,
    )


# ------------------------------------------------------------------- selectors


def labels() -> Iterator[Case]:
    yield Case(
        "label selectors",
        (
            *create("a", labels={"l": "a", "n": "5"}),
            *create("b", labels={"l": "b", "n": "x"}),
            *create("c"),
            *(
                listed(labelSelector=selector, has=items(*found))
                for selector, *found in (
                    ("l", "a", "b"),
                    ("!l", "c"),
                    ("l=a", "a"),
                    ("l==a", "a"),
                    ("l!=a", "b", "c"),
                    ("l in (a, b)", "a", "b"),
                    ("l in(a)", "a"),
                    ("l notin (a,b)", "c"),
                    ("l != a , l", "b"),
                    ("n>4", "a"),
                    ("n > 5",),
                    ("n<6", "a"),
                    ("l=a,l=b",),
                    ("l in ()",),
                    ("l in (,a)", "a"),
                    ("l in (a,)", "a"),
                    ("in",),
                    ("notin notin (in)", "a", "b", "c"),
                    ("l=",),
                    ("  ", "a", "b", "c"),
                    ("x.y/z!=", "a", "b", "c"),
                )
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "label selectors that cannot be parsed",
        tuple(
            listed(THINGS, 400, labelSelector=selector, has={"reason": "BadRequest"})
            for selector in (
                "a in",
                "a in (",
                "a in (x",
                "a in (x,",
                "a notin (x",
                "a in x",
                "a in (x) b",
                "!",
                "!a=b",
                "a,,b",
                ",a",
                "a,",
                "a,!,b",
                "a=b=c",
                "=b",
                "a=b c",
                "(a)",
                "a=(b)",
                "a===b",
                "a>=1",
                "a<>1",
            )
        ),
        servers=BOTH,
    )
    yield Case(
        "label selectors that cannot be parsed, in today's words",
        tuple(
            listed(
                THINGS,
                400,
                labelSelector=selector,
                has={"reason": "BadRequest"},
                old=(400, {"reason": "BadRequest"}),
            )
            for selector in (
                "a b",
                "a!",
                "a!b",
                "a exists",
                "a>x",
                "a>",
                "a>-1",
                "a<1.5",
                "-a",
                "a-",
                "/a",
                "a/",
                "A_b/c=1",
                "a=-b",
                "a=b-",
                "a in (-b)",
                "l=a|b",
            )
        ),
        servers=BOTH,
    )


def fields() -> Iterator[Case]:
    yield Case(
        "field selectors that every kind has",
        (
            *create("a", "b"),
            *(
                listed(fieldSelector=selector, has=items(*found))
                for selector, *found in (
                    ("metadata.name=a", "a"),
                    ("metadata.name==a", "a"),
                    ("metadata.name!=a", "b"),
                    ("metadata.name=",),
                    ("metadata.name=a,metadata.namespace={ns}", "a"),
                    ("metadata.namespace=other",),
                    ("metadata.name=a,", "a"),
                    (",", "a", "b"),
                    ("metadata.name=a\\,b",),
                )
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "field selectors that cannot be used",
        tuple(
            listed(THINGS, 400, fieldSelector=selector, has={"reason": "BadRequest"})
            for selector in (
                "metadata.name",
                "metadata.name = a",
                "a=b=c",
                "=a",
                "b,a",
                "metadata.name>a",
                "metadata.name=a\\b",
                "spec.y=1,spec.x=2",
                "metadata.uid=x",
                " ",
            )
        ),
        servers=BOTH,
    )
    yield Case(
        "a cluster-scoped custom kind has no namespace to select by",
        (
            listed(GLOBES, fieldSelector="metadata.name=no", has=items()),
            listed(GLOBES, 400, fieldSelector="metadata.namespace=x"),
        ),
        servers=BOTH,
    )
    unknown = [
        listed(path, 400, fieldSelector="spec.foo=x", has={"reason": "BadRequest"})
        for path in (
            MAPS,
            PODS,
            "/api/v1/nodes",
            "/api/v1/namespaces/{ns}/secrets",
            "/api/v1/namespaces/{ns}/events",
            "/apis/apps/v1/namespaces/{ns}/deployments",
            "/apis/batch/v1/namespaces/{ns}/jobs",
            "/apis/apps/v1/namespaces/{ns}/replicasets",
        )
    ]
    yield Case("fields that built-in kinds do not select by", tuple(unknown))
    container = {"name": "c", "image": "i"}
    pod = {"apiVersion": "v1", "kind": "Pod"}
    yield Case(
        "field selectors of pods",
        (
            post(
                PODS,
                {
                    **pod,
                    "metadata": {"name": "a"},
                    "spec": {
                        "containers": [container],
                        "nodeName": "n1",
                        "schedulerName": "mine",
                        "restartPolicy": "Never",
                    },
                },
                compare="code",
                eventually=True,  # the service account comes with time
            ),
            post(
                PODS,
                {
                    **pod,
                    "metadata": {"name": "b"},
                    "spec": {"containers": [container], "hostNetwork": True},
                },
                compare="code",
            ),
            *(
                listed(PODS, fieldSelector=selector, has=items(*found), compare="code")
                for selector, *found in (
                    ("spec.nodeName=n1", "a"),
                    ("spec.nodeName=", "b"),
                    ("spec.restartPolicy!=Never", "b"),
                    ("spec.schedulerName=mine", "a"),
                    ("status.phase=Pending", "a", "b"),
                    ("status.phase!=Pending",),
                    ("status.podIP=", "a", "b"),
                    ("status.nominatedNodeName=", "a", "b"),
                )
            ),
            listed(
                PODS,
                fieldSelector="spec.hostNetwork=true",
                has=items("b"),
                old=(400, {"reason": "BadRequest"}),
            ),
        ),
    )
    secret = {"apiVersion": "v1", "kind": "Secret"}
    secrets = "/api/v1/namespaces/{ns}/secrets"
    yield Case(
        "field selectors of secrets and namespaces",
        (
            post(
                secrets,
                {**secret, "metadata": {"name": "a"}, "type": "conf.dev/a"},
            ),
            listed(secrets, fieldSelector="type=conf.dev/a", has=items("a")),
            listed(secrets, fieldSelector="type=conf.dev/b", has=items()),
            listed(
                SPACES,
                fieldSelector="metadata.name={ns},status.phase=Active",
                has={"items.0.status.phase": "Active", "items.1": ABSENT},
                compare=("items.0.metadata.name", "items.0.status"),
            ),
            listed(
                SPACES,
                fieldSelector="metadata.name={ns},status.phase=Terminating",
                has=items(),
            ),
        ),
    )
    node = {"apiVersion": "v1", "kind": "Node"}
    yield Case(
        "field selectors of nodes",
        (
            post(
                "/api/v1/nodes",
                {**node, "metadata": {"name": "{ns}-up"}},
                compare="code",
            ),
            post(
                "/api/v1/nodes",
                {
                    **node,
                    "metadata": {"name": "{ns}-off"},
                    "spec": {"unschedulable": True},
                },
                compare="code",
            ),
            listed(
                "/api/v1/nodes",
                fieldSelector="spec.unschedulable=false,metadata.name={ns}-up",
                has={"items.0.kind": ABSENT, "items.1": ABSENT},
                compare="code",
            ),
            listed(
                "/api/v1/nodes",
                fieldSelector="spec.unschedulable=true,metadata.name={ns}-up",
                has=items(),
                compare="code",
            ),
            Step("DELETE", "/api/v1/nodes/{ns}-up", compare="code"),
            Step("DELETE", "/api/v1/nodes/{ns}-off", compare="code"),
        ),
    )
    events = "/api/v1/namespaces/{ns}/events"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"},
        "reason": "Because",
        "type": "Normal",
        "source": {"component": "conf"},
    }
    yield Case(
        "field selectors of events",
        (
            post(events, event, compare="code"),
            *(
                listed(
                    events, fieldSelector=selector, has=items(*found), compare="code"
                )
                for selector, *found in (
                    ("involvedObject.kind=Pod,involvedObject.name=p", "e"),
                    ("involvedObject.name!=p",),
                    ("reason=Because,type=Normal", "e"),
                    ("source=conf", "e"),
                    ("involvedObject.uid=x",),
                )
            ),
            listed(
                "/apis/events.k8s.io/v1/namespaces/{ns}/events",
                fieldSelector="regarding.name=p,reason=Because",
                has=items("e"),
                compare="code",
            ),
            listed(
                "/apis/events.k8s.io/v1/namespaces/{ns}/events",
                400,
                fieldSelector="involvedObject.name=p",
            ),
        ),
    )
    services = "/api/v1/namespaces/{ns}/services"
    spec = {"ports": [{"port": 80}], "clusterIP": "None"}
    yield Case(
        "field selectors of services",
        (
            post(
                services,
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "s"},
                    "spec": spec,
                },
                compare="code",
            ),
            listed(
                services,
                fieldSelector="spec.clusterIP=None,spec.type=ClusterIP",
                has=items("s"),
                old=(400, {"reason": "BadRequest"}),
            ),
        ),
    )
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    jobs = "/apis/batch/v1/namespaces/{ns}/jobs"
    yield Case(
        "field selectors that read as numbers",
        (
            post(
                jobs,
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {"name": "j"},
                    "spec": {"template": template, "parallelism": 0},
                },
                compare="code",
            ),
            listed(
                jobs,
                fieldSelector="status.successful=0",
                has=items("j"),
                compare="code",
            ),
            listed(
                jobs, fieldSelector="status.successful=1", has=items(), compare="code"
            ),
        ),
    )
    yield Case(
        "selectable fields of custom kinds",
        (
            post(PAINTS, {**thing("a", "Paint"), "spec": {"colour": "red"}}),
            post(
                PAINTS,
                {**thing("b", "Paint"), "spec": {"layers": 3, "shiny": True}},
            ),
            *(
                listed(PAINTS, fieldSelector=selector, has=items(*found))
                for selector, *found in (
                    ("spec.colour=red", "a"),
                    ("spec.colour!=red", "b"),
                    ("spec.colour=", "b"),
                    ("spec.layers=3", "b"),
                    ("spec.shiny=true", "b"),
                    ("spec.colour=red,spec.layers=3",),
                    ("metadata.name=b,spec.shiny!=false", "b"),
                )
            ),
            listed(PAINTS, 400, fieldSelector="spec.size=1"),
        ),
        servers=NEW,
    )


CASES = (*versions(), *pages(), *labels(), *fields())
