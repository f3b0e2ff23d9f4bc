"""Structural schemas, compiled: pruning, defaulting, validation.

A schema is compiled once, when its CRD is written, into a tree of `Schema` nodes.
`filled` prunes and applies defaults, and shares unchanged parts; `faults` validates.
The order is the real server's: prune, default, check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.schema.cel import Laws, compile_laws
from fnop.interpreters.cluster.schema.rules import (
    Place,
    Rule,
    format_of,
    label_fault,
    place_text,
    rules_of,
    type_name,
)
from fnop.interpreters.cluster.values.golang import go_json
from fnop.interpreters.cluster.values.metadata import clean_metadata, metadata_faults
from fnop.interpreters.cluster.values.objects import same
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "Schema",
    "compile_root",
    "compile_schema",
    "in_status",
    "object_faults",
    "plain",
    "status_faults",
]

NOTHING = object()
TYPE_META = frozenset(("apiVersion", "kind", "metadata"))


class ExpectedType(Struct, frozen=True):
    """The JSON types that a schema allows."""

    names: tuple[str, ...]  # empty: any type
    classes: frozenset[type]  # the same as Python types
    nullable: bool
    format: str  # for integers: int32 or int64

    @property
    def is_no_number(self) -> bool:
        """Whether numbers are refused."""
        return bool(self.classes) and not self.classes & NUMBERS

    def faults(self, value: Any, place: Place) -> Iterator[Fault]:
        """Report that a value has none of the types (typeValidator in kube-openapi)."""
        if value is None and self.nullable:
            return
        is_number = "integer" in self.names or "number" in self.names
        if self.format and not is_number and isinstance(value, str | list):
            return  # formats are checked elsewhere
        got, field, wanted = type_name(value), place_text(place), ",".join(self.names)
        if self.format and not isinstance(value, str | list | None):
            size = SIZED.get(type(value), "")
            # A number of another size is named by its size.
            got, wanted = (got, wanted) if size == self.format else (size, self.format)
        message = (
            f'Invalid value: "{got}": {field} in body must be of type {wanted}: "{got}"'
        )
        yield Fault(field, "FieldValueTypeInvalid", message)
        if isinstance(value, float) and self.names == ("integer",):
            size = f"with format {self.format}" if self.format else "(default format)"
            yield _fault_without_field(
                f"Checked value must be of type integer {size} in {field}"
            )


class Schema(Struct, frozen=True):
    """One compiled node of a structural schema."""

    expected: ExpectedType
    properties: dict[str, Schema]
    additional: Schema | None
    items: Schema | None
    # Fields that are not specified stay.
    preserving: bool
    # Nothing inside is specified: except for the type, everything is allowed.
    shallow: bool
    # In addition nothing is pruned: values pass unchanged.
    opaque: bool
    # The value is a Kubernetes object inside an object.
    embedded: bool
    # The value is the custom resource itself, whose metadata is checked elsewhere.
    root: bool
    # The defaults of properties: (name, default).
    defaults: tuple[tuple[str, Any], ...]
    default: Any
    required: tuple[str, ...]
    rules: tuple[Rule, ...]
    combined: Combination | None
    # Objects and lists that are one value: their parts are not compared with the old.
    atomic: bool = False
    # Of a set or a map, which are lists: how its items are identified.
    identity: Identity | None = None
    # Whether such lists occur here or below.
    has_sets: bool = False
    # Whether embedded objects occur here or below.
    has_embedded: bool = False
    # The rules in CEL, kept at the root only.
    laws: Laws | None = None

    def reach(self, value: Any) -> int:
        """The number of validators that check a value and its parts."""
        count = 1 + bool(self.expected.names or self.expected.format)
        if type(value) is str:
            return count + bool(self.expected.format)
        if type(value) is list and self.items is not None:
            return count + sum(map(self.items.reach, value))
        if type(value) is not dict:
            return count
        return count + sum(
            child.reach(value[name])
            for name, child in self.properties.items()
            if name in value
        )

    # ------------------------------------------------------------ filling

    def filled(self, value: Any, old: Any = None) -> Any:
        """The value pruned and with defaults.

        Parts that it shares with an `old` value, which is already filled, are skipped.
        """
        kind = type(value)
        if kind is str:
            return value
        if kind is float and self.expected.is_no_number:
            return value  # its type will be refused
        if self.opaque:
            return plain(value)
        if kind is dict:
            if value is old:
                return self._with_defaults(value)
            return self._filled_object(value, old if type(old) is dict else NO_FIELDS)
        if kind is list:
            inner = self.inner
            result = value if inner is None else [inner.filled(item) for item in value]
            return result if _items_differ(result, value) else value
        return plain(value)

    @property
    def inner(self) -> Schema | None:
        """The schema of a list's items; None if they stay unchanged.

        In a list that is not specified, objects lose all their fields.
        """
        return self.items or (None if self.preserving else BARE)

    def _filled_object(
        self, value: dict[str, Any], old: dict[str, Any]
    ) -> dict[str, Any]:
        result = value  # until something differs
        properties, additional = self.properties, self.additional
        for name, item in value.items():
            before = old.get(name)
            if before is item and item is not None:
                continue
            child = properties.get(name, additional)
            if child is None:
                if self.embedded and name == "metadata":
                    new = clean_metadata(item)
                elif (self.embedded or self.root) and name in TYPE_META:
                    new = item
                elif self.preserving:
                    new = plain(item)
                else:
                    new = NOTHING  # pruned
            elif item is None and not child.expected.nullable:
                new = child.default  # a null that is not allowed counts as missing
            else:
                new = child.filled(item, before)
            if new is item:
                continue
            if result is value:
                result = dict(value)
            if new is NOTHING:
                del result[name]
            else:
                result[name] = new
        return self._with_defaults(result)

    def _with_defaults(self, value: dict[str, Any]) -> dict[str, Any]:
        """The object with the defaults of its missing fields."""
        missing = {name: it for name, it in self.defaults if name not in value}
        return {**value, **missing} if missing else value

    def pruned(self, value: Any) -> Any:
        """The value without unspecified fields; no defaults are filled in."""
        if type(value) is dict and not self.opaque:
            kept = {}
            for name, item in value.items():
                child = self.properties.get(name, self.additional)
                if child is not None:
                    kept[name] = child.pruned(item)
                elif self.preserving or (
                    (self.embedded or self.root) and name in TYPE_META
                ):
                    kept[name] = item
            return kept
        if type(value) is list and (inner := self.inner) is not None:
            return [inner.pruned(item) for item in value]
        return value

    # ------------------------------------------------------------ checking

    def faults(self, value: Any, place: Place, old: Any = NOTHING) -> Iterator[Fault]:
        """Yield the faults of a value by the schema.

        With an `old` value, unchanged parts of an update are not refused.
        """
        if old is not NOTHING and same(value, old):
            return
        kind = self.expected
        if (kind.classes or kind.format) and type(value) not in kind.classes:
            yield from kind.faults(value, place)
        if value is None:
            # A null is only checked for its type, and for membership in an enumeration.
            yield from (f for f in map(lambda r: r(value, place), self.rules) if f)
            return
        if self.shallow:
            return
        if self.combined is not None:
            yield from self.combined.faults(value, place)
        if type(value) is list and self.items is not None:
            yield from self._item_faults(value, place, old)
        for rule in self.rules:
            fault = rule(value, place)
            if fault is not None:
                yield fault
        if type(value) is dict:
            yield from self._object_faults(value, place, old)

    def _object_faults(
        self, value: dict[str, Any], place: Place, old: Any
    ) -> Iterator[Fault]:
        before = old if type(old) is dict and not self.atomic else NO_FIELDS
        for name, item in value.items():
            earlier = before.get(name, NOTHING)
            if earlier is item:
                continue
            child = self.properties.get(name)
            inside: Place = (place, name)
            if child is None:
                child = self.additional
                # The real validator joins these places without a check of the first.
                inside = inside if place else (None, f".{name}")
            if child is not None:
                yield from child.faults(item, inside, earlier)
        for name in self.required:
            if name not in value:
                field = place_text((place, name))
                yield Fault(field, "FieldValueRequired", "Required value")

    def _item_faults(self, value: list[Any], place: Place, old: Any) -> Iterator[Fault]:
        assert self.items is not None  # checked by the caller
        identity = self.identity
        before = {} if identity is None else identity.items_by_key(old)
        for index, item in enumerate(value):
            earlier = NOTHING
            if before and identity is not None:
                earlier = before.get(identity.of(item), NOTHING)
            yield from self.items.faults(item, (place, index), earlier)

    # ------------------------------------------------------------ embedded objects

    def embedded_values(self, value: Any, place: Place) -> Iterator[tuple[Any, Place]]:
        """The objects in a value, and their places."""
        if not self.has_embedded:
            return
        if type(value) is dict:
            if self.embedded:
                yield value, place
            for name, item in value.items():
                child = self.properties.get(name, self.additional)
                if child is not None:
                    part = name if name in self.properties else [name]
                    yield from child.embedded_values(item, (place, part))
        elif type(value) is list and self.items is not None:
            for index, item in enumerate(value):
                yield from self.items.embedded_values(item, (place, index))

    # ------------------------------------------------------------ duplicates

    def duplicates(self, value: Any, place: Place, old: Any = None) -> Iterator[Fault]:
        """Yield duplicates in sets and maps that an `old` value does not have."""
        if not self.has_sets or value is old:
            return
        if type(value) is dict:
            before = old if type(old) is dict else NO_FIELDS
            for name, item in value.items():
                child = self.properties.get(name, self.additional)
                if child is not None and child.has_sets:
                    # Keys of maps are shown in brackets here.
                    part = name if name in self.properties else [name]
                    yield from child.duplicates(item, (place, part), before.get(name))
        elif type(value) is list and self.items is not None:
            if self.identity is not None:
                yield from self.identity.duplicates(value, place)
            for index, item in enumerate(value):
                yield from self.items.duplicates(item, (place, index))


class Combination(Struct, frozen=True):
    """The parts allOf, anyOf, oneOf and not of a schema.

    They only check values, and never fill them in.
    """

    all_of: tuple[Schema, ...]
    any_of: tuple[Schema, ...]
    one_of: tuple[Schema, ...]
    none_of: Schema | None

    def faults(self, value: Any, place: Place) -> Iterator[Fault]:
        """Yield the faults of a value by these parts."""
        field = place_text(place)
        if self.any_of:
            found = [_verdict(part, value, place) for part in self.any_of]
            if all(faults for faults, _ in found):
                yield _fault_without_field(
                    f'"{field}" must validate at least one schema (anyOf)'
                )
                yield from _nearest(found)
        if self.one_of:
            yield from self._one_of_faults(value, place)
        yield from self._all_of_faults(value, place)
        if self.none_of is not None and not _verdict(self.none_of, value, place)[0]:
            yield _fault_without_field(f'"{field}" must not validate the schema (not)')

    def _one_of_faults(self, value: Any, place: Place) -> Iterator[Fault]:
        found = [_verdict(part, value, place) for part in self.one_of]
        count = sum(not faults for faults, _ in found)
        if count == 1:
            return
        words = f"{count} valid alternatives" if count else "none valid"
        yield _fault_without_field(
            f'"{place_text(place)}" must validate one and only one schema (oneOf). '
            f"Found {words}"
        )
        yield from () if count else _nearest(found)

    def _all_of_faults(self, value: Any, place: Place) -> Iterator[Fault]:
        parts = [list(part.faults(value, place)) for part in self.all_of]
        if any(parts):
            for faults in parts:
                yield from faults
            rest = ". None validated" if all(parts) else ""
            yield _fault_without_field(
                f'"{place_text(place)}" must validate all the schemas (allOf){rest}'
            )


class Identity(Struct, frozen=True):
    """The identity of the items of a set, or of a map, which has `keys`."""

    keys: tuple[str, ...]
    # The items of a set or a map must be unique.
    unique: bool

    def of(self, item: Any) -> bytes:
        """The identity of an item: some of its fields, or all of it."""
        if self.keys and type(item) is dict:
            item = {key: item[key] for key in self.keys if key in item}
        return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)

    def items_by_key(self, old: Any) -> dict[bytes, Any]:
        """The items of an old list that can be distinguished: only maps can."""
        if not self.keys or type(old) is not list:
            return {}
        return {self.of(item): item for item in old}

    def duplicates(self, value: list[Any], place: Place) -> Iterator[Fault]:
        """Yield the items that occur twice."""
        if not self.unique:
            return
        if self.keys:
            strange = (i for i, x in enumerate(value) if type(x) not in OBJECTS)
            if (at := next(strange, None)) is not None:
                yield Fault(
                    place_text((place, at)),
                    "FieldValueInvalid",
                    f"Invalid value: {go_json(value[at])}: must be an object for an "
                    "array of list-type map",
                )
                return
        seen: dict[bytes, int] = {}
        for index, item in enumerate(value):
            shown = self.of(item)
            seen[shown] = count = seen.get(shown, 0) + 1
            if count == 2:
                yield Fault(
                    place_text((place, index)),
                    "FieldValueDuplicate",
                    f"Duplicate value: {shown.decode()}",
                )


NO_FIELDS: dict[str, Any] = {}
NUMBERS = frozenset((int, float))
OBJECTS = frozenset((dict, type(None)))


def object_faults(
    root: Schema,
    new: Any,
    old: Any = None,
    warnings: list[str] | None = None,
    known: Sequence[Fault] = (),
) -> Iterator[Fault]:
    """Yield the faults of a whole custom object by its schema.

    An update may leave faults in parts that it does not touch (ratcheting). `old` is
    the object before it, or None for a new object. Faults of CEL rules in such parts go
    to `warnings`. Other faults of the object are `known`.
    """
    faults = list(root.faults(new, None, NOTHING if old is None else old))
    if old is not None and (faults or root.laws is not None):
        # The comparison uses the object as a client would have read it.
        old = root.filled(old)
        if faults:
            faults = list(root.faults(new, None, old))
    for value, place in root.embedded_values(new, None):
        faults += _embedded_faults(value, place_text(place))
    faults += _new_duplicates(root, new, old)
    yield from faults
    if root.laws is not None:
        yield from _broken_rules(root.laws, new, old, [*known, *faults], warnings)


def _new_duplicates(root: Schema, new: Any, old: Any) -> list[Fault]:
    """The duplicates in sets and maps, unless the old value had duplicates, too."""
    repeated = list(root.duplicates(new, None, old))
    if repeated and old is not None and any(root.duplicates(old, None)):
        return []
    return repeated


def _embedded_faults(value: dict[str, Any], where: str) -> Iterator[Fault]:
    """Yield the faults of an embedded object's apiVersion, kind and metadata.

    See schemaobjectmeta.Validate.
    """
    for name in ("apiVersion", "kind"):
        field, given = f"{where}.{name}", value.get(name)
        if given is None:
            yield Fault(field, "FieldValueRequired", "Required value")
            continue
        if why := _type_meta_fault(name, given):
            shown = go_json(given)
            yield Fault(field, "FieldValueInvalid", f"Invalid value: {shown}: {why}")
    metadata = value.get("metadata")
    for fault in metadata_faults(metadata if type(metadata) is dict else {}):
        yield Fault(f"{where}.{fault.field}", fault.reason, fault.message)


def _type_meta_fault(name: str, given: Any) -> str:
    if not isinstance(given, str):
        return "must be a string"
    if not given:
        return "must not be empty"
    if name == "apiVersion":
        return f"unexpected GroupVersion string: {given}" * (given.count("/") > 1)
    why = label_fault(given.lower())
    return f"may have mixed case, but should otherwise match: {why}" if why else ""


def status_faults(
    root: Schema,
    new: Any,
    old: Any,
    warnings: list[str],
    known: Sequence[Fault] = (),
) -> Iterator[Fault]:
    """Yield the faults of a write through `/status`."""
    faults: list[Fault] = []
    schema = root.properties.get("status")
    if schema is not None and "status" in new:
        before = old.get("status", NOTHING)
        found = list(schema.faults(new["status"], None, before))
        if found:
            before = root.filled(old).get("status", NOTHING)
            found = list(schema.faults(new["status"], None, before))
        faults += map(in_status, found)
    faults += _new_duplicates(root, new, old)
    yield from faults
    if root.laws is not None:
        faults += known
        yield from _broken_rules(root.laws, new, root.filled(old), faults, warnings)


def in_status(fault: Fault) -> Fault:
    """A fault of a status with the path that it has in the whole object."""
    is_whole = fault.field in ("", "<nil>")
    field = "status" if is_whole else f"status.{fault.field}"
    return Fault(field, fault.reason, fault.message)


def _broken_rules(
    laws: Laws, new: Any, old: Any, faults: list[Fault], warnings: list[str] | None
) -> Iterator[Fault]:
    """Yield the faults of CEL rules, or a fault that they were not evaluated."""
    if any(fault.reason in BLOCKING for fault in faults):
        yield UNCHECKED
        return
    tolerated: list[Fault] = []
    yield from laws.faults(new, old, None, tolerated, False)
    if warnings is not None:
        warnings += [f"{fault.field}: {fault.message}" for fault in tolerated]


BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
UNCHECKED = Fault(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object "
    "was invalid; correct the existing errors to complete validation",
)


def _verdict(schema: Schema, value: Any, place: Place) -> tuple[list[Fault], int]:
    """The faults of an alternative, and the number of checks on the value."""
    return list(schema.faults(value, place)), schema.reach(value)


def _nearest(found: list[tuple[list[Fault], int]]) -> list[Fault]:
    """The faults of the alternative that checked most of the value."""
    return max(found, key=lambda one: one[1])[0]


def _fault_without_field(why: str) -> Fault:
    """A fault without a field, as the real validator reports it."""
    return Fault("<nil>", "FieldValueInvalid", f'Invalid value: "": {why}')


def _items_differ(new: list[Any], old: list[Any]) -> bool:
    return any(a is not b for a, b in zip(new, old, strict=True))


LARGEST = 2**63 - 1


def plain(value: Any) -> Any:
    """A value as it comes back from Go: 1.0 is 1, and integers have 64 bits.

    >>> plain({"a": [1.0, 1.5, 2**63]})
    {'a': [1, 1.5, 9.223372036854776e+18]}
    """
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < LARGEST else value
    if kind is int:
        return value if -LARGEST <= value + 1 <= LARGEST + 1 else float(value)
    if kind is dict:
        for item in value.values():
            if type(item) in COMPOUND and plain(item) is not item:
                return {name: plain(item) for name, item in value.items()}
    elif kind is list:
        for item in value:
            if type(item) in COMPOUND and plain(item) is not item:
                return [plain(item) for item in value]
    return value


COMPOUND = frozenset((dict, list, float, int))


JSON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


SIZED = {int: "int64", float: "float64"}


# ------------------------------------------------------------------ compiling


def compile_schema(source: Any) -> Schema | None:
    """Compile a structural schema; None if there is none.

    >>> schema = compile_schema({"type": "object", "properties": {
    ...     "size": {"type": "integer", "default": 1}}})
    >>> schema.filled({"colour": "red"})
    {'size': 1}
    """
    return _compile_source(source) if isinstance(source, dict) else None


def compile_root(source: Any) -> Schema | None:
    """The schema of a whole custom resource."""
    if not isinstance(source, dict):
        return None
    properties = {
        name: part
        for name, part in (source.get("properties") or {}).items()
        # The type and the metadata of an object are checked elsewhere.
        if name not in TYPE_META
    }
    compiled = _compile_source({**source, "properties": properties}, root=True)
    return replace(compiled, laws=compile_laws(source, root=True))


def _compile_source(source: dict[str, Any], *, root: bool = False) -> Schema:
    properties = {
        name: _compile_source(part)
        for name, part in (source.get("properties") or {}).items()
    }
    items = source.get("items")
    bare = Schema(
        expected=_type_of(source),
        properties=properties,
        additional=_additional(source.get("additionalProperties")),
        items=_compile_source(items) if isinstance(items, dict) else None,
        preserving=bool(source.get("x-kubernetes-preserve-unknown-fields")),
        shallow=False,
        opaque=False,
        embedded=bool(source.get("x-kubernetes-embedded-resource")),
        root=root,
        defaults=tuple(
            (name, part.default)
            for name, part in properties.items()
            if part.default is not NOTHING
        ),
        default=NOTHING,
        required=tuple(source.get("required") or ()),
        rules=rules_of(source),
        combined=_combination(source),
        atomic=source.get("x-kubernetes-map-type") == "atomic",
        identity=_identity_of(source),
    )
    compiled = _summarize_parts(bare)
    if "default" not in source:
        return compiled
    # Defaults are filled themselves, once.
    return replace(compiled, default=compiled.filled(source["default"]))


def _summarize_parts(bare: Schema) -> Schema:
    """Summarize the parts of a node, so that a walk can skip them."""
    identity, shallow = bare.identity, _is_shallow(bare)
    parts = (*bare.properties.values(), bare.additional, bare.items)
    inner = [part for part in parts if part is not None]
    return replace(
        bare,
        shallow=shallow,
        opaque=bare.preserving and shallow,
        has_sets=(identity is not None and identity.unique)
        or any(part.has_sets for part in inner),
        has_embedded=bare.embedded or any(part.has_embedded for part in inner),
    )


def _combination(source: dict[str, Any]) -> Combination | None:
    all_of, any_of, one_of = (
        tuple(_compile_source(part) for part in source.get(name) or ())
        for name in ("allOf", "anyOf", "oneOf")
    )
    none = source.get("not")
    none_of = None if none is None else _compile_source(none)
    if all_of or any_of or one_of or none_of:
        return Combination(all_of, any_of, one_of, none_of)
    return None


def _identity_of(source: dict[str, Any]) -> Identity | None:
    keys = tuple(source.get("x-kubernetes-list-map-keys") or ())
    unique = source.get("x-kubernetes-list-type") in ("set", "map")
    return Identity(keys, unique) if keys or unique else None


def _is_shallow(schema: Schema) -> bool:
    """Whether nothing inside a value is filled in or checked."""
    return not any(
        (
            schema.properties,
            schema.additional,
            schema.items,
            schema.embedded,
            schema.root,
            schema.required,
            schema.rules,
            schema.combined,
        )
    )


def _type_of(source: dict[str, Any]) -> ExpectedType:
    names: tuple[str, ...] = (source["type"],) if source.get("type") else ()
    if source.get("x-kubernetes-int-or-string"):
        names = ("integer", "string")
    classes = frozenset(kind for name in names for kind in JSON_TYPES.get(name, ()))
    return ExpectedType(names, classes, bool(source.get("nullable")), format_of(source))


def _additional(source: Any) -> Schema | None:
    if source is True:
        return BARE
    return _compile_source(source) if isinstance(source, dict) else None


# A schema that allows any value, and does not know any field.
BARE = _compile_source({"nullable": True})
