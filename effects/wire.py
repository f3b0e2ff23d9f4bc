"""Effects and outcomes as canonical JSON, and back.

The only place that depends on order: keys are sorted, fields with their default are
omitted, and a value is written in exactly one way.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable
from functools import cache
from typing import Any, cast

from msgspec import NODEFAULT

from fnop.effects.desired import Desired
from fnop.effects.effects import Effect, Target
from fnop.effects.outcomes import Outcome
from fnop.effects.regexes import regex
from fnop.effects.structs import compared
from fnop.effects.values import canonical, digest, read_only

__all__ = [
    "decode",
    "desired_to_wire",
    "digest_of",
    "encode",
    "from_wire",
    "portable",
    "to_wire",
]

# The module name under which an operator's file is loaded
# (`fnop.adapters.common.loading`).
_SCRIPT = regex(r"fnop_script_\w*:")

_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (*typing.get_args(Effect), *typing.get_args(Outcome), Target)
}


@cache
def _fields(cls: Any) -> tuple[tuple[str, Any], ...]:
    defaults = cls.__struct_defaults__  # of the last fields
    optional = cls.__struct_fields__[-len(defaults) :] if defaults else ()
    known = dict(zip(optional, map(_default_of, defaults), strict=True))
    return tuple((name, known.get(name, NODEFAULT)) for name in compared(cls))


def _default_of(given: Any) -> Any:
    make = getattr(given, "factory", None)
    return given if make is None else make()


def to_wire(value: Effect | Outcome | Target) -> dict[str, Any]:
    """Return the JSON form: the class under `is`, and the fields that are set.

    >>> from fnop.effects import Sleep
    >>> to_wire(Sleep(5))
    {'is': 'Sleep', 'seconds': 5}
    """
    cls = type(value)
    wire: dict[str, Any] = {"is": cls.__name__}
    for name, default in _fields(cast(Hashable, cls)):
        item = getattr(value, name)
        if item is default or (type(item) is type(default) and item == default):
            continue
        if isinstance(item, Target):
            item = to_wire(item)
        elif isinstance(item, tuple):
            item = list(item)
        elif isinstance(item, bytes):
            item = {"hex": item.hex()}
        elif name == "function":
            item = portable(item)
        wire[name] = item
    return wire


def portable(function: str) -> str:
    """Return a called function's name, independent of the operator's file name.

    >>> portable("fnop_script_new_operator:price_of"), portable("billing:charge")
    ('fnop_script:price_of', 'billing:charge')
    """
    return _SCRIPT.sub("fnop_script:", function)


def from_wire(wire: Any) -> Any:
    """The effect, outcome or target that `to_wire` wrote.

    Raises `ValueError` with a sentence for anything else.
    """
    if not isinstance(wire, dict) or wire.get("is") not in _CLASSES:
        raise ValueError(f"not an effect or an outcome: {str(wire)[:80]}")
    cls = _CLASSES[wire["is"]]
    known = dict(_fields(cls))
    given = {key: value for key, value in wire.items() if key != "is"}
    if not given.keys() <= known.keys():
        names = ", ".join(sorted(given.keys() - known.keys()))
        raise ValueError(f"{wire['is']} has no field {names}; written by a newer fnop?")
    try:
        return cls(**{key: _from_wire(value, key) for key, value in given.items()})
    except TypeError as problem:
        raise ValueError(f"{wire['is']}: {problem}") from problem


def _from_wire(value: Any, name: str) -> Any:
    if name == "target" and isinstance(value, dict):
        return from_wire(value)
    if name in ("json", "children", "nested", "managers", "labels"):
        return tuple(value)
    if isinstance(value, dict) and value.keys() == {"hex"} and name == "value":
        return bytes.fromhex(value["hex"])
    return read_only(value)


def desired_to_wire(desired: Desired) -> dict[str, Any]:
    """The JSON form of a reconciler's desired objects, without empty parts.

    >>> from fnop.effects.desired import desired
    >>> desired_to_wire(desired(status={"a": 1}))
    {'status': {'a': 1}}
    """
    children = [_set_fields(each) for each in desired.children]
    conditions = [_set_fields(each) for each in desired.conditions]
    found = _set_fields(desired)
    if children:
        found["children"] = children
    if conditions:
        found["conditions"] = conditions
    return found


def _set_fields(value: Any) -> dict[str, Any]:
    """The fields of a Struct that differ from their defaults."""
    known = _fields(cast(Hashable, type(value)))
    given = ((name, getattr(value, name), default) for name, default in known)
    return {
        name: [*item] if isinstance(item, tuple) else item
        for name, item, default in given
        if item != default
    }


def encode(value: Effect | Outcome | Target) -> bytes:
    """Canonical bytes of an effect or an outcome."""
    return canonical(to_wire(value))


def decode(raw: bytes) -> Any:
    """Return the value of `encode`'s bytes; raise `ValueError` for other bytes."""
    import orjson

    return from_wire(orjson.loads(raw))


def digest_of(value: Effect | Outcome | Target) -> str:
    """The digest that identifies an effect in a journal."""
    return digest(to_wire(value))
