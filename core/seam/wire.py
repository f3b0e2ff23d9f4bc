"""Inputs and commands as JSON, and inputs back: what a recording holds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast, get_args

from fnop.core.api.resources import Resource, Selectors
from fnop.core.seam.commands import Command, Fetch, Say, Subject
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    Bookmark,
    Input,
    ListDone,
    ListItem,
    Started,
    StopRequested,
    StreamEnded,
    WatchEvent,
)
from fnop.core.values.body import Body
from fnop.effects.effects import Effect
from fnop.effects.outcomes import Outcome
from fnop.effects.wire import from_wire, to_wire

__all__ = ["command_to_wire", "input_from_wire", "input_to_wire"]

_INPUTS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Started,
        Answered,
        ListItem,
        ListDone,
        WatchEvent,
        Bookmark,
        StreamEnded,
        AlarmRang,
        StopRequested,
    )
}
# What fields hold in the JSON form; an outcome checks itself.
_KINDS = {"id": int, "stream": int, "body": dict, "type": str, "version": str}
_VALUES: tuple[type, ...] = (*get_args(Effect), *get_args(Outcome))
# Not recorded: a live exception; how an attempt has ended and what was refused, which
# the line's words tell and recordings of earlier releases lack; and how a document is
# asked for, for its answer tells in which form it came, and recordings of releases that
# asked otherwise replay.
_UNTOLD = frozenset(
    (
        (Say, "exception"),
        (Say, "ended"),
        (Say, "act"),
        (Fetch, "accept"),
        (Fetch, "seconds"),
    )
)


def _to_json(value: Any) -> Any:
    if isinstance(value, Body):
        return value.data
    if isinstance(value, Resource):
        return value.key
    if isinstance(value, Subject):
        return value.label
    if isinstance(value, Selectors):
        return [value.labels, value.fields]
    if isinstance(value, _VALUES):
        return to_wire(cast(Any, value))
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value


def input_to_wire(value: Input) -> dict[str, Any]:
    """The JSON form of an input.

    >>> input_to_wire(Bookmark(1, "7"))
    {'in': 'Bookmark', 'stream': 1, 'version': '7'}
    """
    return {"in": type(value).__name__} | {
        each.name: _to_json(getattr(value, each.name)) for each in fields(value)
    }


def input_from_wire(wire: dict[str, Any]) -> Input:
    """The input of its JSON form; `ValueError` for anything else."""
    cls = _INPUTS.get(str(wire.get("in")))
    if cls is None:
        raise ValueError(f"not an input: {str(wire)[:80]}")
    given = {key: value for key, value in wire.items() if key != "in"}
    for name, kind in _KINDS.items():
        if name in given and not isinstance(given[name], kind):
            raise ValueError(f"{wire['in']}: its {name} is no {kind.__name__}")
    if "body" in given:
        given["body"] = Body(given["body"])
    if "outcome" in given:
        given["outcome"] = from_wire(given["outcome"])
    try:
        found: Input = cls(**given)
    except TypeError as problem:
        raise ValueError(f"{wire['in']}: {problem}") from problem
    return found


def command_to_wire(value: Command) -> dict[str, Any]:
    """The JSON form of a command: all that it decides.

    >>> command_to_wire(Fetch(1, "/apis", "application/yaml", 10.0))
    {'do': 'Fetch', 'id': 1, 'path': '/apis'}
    """
    found: dict[str, Any] = {"do": type(value).__name__}
    for each in fields(value):
        if (type(value), each.name) in _UNTOLD:
            continue
        item = getattr(value, each.name)
        if item is None or item is False:
            continue
        if item not in ((), Selectors()):
            found[each.name] = _to_json(item)
    return found
