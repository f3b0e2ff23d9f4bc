"""From JSON to the Go types of built-in kinds, as Go's decoder reads them.

What a type does not have is dropped, null is absence (and in a list or map the zero
value), numbers and texts are not taken for each other.  Texts are those of
`sigs.k8s.io/json`.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from fnop.interpreters.cluster import types
from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.quantities import canonical

__all__ = ["Misfit", "go_name", "read_as", "unknown_in"]

Source = dict[str, Any]


def go_name(value: Any) -> str:
    """How Go's JSON decoder calls a JSON type.

    >>> go_name([])
    'array'
    """
    if isinstance(value, bool):
        return "bool"
    names = {dict: "object", list: "array", str: "string", int: "number"}
    return names.get(type(value), "number" if isinstance(value, float) else "null")


class Misfit(Exception):
    """A value that its Go type cannot hold."""

    def __init__(self, why: str, wanted: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.wanted = wanted
        self.struct = ""
        self.path: tuple[str, ...] = ()

    def inside(self, struct: str, name: str) -> Misfit:
        """The same, seen from the struct that has the field."""
        self.struct = self.struct or struct
        self.path = (name, *self.path)
        return self

    @property
    def text(self) -> str:
        """What the decoder says."""
        if not self.wanted:
            return self.why
        where = f"Go struct field {self.struct}.{'.'.join(self.path)} of type "
        return f"json: cannot unmarshal {self.why} into {where}{self.wanted}"


Read = Callable[[Any], Any]
BAD_QUANTITY = (
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
LIMITS = {"int32": 2**31, "int64": 2**63}


def _text(value: Any) -> Any:
    if type(value) is str:
        return value
    raise Misfit(go_name(value), "string")


def _flag(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise Misfit(go_name(value), "bool")


def _integer(name: str) -> Read:
    limit = LIMITS.get(name, 2**63)

    def read(value: Any) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        shown = f"number {value}" if go_name(value) == "number" else go_name(value)
        raise Misfit(shown, name)

    return read


def _number(value: Any) -> Any:
    if type(value) in (int, float):
        return value
    raise Misfit(go_name(value), "float64")


def _base64(value: Any) -> Any:
    if type(value) is not str:
        raise Misfit(go_name(value), "[]uint8")
    try:
        b64decode(re.sub(r"[\r\n]", "", value), validate=True)
    except (binascii.Error, ValueError):
        good = re.match(r"[A-Za-z0-9+/]*", value)
        place = good.end() if good else 0
        raise Misfit(f"illegal base64 data at input byte {place}") from None
    return value


def _quantity(value: Any) -> Any:
    text = str(value) if type(value) in (int, float) else value
    found = canonical(text.strip()) if type(text) is str else None
    if found is None:
        raise Misfit(BAD_QUANTITY)
    return found


def _int_or_string(value: Any) -> Any:
    if type(value) is str or type(value) is int:
        return value
    raise Misfit(f"json: cannot unmarshal {go_name(value)} into Go value of type int32")


TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _time(value: Any) -> Any:
    if type(value) is not str:
        raise Misfit(
            f"json: cannot unmarshal {go_name(value)} into Go value of type string"
        )
    if value and not TIME.fullmatch(value):
        layout = "2006-01-02T15:04:05Z07:00"
        raise Misfit(
            f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
        )
    return value


def _anything(value: Any) -> Any:
    return value


def _list_of(items: Read, name: str, zero: Any) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise Misfit(go_name(value), f"[]{name}")
        return [zero if item is None else items(item) for item in value]

    return read


def _map_of(items: Read, name: str, zero: Any) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Misfit(go_name(value), f"map[string]{name}")
        return {k: zero if item is None else items(item) for k, item in value.items()}

    return read


# Fields that Go leaves out where they are empty (omitempty, and no pointer); of texts
# all are but these, of lists and maps all that are not required.
POINTERS = frozenset(
    ("holderIdentity", "storageClassName", "volumeAttributesClassName")
)
# Texts that are written though they are empty, by their structs.
TEXT_POINTERS = frozenset(
    (
        ("discovery.v1.EndpointPort", "name"),
        ("discovery.v1.EndpointPort", "protocol"),
        ("discovery.v1.EndpointPort", "appProtocol"),
        (".StatefulSetSpec", "serviceName"),
    )
)
PLAIN_NUMBERS = frozenset(("minReadySeconds", "hostPort", "nodePort"))
# Numbers in a status are left out where they are 0, but for these.
STATUS_NUMBERS = frozenset(
    ("availableReplicas", "collisionCount", "ready", "restartCount", "terminating")
)
PLAIN_FLAGS = frozenset(
    (
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "paused",
        "publishNotReadyAddresses",
        "readOnly",
        "stdin",
        "stdinOnce",
        "tty",
    )
)


class Struct:
    """A Go struct: its fields, and how each is read."""

    __slots__ = ("fields", "go", "name", "omitted", "zeros")

    def __init__(self, name: str) -> None:
        version, short = name.split(".")[-2:]
        self.name = short
        self.go = f"{version}.{short}"
        self.fields: dict[str, Read] = {}
        self.omitted: frozenset[str] = frozenset()
        # What is written even where nobody has said it.
        self.zeros: dict[str, Any] = {}

    def __call__(self, value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Misfit(go_name(value), self.go)
        result = dict(self.zeros)
        fields, omitted = self.fields, self.omitted
        for name, item in value.items():
            read = fields.get(name)
            if read is None or item is None:
                continue
            try:
                item = read(item)
            except Misfit as misfit:
                raise misfit.inside(self.name, name) from None
            if item or name not in omitted:
                result[name] = item
        return result


# Structs that are being read, for types that contain themselves.
STRUCTS: dict[str, Struct] = {}


@cache
def _definition(name: str) -> Read:
    """How the values of a definition are read."""
    source = types.definition(name)
    if name.endswith(".Quantity"):
        return _quantity
    if "properties" not in source:
        return _reader(source)[0]
    struct = STRUCTS[name] = Struct(name)
    required = source.get("required", ())
    omitted = set()
    for field, part in source["properties"].items():
        struct.fields[field] = _reader(part)[0]
        if field not in required and _is_omitted(name, field, part):
            omitted.add(field)
        is_number = field in required and part.get("type") == "integer"
        if is_number and name.endswith("Status"):
            struct.zeros[field] = 0
    struct.omitted = frozenset(omitted)
    return struct


def _is_omitted(struct: str, field: str, part: Source) -> bool:
    match part.get("type"):
        case "string":
            return field not in POINTERS and not any(
                struct.endswith(end) and field == name for end, name in TEXT_POINTERS
            )
        case "array":
            return True
        case "object":
            return "additionalProperties" in part
        case "integer":
            if not struct.endswith("Status"):
                return field in PLAIN_NUMBERS
            # availableReplicas is always written of stateful sets only.
            of_set = struct.endswith("StatefulSetStatus")
            return field not in STATUS_NUMBERS or (
                field == "availableReplicas" and not of_set
            )
        case "boolean":
            return field in PLAIN_FLAGS
        case _:
            return False


def _reader(source: Source) -> tuple[Read, str, Any]:
    """How a value is read, the name of its Go type, and its zero value."""
    reference = source.get("$ref")
    if reference is not None:
        name = reference.removeprefix(types.PREFIX)
        read = STRUCTS.get(name) or _definition(name)
        go = ".".join(name.split(".")[-2:])
        return read, go, {} if isinstance(read, Struct) else ""
    form = source.get("format")
    match source.get("type"):
        case "string":
            return TEXTS.get(form or "", (_text, "string", ""))
        case "integer":
            return _integer(form or "int64"), form or "int64", 0
        case "number":
            return _number, "float64", 0
        case "boolean":
            return _flag, "bool", False
        case "array":
            items, go, zero = _reader(source["items"])
            return _list_of(items, go, zero), f"[]{go}", []
        case "object" if "additionalProperties" in source:
            items, go, zero = _reader(source["additionalProperties"])
            return _map_of(items, go, zero), f"map[string]{go}", {}
        case _:
            return _anything, "", None


TEXTS: dict[str, tuple[Read, str, Any]] = {
    "byte": (_base64, "[]uint8", ""),
    "date-time": (_time, "v1.Time", ""),
    "int-or-string": (_int_or_string, "intstr.IntOrString", 0),
}
SKIPPED = ("apiVersion", "kind", "metadata")


def _struct_of(kind: Kind) -> Struct | None:
    if "struct" not in kind.memo:
        name = types.name_of(kind.group, kind.version, kind.kind)
        read = None if name is None else _definition(name)
        kind.memo["struct"] = read if isinstance(read, Struct) else None
    found: Struct | None = kind.memo["struct"]
    return found


def read_as(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    """A body as the kind's type holds it, but for its apiVersion, kind, metadata.

    Raises `Misfit`.
    """
    struct = _struct_of(kind)
    if struct is None:
        return body
    return struct({k: v for k, v in body.items() if k not in SKIPPED})


def unknown_in(kind: Kind, body: dict[str, Any]) -> list[str]:
    """The fields of a body that the kind's type does not have."""
    name = types.name_of(kind.group, kind.version, kind.kind)
    if name is None:
        return []
    return sorted(_unknown({"$ref": types.PREFIX + name}, body, ""))


def _unknown(source: Source, value: Any, path: str) -> Iterator[str]:
    reference = source.get("$ref")
    if reference is not None:
        source = types.definition(reference)
    if isinstance(value, dict):
        yield from _unknown_fields(source, value, path)
    elif isinstance(value, list) and "items" in source:
        for index, item in enumerate(value):
            yield from _unknown(source["items"], item, f"{path}[{index}]")


def _unknown_fields(source: Source, value: dict[str, Any], path: str) -> Iterator[str]:
    fields = source.get("properties")
    additional = source.get("additionalProperties")
    for name, item in value.items():
        where = f"{path}.{name}" if path else name
        part = additional if fields is None else fields.get(name)
        if part is not None:
            yield from _unknown(part, item, where)
        elif fields is not None:
            yield where
