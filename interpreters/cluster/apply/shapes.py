"""Shapes of types: which lists are sets, which are maps, which are atomic.

`structured-merge-diff` calls a `Shape` an atom. It is read from an OpenAPI or
structural schema, as `kube-openapi/pkg/schemaconv` does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fnop.interpreters.cluster.kinds import types
from fnop.interpreters.cluster.kinds.kinds import Kind

__all__ = ["DEDUCED", "Shape", "shape_of", "shape_of_source"]

Source = dict[str, Any]
Resolve = Callable[[str], Source | None]


@dataclass(slots=True, eq=False, repr=False)
class Shape:
    """The kinds of value that a type allows, and the parts of each.

    A value of a deduced shape may be anything: a scalar, a list, a map. Shapes of
    recursive types are cyclic: this module fills them in once, and never changes them
    afterwards.
    """

    # "numeric", "string", "boolean" or "untyped"; "" if scalars are not allowed.
    scalar: str = ""
    # Allows a map or a struct: its known fields, and the shape of all others.
    is_map: bool = False
    atomic: bool = False
    fields: dict[str, Shape] = field(default_factory=dict)
    additional: Shape | None = None
    # Fields that Go's encoding never omits: structs by value, and lists without
    # omitempty. They exist even if JSON does not show them.
    present: frozenset[str] = frozenset()
    # "atomic", "set" or "map"; "" if lists are not allowed.
    list_type: str = ""
    items: Shape | None = None
    keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> Shape | None:
        """The shape of a field; None if the schema does not have it."""
        found = self.fields.get(name)
        return self.additional if found is None else found


def _untyped_shapes() -> tuple[Shape, Shape]:
    """The shape of untyped values: maps are granular, lists are atomic."""
    whole = Shape("untyped", is_map=True, atomic=True, list_type="atomic")
    whole.additional = whole.items = whole
    open_ = Shape("untyped", is_map=True, list_type="atomic", items=whole)
    open_.additional = open_
    return open_, whole


DEDUCED, WHOLE = _untyped_shapes()

TEXT: Source = {"type": "string"}
NUMBER: Source = {"type": "integer"}
TEXTS: Source = {"type": "object", "additionalProperties": TEXT}
# The parts of metav1.ObjectMeta that are tracked, and the rules for merging them.
OBJECT_META: Source = {
    "type": "object",
    "properties": {
        **dict.fromkeys(
            (
                "name",
                "generateName",
                "namespace",
                "selfLink",
                "uid",
                "resourceVersion",
                "clusterName",
                "creationTimestamp",
                "deletionTimestamp",
            ),
            TEXT,
        ),
        "generation": NUMBER,
        "deletionGracePeriodSeconds": NUMBER,
        "labels": TEXTS,
        "annotations": TEXTS,
        "finalizers": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    **dict.fromkeys(("apiVersion", "kind", "name", "uid"), TEXT),
                    "controller": {"type": "boolean"},
                    "blockOwnerDeletion": {"type": "boolean"},
                },
            },
        },
        "managedFields": {
            "type": "array",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    },
}
META_NAME = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


@dataclass(slots=True)
class Reading:
    """A schema while it is read, with the named types that were met so far."""

    resolve: Resolve
    # Whether objects are Go structs, with fields that always exist.
    structs: bool
    named: dict[str, Shape] = field(default_factory=dict)

    def shape(self, source: Source, *, open_: bool) -> Shape:
        """The shape of a schema; `open_` if unknown fields are preserved."""
        name = _reference(source)
        if name:
            found = self._shape_named(name)
            return _with_map_type(found, source)
        shape = Shape()
        self._fill(shape, source, open_=open_)
        return shape

    def _shape_named(self, name: str) -> Shape:
        shape = self.named.get(name)
        if shape is None:
            # Registered before it is filled in: a type may contain itself.
            shape = self.named[name] = Shape()
            source = OBJECT_META if name == META_NAME else self.resolve(name)
            if source is None:
                _copy_shape(shape, DEDUCED)
            elif name == QUANTITY:
                shape.scalar = "untyped"
            else:
                self._fill(shape, source, open_=False)
        return shape

    def _fill(self, shape: Shape, source: Source, *, open_: bool) -> None:
        # x-kubernetes-preserve-unknown-fields holds for nested values, too.
        open_ = open_ or bool(source.get("x-kubernetes-preserve-unknown-fields"))
        match source.get("type"):
            case "array":
                self._fill_list(shape, source, open_=open_)
            case "object":
                self._fill_map(shape, source, open_=open_)
            case "integer" | "number":
                shape.scalar = "numeric"
            case "boolean":
                shape.scalar = "boolean"
            case "string":
                plain = source.get("format") in (None, "", "byte")
                shape.scalar = "string" if plain else "untyped"
            case _ if source.get("properties"):
                self._fill_map(shape, source, open_=open_)
            case _:
                _copy_shape(shape, DEDUCED)

    def _fill_list(self, shape: Shape, source: Source, *, open_: bool) -> None:
        items = self.shape(source.get("items") or {}, open_=open_)
        shape.items = items
        shape.list_type, shape.keys = _list_type(source)
        if shape.keys:
            known = _properties(self.resolve, source.get("items") or {})
            shape.key_defaults = {
                key: known[key]["default"]
                for key in shape.keys
                if "default" in known.get(key, ())
            }
            if self.structs and "protocol" in shape.keys:
                # Older schemas do not show this default.
                shape.key_defaults.setdefault("protocol", "TCP")

    def _fill_map(self, shape: Shape, source: Source, *, open_: bool) -> None:
        properties = source.get("properties") or {}
        shape.is_map = True
        shape.atomic = source.get("x-kubernetes-map-type") == "atomic"
        for name, part in properties.items():
            shape.fields[name] = self.shape(part, open_=open_)
        additional = source.get("additionalProperties")
        if isinstance(additional, dict):
            shape.additional = self.shape(additional, open_=open_)
        elif additional or (additional is None and (open_ or not properties)):
            shape.additional = DEDUCED
        if self.structs:
            required = source.get("required") or ()
            shape.present = frozenset(
                name
                for name, part in properties.items()
                if name in required or _is_struct(name, part)
            )


# Fields of built-in types that are structs by value, in any type.
STRUCTS = frozenset(
    (
        "acceptedNames",
        "clientConfig",
        "daemonEndpoints",
        "involvedObject",
        "jobTemplate",
        "kubeletEndpoint",
        "lastState",
        "loadBalancer",
        "metadata",
        "names",
        "nodeInfo",
        "resources",
        "roleRef",
        "scaleTargetRef",
        "source",
        "spec",
        "state",
        "status",
        "strategy",
        "updateStrategy",
    )
)


def _is_struct(name: str, part: Source) -> bool:
    """Whether a property is a struct that Go always encodes.

    Newer schemas say so by a default; in others the fields are known by name.
    """
    return part.get("default") == {} or (name in STRUCTS and bool(_reference(part)))


def _copy_shape(shape: Shape, other: Shape) -> None:
    for name in Shape.__slots__:
        setattr(shape, name, getattr(other, name))


def _reference(source: Source) -> str:
    """The name of the type that a schema refers to, perhaps by way of allOf."""
    reference = source.get("$ref")
    parts = source.get("allOf")
    if reference is None and isinstance(parts, list) and len(parts) == 1:
        reference = parts[0].get("$ref")
    return str(reference).rpartition("/")[2] if reference else ""


def _with_map_type(shape: Shape, source: Source) -> Shape:
    """A named type's shape, with the map type that the reference states."""
    kind = source.get("x-kubernetes-map-type")
    if kind not in ("atomic", "granular"):
        return shape
    copy = Shape()
    _copy_shape(copy, shape)
    copy.atomic = kind == "atomic"
    return copy


def _list_type(source: Source) -> tuple[str, tuple[str, ...]]:
    kind = source.get("x-kubernetes-list-type")
    if kind == "map":
        return "map", tuple(source.get("x-kubernetes-list-map-keys") or ())
    if kind is None and "merge" in str(source.get("x-kubernetes-patch-strategy")):
        # The form of built-in types from before list types were invented.
        key = source.get("x-kubernetes-patch-merge-key")
        return ("map", (key,)) if key else ("set", ())
    return ("set" if kind == "set" else "atomic"), ()


def _properties(resolve: Resolve, source: Source) -> Source:
    name = _reference(source)
    found = resolve(name) if name else source
    return (found or {}).get("properties") or {}


def unresolved(name: str) -> None:
    """Do not resolve any reference: structural schemas have none."""


def shape_of_source(source: Source | None, resolve: Resolve = unresolved) -> Shape:
    """The shape of a schema; without one everything is deduced.

    >>> shape = shape_of_source(
    ...     {"type": "object", "properties": {"a": {"type": "string"}}})
    >>> shape.of("a").scalar, shape.of("b")
    ('string', None)
    """
    if source is None:
        return DEDUCED
    return Reading(resolve, structs=False).shape(source, open_=False)


OBJECT_META_SHAPE = shape_of_source(OBJECT_META)


def _with_metadata(shape: Shape) -> Shape:
    """The shape of an object: its metadata is ObjectMeta, regardless of the schema."""
    copy = Shape()
    _copy_shape(copy, shape)
    scalar = Shape("string")
    known = {"apiVersion": scalar, "kind": scalar, "metadata": OBJECT_META_SHAPE}
    copy.fields = {**shape.fields, **known}
    return copy


def shape_of(kind: Kind) -> Shape:
    """The shape of a kind's objects; read once."""
    found: Shape | None = kind.memo.get("shape")
    if found is None:
        found = kind.memo["shape"] = _read(kind)
    return found


@cache
def _builtin_reading() -> Reading:
    """The reading that all built-in kinds share, as they share most types."""
    return Reading(types.definitions().get, structs=True)


def _read(kind: Kind) -> Shape:
    if not kind.custom:
        source = types.source_of(kind.group, kind.typed, kind.kind)
        assert source is not None, f"{kind.kind} has no type"
        return _with_metadata(_builtin_reading().shape(source, open_=False))
    if kind.source is None:
        # If nothing is known about a kind, its metadata is not an exception.
        return DEDUCED
    return _with_metadata(shape_of_source(dict(kind.source)))
