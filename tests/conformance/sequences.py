"""Random sequences of requests, for the simulated and a real server alike.

An operation names objects, not their uids and versions, which differ from server
to server: "@uid:", "@version:" and "@stale:" in its texts stand for what the server
has shown of an object so far.  So operations make sense in any order, and a
sequence stays a sequence when some of it are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)

__all__ = [
    "DEFINITIONS_OF_KINDS",
    "KINDS",
    "Kind",
    "Memory",
    "Op",
    "families",
    "resource_of",
    "sequences",
]

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

NAMES = ("a", "b", "c")
NOWHERE = "00000000-0000-0000-0000-000000000000"


def resource_of(plural: str) -> str:
    """The stored resource: the versions of a kind are one resource.

    >>> resource_of("crates@v1beta1")
    'crates'
    """
    return plural.partition("@")[0]


@dataclass(frozen=True, eq=False, repr=False)
class Kind:
    """A kind to play with: its scope, and the parts of its objects."""

    kind: str
    api_version: str
    plural: str
    parts: Strategy
    sample: Json = field(default_factory=dict)
    # What fits the schema: for server-side apply, which does not get far without.
    fitting: Strategy = field(default_factory=lambda: st.just({}))
    status: Strategy | None = None
    paths: tuple[str, ...] = ()  # for JSON patches
    custom: bool = False
    cluster: bool = False
    scaled: bool = False

    def __repr__(self) -> str:
        return self.kind

    @property
    def resource(self) -> str:
        """The plural without the version that distinguishes kinds of one resource."""
        return resource_of(self.plural)

    @property
    def collection(self) -> str:
        root = "/apis/" if "/" in self.api_version else "/api/"
        inside = "" if self.cluster else "/namespaces/{ns}"
        return f"{root}{self.api_version}{inside}/{self.resource}"

    @property
    def everywhere(self) -> str:
        """The path of all objects in all namespaces."""
        return self.collection.replace("/namespaces/{ns}", "")

    def called(self, name: str) -> str:
        """Objects outside namespaces carry the sequence's name in theirs."""
        return f"{{ns}}-{name}" if self.cluster else name


@dataclass(frozen=True)
class Op:
    """One request, or a list with all its pages, or a watch at the end."""

    verb: str
    plural: str
    name: str = ""
    sub: str = ""
    body: Any = None
    type: str = JSON
    query: tuple[tuple[str, str], ...] = ()
    # The body is what was last seen of the object, with this merged into it.
    onto: bool = False
    accept: str = JSON


class Memory:
    """The objects that one server has shown so far."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.versions: dict[str, list[str]] = {}
        self.seen: dict[str, Json] = {}

    def learn(self, plural: str, body: Any) -> None:
        metadata = body.get("metadata") if isinstance(body, dict) else None
        if not isinstance(metadata, dict) or "uid" not in metadata:
            return
        name = metadata["name"].removeprefix(self.namespace + "-")
        key = f"{resource_of(plural)}/{name}"
        self.seen[key] = body
        self.versions.setdefault(key, []).append(metadata["resourceVersion"])

    def query(self, pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
        """The parameters filled in, without versions of what has not been seen."""
        found = dict(pairs)
        what, _, key = found.get("resourceVersion", "").partition(":")
        if what in ("@version", "@stale") and key not in self.versions:
            del found["resourceVersion"]
            found.pop("resourceVersionMatch", None)
        return {name: self.filled(value) for name, value in found.items()}

    def filled(self, value: Any) -> Any:
        """The value with what stands for something replaced by it."""
        if isinstance(value, dict):
            return {k: self.filled(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, str):
            return value
        what, _, key = value.partition(":")
        match what:
            case "@uid":
                seen = self.seen.get(key)
                return seen["metadata"]["uid"] if seen else NOWHERE
            case "@version":
                return self.versions.get(key, ["1"])[-1]
            case "@stale":
                return self.versions.get(key, ["1"])[0]
            case _:
                return value.replace("{ns}", self.namespace)


# -------------------------------------------------------------------- objects


def some(**parts: Strategy) -> Strategy:
    """Any of these parts, each there or not."""
    return st.fixed_dictionaries({}, optional=parts)


def rarely(usual: Strategy, odd: Strategy, one_in: int = 8) -> Strategy:
    """Mostly the one, sometimes the other."""
    return st.integers(1, one_in).flatmap(lambda n: odd if n == one_in else usual)


WORDS = st.sampled_from(["a", "b", "x1", "two words", ""])
NUMBERS = st.sampled_from([0, 1, 2, 3, 10, 11, -1, 2.5])
ODD = st.sampled_from([None, 1, "text", [], ["a"], {}, {"a": 1}, True])
LABELS = some(
    app=st.sampled_from(["a", "b"]),
    tier=st.sampled_from(["x", "y", ""]),
)
BAD_LABELS = st.sampled_from([{"app": "a b"}, {"a b": "c"}, {"app": 1}, {"app": None}])
FINALIZERS = st.lists(
    st.sampled_from(["a.dev/one", "a.dev/two"]), max_size=2, unique=True
)
BAD_FINALIZERS = st.sampled_from(
    [["a b/c"], ["foregroundDeletion"], ["orphan"], ["a.dev/one", "a.dev/one"], "x"]
)
VERSIONS = ("@version:", "@stale:")
POLICIES = ("Background", "Foreground", "Orphan")


def references(kinds: tuple[Kind, ...]) -> Strategy:
    """Owner references to objects that may or may not be there."""

    def to(kind: Kind, name: str, more: Json) -> list[Json]:
        owner = {"apiVersion": kind.api_version, "kind": kind.kind}
        uid = f"@uid:{kind.resource}/{name}"
        return [{**owner, "name": kind.called(name), "uid": uid, **more}]

    more = some(controller=st.booleans(), blockOwnerDeletion=st.booleans())
    return st.builds(to, st.sampled_from(kinds), st.sampled_from(NAMES), more)


def metadata(kinds: tuple[Kind, ...]) -> Strategy:
    return some(
        labels=rarely(LABELS, BAD_LABELS),
        annotations=rarely(some(note=WORDS, more=WORDS), st.just({"a b": "c"})),
        finalizers=rarely(FINALIZERS, BAD_FINALIZERS),
        ownerReferences=rarely(references(kinds), st.just([{"name": "no uid"}])),
    )


def body_of(kind: Kind, name: str, meta: Json, parts: Json) -> Json:
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**head, "metadata": {"name": kind.called(name), **meta}, **parts}


# ------------------------------------------------------------------ the kinds

TEXTS = some(k=WORDS, l=WORDS)
CONFIG_MAP = Kind(
    "ConfigMap",
    "v1",
    "configmaps",
    some(
        data=rarely(
            TEXTS, st.sampled_from([{"k": 1}, ["k"], {"k": None}, {"a b": ""}])
        ),
        binaryData=rarely(
            some(b=st.just("AQ=="), k=st.just("Ag==")), st.just({"b": "no base64!"})
        ),
        immutable=rarely(st.just(False), st.just(True), 12),
    ),
    fitting=some(data=TEXTS),
    paths=("/data/k", "/data/l", "/data", "/binaryData/b", "/immutable"),
)
SECRET = Kind(
    "Secret",
    "v1",
    "secrets",
    some(
        data=rarely(
            some(k=st.just("AQ=="), l=st.just("Ag==")), st.just({"b": "no base64!"})
        ),
        stringData=TEXTS,
        type=rarely(st.just("Opaque"), st.just("my/type")),
    ),
    fitting=some(data=some(k=st.just("AQ=="), l=st.just("Ag=="))),
    paths=("/data/k", "/stringData/k", "/type"),
)
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
DEPLOYMENT_SPEC: Json = {
    "selector": {"matchLabels": {"app": "a"}},
    "template": TEMPLATE,
}


def deployment_spec(**parts: Strategy) -> Strategy:
    return st.builds(lambda more: {"spec": {**DEPLOYMENT_SPEC, **more}}, some(**parts))


DEPLOYMENT = Kind(
    "Deployment",
    "apps/v1",
    "deployments",
    deployment_spec(
        replicas=st.sampled_from([0, 1, 3, -1]),
        paused=st.booleans(),
        minReadySeconds=st.sampled_from([0, 5, -5]),
        revisionHistoryLimit=st.sampled_from([0, 2]),
    ),
    sample={"spec": DEPLOYMENT_SPEC},
    fitting=deployment_spec(replicas=st.sampled_from([0, 1]), paused=st.booleans()),
    status=some(
        replicas=st.sampled_from([0, 1, 2, -1]),
        observedGeneration=st.sampled_from([0, 1, 2]),
        readyReplicas=st.sampled_from([0, 1]),
    ),
    paths=("/spec/replicas", "/spec/paused", "/status/replicas"),
)

INTEGER: Json = {"type": "integer"}
TEXT: Json = {"type": "string"}
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
THING_SPEC: Json = {
    "size": {**INTEGER, "minimum": 1, "maximum": 10},
    "mode": {**TEXT, "enum": ["A", "B"], "default": "A"},
    "note": {**TEXT, "nullable": True, "maxLength": 4},
    "port": {"x-kubernetes-int-or-string": True},
    "ratio": {"type": "number"},
    "tags": {
        "type": "array",
        "items": TEXT,
        "x-kubernetes-list-type": "set",
        "maxItems": 2,
    },
    "items": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": TEXT, "v": {**INTEGER, "default": 5}},
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    },
    "map": {"type": "object", "additionalProperties": INTEGER},
    "free": OPEN,
    "deep": {
        "type": "object",
        "default": {},
        "properties": {"inner": {**INTEGER, "default": 3}},
    },
}
THING_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": THING_SPEC},
        "status": {
            "type": "object",
            "properties": {"phase": TEXT, "count": {**INTEGER, "minimum": 0}},
        },
    },
}
SPEC = some(
    size=rarely(st.sampled_from([1, 2, 3]), NUMBERS | ODD),
    mode=rarely(st.sampled_from(["A", "B"]), st.sampled_from(["C", None, 1])),
    note=st.sampled_from([None, "", "ab", "too long"]),
    port=st.sampled_from([80, "http", None, True, 1.5]),
    ratio=NUMBERS,
    tags=rarely(st.lists(st.sampled_from(["x", "y", "z"]), max_size=3), ODD),
    items=rarely(
        st.lists(some(k=st.sampled_from(["p", "q"]), v=NUMBERS), max_size=2), ODD
    ),
    map=rarely(some(a=st.integers(0, 2), b=st.integers(0, 2)), ODD),
    free=ODD,
    deep=rarely(some(inner=NUMBERS, unknown=WORDS), ODD),
    unknown=ODD,
)
STATUS = some(
    phase=rarely(st.sampled_from(["", "Ready", "Failed"]), ODD),
    count=rarely(st.integers(0, 3), st.sampled_from([-1, "x", None])),
    unknown=ODD,
)
FITTING = some(
    size=st.sampled_from([1, 2, 3]),
    mode=st.sampled_from(["A", "B"]),
    note=st.sampled_from(["", "ab"]),
    port=st.sampled_from([80, "http"]),
    tags=st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True),
    items=st.lists(
        st.fixed_dictionaries(
            {"k": st.sampled_from(["p", "q"])}, optional={"v": st.integers(0, 2)}
        ),
        max_size=2,
        unique_by=lambda item: str(item["k"]),
    ),
    map=some(a=st.integers(0, 2), b=st.integers(0, 2)),
    free=some(a=st.integers(0, 2), b=some(c=WORDS)),
    deep=some(inner=st.integers(0, 4)),
)
FREE = some(spec=some(x=ODD, y=WORDS), data=ODD, status=some(phase=WORDS))
GROUP = "differential.conf.dev"


def definition(
    kind: str, schema: Json, *, cluster: bool = False, **subresources: Json
) -> Json:
    plural = f"{kind.lower()}s"
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if subresources:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster" if cluster else "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


def in_two_versions(crd: Json, schema: Json) -> Json:
    """The definition with an older version next to the stored one."""
    spec = crd["spec"]
    (version,) = spec["versions"]
    older = {"name": "v1beta1", "storage": False}
    older["schema"] = {"openAPIV3Schema": schema}
    return {**crd, "spec": {**spec, "versions": [version, {**version, **older}]}}


def slots(**more: Json) -> Json:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "maxItems": 3,
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {**TEXT, "maxLength": 3},
                "size": {**INTEGER, "default": 1},
                **more,
            },
        },
    }


CRATE_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {**INTEGER, "minimum": 0, "maximum": 8},
                "mode": {**TEXT, "enum": ["A", "B"]},
                "slots": slots(note=TEXT),
                "marks": {
                    "type": "array",
                    "items": TEXT,
                    "x-kubernetes-list-type": "set",
                    "maxItems": 4,
                },
                "limits": {
                    "type": "object",
                    "maxProperties": 3,
                    "additionalProperties": INTEGER,
                },
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": INTEGER, "b": INTEGER},
                },
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.replicas) || self.replicas < 7", "message": "big"},
                {
                    "rule": "!has(oldSelf.mode) || has(self.mode)",
                    "message": "a mode stays",
                },
            ],
        },
        "status": {
            "type": "object",
            "default": {"phase": "New"},
            "properties": {
                "phase": TEXT,
                "replicas": INTEGER,
                "selector": TEXT,
                "slots": slots(),
            },
        },
    },
}
OLD_CRATE_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": INTEGER,
                "slots": slots(),
                "old": {**TEXT, "default": "yes"},
            },
        },
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}
SLOTS = st.lists(
    some(name=st.sampled_from(["p", "q", "r"]), size=NUMBERS, note=WORDS), max_size=3
)
FITTING_SLOTS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["p", "q", "r"])},
        optional={"size": st.integers(0, 2), "note": st.sampled_from(["", "ab"])},
    ),
    max_size=3,
    unique_by=lambda item: str(item["name"]),
)
CRATE = some(
    replicas=rarely(st.integers(0, 6), st.sampled_from([7, 9, -1, "x", 1.5, None])),
    mode=rarely(st.sampled_from(["A", "B"]), st.sampled_from(["C", None, 1])),
    slots=rarely(SLOTS, ODD),
    marks=rarely(st.lists(WORDS, max_size=3), ODD),
    limits=rarely(some(a=st.integers(0, 2), b=st.integers(0, 2)), ODD),
    whole=rarely(some(a=st.integers(0, 2), b=st.integers(0, 2)), ODD),
    old=WORDS,
)
FITTING_CRATE = some(
    replicas=st.integers(0, 6),
    mode=st.sampled_from(["A", "B"]),
    slots=FITTING_SLOTS,
    marks=st.lists(st.sampled_from(["x", "y", "z"]), max_size=2, unique=True),
    limits=some(a=st.integers(0, 2), b=st.integers(0, 2)),
    whole=some(a=st.integers(0, 2), b=st.integers(0, 2)),
)
CRATE_STATUS = some(
    phase=rarely(st.sampled_from(["", "Ready"]), ODD),
    replicas=rarely(st.integers(0, 3), st.sampled_from([-1, "x", None])),
    selector=rarely(st.just("a=b"), ODD),
    slots=rarely(SLOTS, ODD),
)

DEFINITIONS_OF_KINDS = (
    in_two_versions(
        definition(
            "Crate",
            CRATE_SCHEMA,
            status={},
            scale={
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        ),
        OLD_CRATE_SCHEMA,
    ),
    definition("Thing", THING_SCHEMA, status={}),
    definition("Plain", OPEN),
    definition("Globe", OPEN, cluster=True, status={}),
)
THING = Kind(
    "Thing",
    f"{GROUP}/v1",
    "things",
    st.fixed_dictionaries({}, optional={"spec": SPEC, "status": STATUS}),
    sample={"spec": {"size": 1}},
    fitting=some(spec=FITTING),
    status=STATUS,
    paths=("/spec/size", "/spec/tags/-", "/spec/items/0/v", "/spec", "/status/phase"),
    custom=True,
)
LOOSE = some(
    spec=some(x=NUMBERS, y=WORDS, z=st.lists(WORDS, max_size=2), o=some(p=WORDS)),
    data=WORDS,
)
PLAIN = Kind(
    "Plain",
    f"{GROUP}/v1",
    "plains",
    FREE,
    fitting=LOOSE,
    paths=("/spec/x", "/data"),
    custom=True,
)
GLOBE = Kind(
    "Globe",
    f"{GROUP}/v1",
    "globes",
    FREE,
    fitting=LOOSE,
    status=some(phase=WORDS, x=ODD),
    paths=("/spec/x", "/status/phase"),
    custom=True,
    cluster=True,
)
CRATES = tuple(
    Kind(
        "Crate",
        f"{GROUP}/{version}",
        plural,
        st.fixed_dictionaries({}, optional={"spec": CRATE, "status": CRATE_STATUS}),
        sample={"spec": {"replicas": 1}},
        fitting=some(spec=FITTING_CRATE)
        if version == "v1"
        else some(spec=some(replicas=st.integers(0, 6), old=WORDS)),
        status=CRATE_STATUS,
        paths=("/spec/replicas", "/spec/slots/0/size", "/spec/marks/-", "/spec/slots"),
        custom=True,
        scaled=True,
    )
    for version, plural in (("v1", "crates"), ("v1beta1", "crates@v1beta1"))
)
KINDS = {
    kind.plural: kind
    for kind in (CONFIG_MAP, SECRET, DEPLOYMENT, THING, PLAIN, GLOBE, *CRATES)
}

# ----------------------------------------------------------------- operations

DRY = rarely(st.just(()), st.just((("dryRun", "All"),)))
VALIDATED = rarely(
    st.just(()),
    st.sampled_from(
        [(("fieldValidation", how),) for how in ("Strict", "Warn", "Ignore")]
    ),
)
SELECTORS = st.sampled_from(
    [
        (),
        (("labelSelector", "app=a"),),
        (("labelSelector", "app in (a,b),tier!=x"),),
        (("labelSelector", "!tier"),),
        (("fieldSelector", "metadata.name!=b"),),
    ]
)
BAD_SELECTORS = st.sampled_from(
    [
        (("labelSelector", "app in a"),),
        (("fieldSelector", "spec.x=1"),),
        (("labelSelector", "a b=c"),),
    ]
)


def creations(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    odd = st.sampled_from(
        [
            {"resourceVersion": "1"},
            {"uid": NOWHERE},
            # 1.20 took an object outside namespaces with a namespace.
            {} if kind.cluster else {"namespace": "elsewhere"},
            {} if kind.cluster else {"namespace": "{ns}"},
            {"generation": 7},
            {"deletionTimestamp": "2020-01-01T00:00:00Z"},
            {"name": "Bad_Name"},
            {"name": ""},
            {"name": None, "generateName": kind.called("g-")},
            {"creationTimestamp": None, "selfLink": "/x", "unknown": 1},
        ]
    )
    return st.builds(
        lambda name, meta, more, parts, query: Op(
            "create",
            kind.plural,
            body=body_of(kind, name, {**meta, **more}, parts),
            query=query,
        ),
        st.sampled_from(NAMES),
        metadata(kinds),
        rarely(st.just({}), odd),
        rarely(kind.parts, st.just(kind.sample), 3),
        DRY,
    )


def versions_of(kind: Kind, name: str) -> Strategy:
    """Which version a write claims to know: the right one, mostly."""
    right = st.just({"resourceVersion": f"@version:{kind.resource}/{name}"})
    wrong = st.sampled_from(
        [
            {},
            {"resourceVersion": f"@stale:{kind.resource}/{name}"},
            {"resourceVersion": ""},
            {"resourceVersion": "x"},
            {"uid": f"@uid:{kind.resource}/{name}"},
            {"uid": NOWHERE},
        ]
    )
    return rarely(right, wrong, 3)


def updates(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    """PUT of something new, or of what was last seen with a change."""

    def of(name: str) -> Strategy:
        new = st.builds(
            lambda meta, version, parts, query: Op(
                "update",
                kind.plural,
                name,
                body=body_of(kind, name, {**meta, **version}, parts),
                query=query,
            ),
            metadata(kinds),
            versions_of(kind, name),
            kind.parts,
            DRY,
        )
        changed = st.builds(
            lambda meta, parts, query: Op(
                "update",
                kind.plural,
                name,
                body={"metadata": meta, **parts},
                query=query,
                onto=True,
            ),
            metadata(kinds),
            kind.parts,
            DRY,
        )
        return new | changed

    return st.sampled_from(NAMES).flatmap(of)


def status_updates(kind: Kind, status: Strategy) -> Strategy:
    """PUT and merge patch of the status."""

    def of(name: str) -> Strategy:
        put = st.builds(
            lambda meta, status: Op(
                "update",
                kind.plural,
                name,
                "status",
                body={"metadata": meta, "status": status},
                onto=True,
            ),
            some(labels=LABELS),
            status,
        )
        merge = st.builds(
            lambda meta, status: Op(
                "patch",
                kind.plural,
                name,
                "status",
                body={"metadata": meta, "status": status},
                type=MERGE_PATCH,
            ),
            some(labels=LABELS),
            status,
        )
        apply = st.builds(
            lambda status, manager, force: Op(
                "patch",
                kind.plural,
                name,
                "status",
                body=body_of(kind, name, {}, {"status": status}),
                type=APPLY_PATCH,
                query=(("fieldManager", manager), *force),
            ),
            status,
            st.sampled_from(["x", "y"]),
            rarely(st.just(()), st.just((("force", "true"),)), 3),
        )
        return put | merge | (apply if kind.custom else merge)

    return st.sampled_from(NAMES).flatmap(of)


def scales(kind: Kind) -> Strategy:
    """Requests through `/scale`."""
    head = {"apiVersion": "autoscaling/v1", "kind": "Scale"}

    def of(name: str) -> Strategy:
        read = st.just(Op("get", kind.plural, name, "scale"))
        replicas = rarely(st.integers(0, 6), st.sampled_from([-1, 7, 9, "x", None]))
        meta = rarely(
            st.just({}),
            st.sampled_from(
                [
                    {"resourceVersion": f"@stale:{kind.resource}/{name}"},
                    {"uid": NOWHERE},
                    {"name": "other"},
                    {"labels": {"a": "b"}},
                ]
            ),
        )
        body = st.builds(
            lambda more, count: {
                **head,
                "metadata": {"name": kind.called(name), **more},
                "spec": {"replicas": count},
            },
            meta,
            replicas,
        )
        put = st.builds(
            lambda body, query: Op(
                "update", kind.plural, name, "scale", body=body, query=query
            ),
            body,
            DRY,
        )
        merge = st.builds(
            lambda count, query: Op(
                "patch",
                kind.plural,
                name,
                "scale",
                body={"spec": {"replicas": count}},
                type=MERGE_PATCH,
                query=query,
            ),
            replicas,
            DRY,
        )
        apply = st.builds(
            lambda body, manager, force: Op(
                "patch",
                kind.plural,
                name,
                "scale",
                body=body,
                type=APPLY_PATCH,
                query=(("fieldManager", manager), *force),
            ),
            body,
            st.sampled_from(["x", "y"]),
            rarely(st.just(()), st.just((("force", "true"),)), 3),
        )
        return read | put | merge | apply

    return st.sampled_from(NAMES).flatmap(of)


def merges(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    nulls = st.sampled_from(
        [
            {"metadata": {"labels": None}},
            {"metadata": {"finalizers": None}},
            {"metadata": {"ownerReferences": None}},
            {"metadata": {"labels": {"app": None}, "annotations": {"note": None}}},
            {"spec": None},
            {"data": None},
            {"status": None},
        ]
    )
    formats = [MERGE_PATCH] if kind.custom else [MERGE_PATCH, STRATEGIC_PATCH]
    return st.builds(
        lambda name, meta, parts, version, how, query: Op(
            "patch",
            kind.plural,
            name,
            body={
                **parts,
                "metadata": {**parts.get("metadata", {}), **meta, **version},
            },
            type=how,
            query=query,
        ),
        st.sampled_from(NAMES),
        metadata(kinds),
        kind.parts | nulls,
        rarely(
            st.just({}),
            st.sampled_from(
                [
                    {"resourceVersion": f"@stale:{kind.resource}/a"},
                    {"uid": NOWHERE},
                    {"name": "other"},
                    {"generation": 9},
                ]
            ),
        ),
        st.sampled_from(formats),
        DRY,
    )


def applies(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    """Server-side apply by two managers."""
    return st.builds(
        lambda name, meta, parts, manager, force, dry, strict: Op(
            "patch",
            kind.plural,
            name,
            # An empty list or map in metadata is kept by the real server, unseen.
            body=body_of(kind, name, {k: v for k, v in meta.items() if v}, parts),
            type=APPLY_PATCH,
            query=(("fieldManager", manager), *force, *dry, *strict),
        ),
        st.sampled_from(NAMES),
        some(
            labels=LABELS,
            annotations=some(note=WORDS),
            finalizers=FINALIZERS,
            ownerReferences=references(kinds),
        ),
        rarely(kind.fitting, kind.parts) if kind.custom else kind.fitting,
        st.sampled_from(["x", "y", "z"]),
        rarely(st.just(()), st.just((("force", "true"),)), 3),
        DRY,
        VALIDATED if kind.custom else st.just(()),
    )


def json_patches(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    paths = (
        "/metadata/labels",
        "/metadata/labels/app",
        "/metadata/annotations/note",
        "/metadata/finalizers",
        "/metadata/finalizers/-",
        "/metadata/finalizers/0",
        "/metadata/nothing/deeper",
        *kind.paths,
    )
    values = st.sampled_from(
        [1, 2, "a", "a.dev/one", ["a.dev/two"], {"app": "b"}, None]
    )
    operation = st.builds(
        lambda op, path, value: (
            {"op": op, "path": path}
            if op == "remove"
            else {"op": op, "path": path, "value": value}
        ),
        st.sampled_from(["add", "add", "replace", "remove", "test"]),
        st.sampled_from(paths),
        values,
    )
    return st.builds(
        lambda name, operations, query: Op(
            "patch", kind.plural, name, body=operations, type=JSON_PATCH, query=query
        ),
        st.sampled_from(NAMES),
        st.lists(operation, min_size=1, max_size=3),
        DRY,
    )


def options(kind: Kind, name: str) -> Strategy:
    key = f"{kind.resource}/{name}"
    conditions = st.sampled_from(
        [
            {"uid": f"@uid:{key}"},
            {"uid": NOWHERE},
            {"resourceVersion": f"@version:{key}"},
            {"resourceVersion": f"@stale:{key}"},
        ]
    )
    return st.none() | some(
        propagationPolicy=rarely(st.sampled_from(POLICIES), st.just("Nonsense")),
        preconditions=conditions,
        gracePeriodSeconds=st.sampled_from([0, 1]),
    )


def deletions(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    return st.sampled_from(NAMES).flatmap(
        lambda name: st.builds(
            lambda body, query: Op("delete", kind.plural, name, body=body, query=query),
            options(kind, name),
            DRY,
        )
    )


def collections(kind: Kind) -> Strategy:
    return st.builds(
        lambda query, dry: Op("deletecollection", kind.plural, query=query + dry),
        SELECTORS,
        DRY,
    )


FORMS = tuple(
    f"application/json;as={form};g=meta.k8s.io;v=v1"
    for form in ("PartialObjectMetadata", "PartialObjectMetadataList", "Table")
)


def reads(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    get = st.builds(
        lambda name, form: Op("get", kind.plural, name, accept=form or JSON),
        st.sampled_from(NAMES),
        rarely(st.just(""), st.sampled_from(FORMS), 4) if kind.custom else st.just(""),
    )
    if kind.cluster:
        return get
    limits = st.sampled_from([(), (("limit", "1"),), (("limit", "2"),)])
    versions = st.builds(
        lambda which, name, match: (
            ("resourceVersion", f"{which}{kind.resource}/{name}"),
            ("resourceVersionMatch", match),
        ),
        st.sampled_from(VERSIONS),
        st.sampled_from(NAMES),
        st.sampled_from(["Exact", "Exact", "NotOlderThan", "Nonsense"]),
    )
    return get | st.builds(
        lambda selector, more, form: Op(
            "list", kind.plural, query=selector + more, accept=form or JSON
        ),
        rarely(SELECTORS, BAD_SELECTORS),
        rarely(limits, versions, 4),
        rarely(st.just(""), st.sampled_from(FORMS), 4) if kind.custom else st.just(""),
    )


def misdirections(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    """Requests that are wrong for any objects."""
    body = body_of(kind, "a", {}, kind.sample)
    wrong = [
        Op("create", kind.plural, "a", body=body),
        Op("update", kind.plural, body=body),
        Op("patch", kind.plural, body={}, type=MERGE_PATCH),
        Op("get", kind.plural, "a", "nothing"),
        Op("update", kind.plural, "b", body=body),
        Op("create", kind.plural, body={**body, "kind": "Other"}),
        Op("create", kind.plural, body={**body, "apiVersion": "other/v1"}),
        Op("create", kind.plural, body={"metadata": {"name": "a"}}),
        Op("create", kind.plural, body=[1]),
        Op("create", kind.plural, body={**body, "metadata": "x"}),
        Op("patch", kind.plural, "a", body=[1], type=MERGE_PATCH),
        Op("patch", kind.plural, "a", body={"a": 1}, type=JSON_PATCH),
        Op("patch", kind.plural, "a", body={}, type="text/plain"),
        Op("patch", kind.plural, "a", body=[{"op": "jump"}], type=JSON_PATCH),
        Op("patch", kind.plural, "a", body={"metadata": None}, type=MERGE_PATCH),
        Op("patch", kind.plural, "a", body={"kind": "Other"}, type=MERGE_PATCH),
        Op("patch", kind.plural, "a", body=body, type=APPLY_PATCH),
    ]
    if kind.custom:
        wrong.append(Op("patch", kind.plural, "a", body={}, type=STRATEGIC_PATCH))
    return st.sampled_from(wrong)


@cache
def watches(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    """Watches are opened when all is done; the last object is always in them."""
    starts = ["@start:", *(f"@stale:{kind.resource}/{name}" for name in NAMES)]
    if not kind.cluster:
        starts += ["", "0"]
    return st.builds(
        lambda start, selector: Op(
            "watch", kind.plural, query=(*selector, ("resourceVersion", start))
        ),
        st.sampled_from(starts),
        SELECTORS,
    )


Maker = Callable[[Kind, tuple[Kind, ...]], Strategy]
WEIGHTS: tuple[tuple[int, Maker], ...] = (
    (6, creations),
    (4, updates),
    (4, merges),
    (3, json_patches),
    (4, applies),
    (3, deletions),
    (3, reads),
    (1, misdirections),
)


@cache
def operations(kind: Kind, kinds: tuple[Kind, ...]) -> Strategy:
    made = [(weight, maker(kind, kinds)) for weight, maker in WEIGHTS]
    if kind.status is not None:
        made.append((3, status_updates(kind, kind.status)))
    if kind.scaled:
        made.append((4, scales(kind)))
    if not kind.cluster:  # other sequences have theirs in the same collection
        made.append((1, collections(kind)))
    table = [strategy for weight, strategy in made for _ in range(weight)]
    return st.integers(0, len(table) - 1).flatmap(table.__getitem__)


def sequences(plurals: tuple[str, ...]) -> Strategy:
    """5 to 25 requests about one or two kinds, then up to two watches."""
    kinds = tuple(KINDS[plural] for plural in plurals)
    lengths = st.integers(5, 25)
    chosen = st.lists(st.sampled_from(kinds), min_size=1, max_size=2, unique=True)

    def of(some_kinds: list[Kind]) -> Strategy:
        # All versions of a kind together.
        wanted = {kind.resource for kind in some_kinds}
        given = tuple(kind for kind in kinds if kind.resource in wanted)
        each = st.sampled_from(given).flatmap(lambda kind: operations(kind, given))
        late = st.sampled_from(given).flatmap(lambda kind: watches(kind, given))
        return st.builds(
            lambda first, last: (*first, *last),
            lengths.flatmap(lambda n: st.lists(each, min_size=n, max_size=n)),
            st.lists(late, max_size=2),
        )

    return chosen.flatmap(of)


def families(plurals: tuple[str, ...]) -> Strategy:
    """4 to 10 requests about owners and their dependents, for the collector."""
    kinds = tuple(KINDS[plural] for plural in plurals)
    owned = st.fixed_dictionaries(
        {},
        optional={
            "ownerReferences": st.lists(references(kinds), max_size=2).map(
                lambda found: [one for [one] in found]
            ),
            "finalizers": rarely(st.just([]), st.just(["a.dev/one"]), 4),
        },
    )
    policies = st.sampled_from(
        [
            None,
            *({"propagationPolicy": p} for p in POLICIES),
            {"orphanDependents": True},
        ]
    )

    def of(kind: Kind) -> Strategy:
        name = st.sampled_from(NAMES)
        creation = st.builds(
            lambda name, meta: Op(
                "create", kind.plural, body=body_of(kind, name, meta, kind.sample)
            ),
            name,
            owned,
        )
        change = st.builds(
            lambda name, meta: Op(
                "patch", kind.plural, name, body={"metadata": meta}, type=MERGE_PATCH
            ),
            name,
            owned | st.just({"finalizers": None}) | st.just({"ownerReferences": None}),
        )
        deletion = st.builds(
            lambda name, body: Op("delete", kind.plural, name, body=body),
            name,
            policies,
        )
        table = [creation, creation, creation, change, deletion, deletion]
        return st.integers(0, len(table) - 1).flatmap(table.__getitem__)

    each = st.sampled_from(kinds).flatmap(of)
    return st.integers(4, 10).flatmap(
        lambda n: st.lists(each, min_size=n, max_size=n).map(tuple)
    )
