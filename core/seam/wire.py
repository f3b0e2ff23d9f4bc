"""Inputs and commands as JSON for recordings, and inputs back from it."""

from __future__ import annotations

from dataclasses import fields, replace
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
from fnop.core.seam.traces import Indexed
from fnop.core.values.body import Body
from fnop.effects.desired import Desired
from fnop.effects.effects import Effect
from fnop.effects.outcomes import Outcome
from fnop.effects.values import canonical
from fnop.effects.wire import desired_to_wire, from_wire, to_wire

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
# The types of fields in the JSON form; outcomes are checked by `from_wire`.
_KINDS = {"id": int, "stream": int, "body": dict, "type": str, "version": str}
_VALUES: tuple[type, ...] = (*get_args(Effect), *get_args(Outcome))
# Fields that are not recorded: a live exception; the end of an attempt and a refused
# act, which are in the text of the line, and which recordings of earlier releases lack;
# and the options of a discovery request, whose answer shows in which form it came, so
# that recordings of releases with other options replay.
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
    if isinstance(value, Desired):
        return desired_to_wire(value)
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
    """The input from its JSON form; raises `ValueError` for anything else."""
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


def _is_json(value: Any) -> bool:
    try:
        canonical(value)
    except TypeError:
        return False
    return True


def command_to_wire(value: Command) -> dict[str, Any]:
    """The JSON form of a command, without fields that have no value.

    >>> command_to_wire(Fetch(1, "/apis", "application/yaml", 10.0))
    {'do': 'Fetch', 'id': 1, 'path': '/apis'}
    """
    found: dict[str, Any] = {"do": type(value).__name__}
    if isinstance(value, Indexed) and not _is_json(value.values):
        value = replace(value, values=(), unknown=True)
    for each in fields(value):
        if (type(value), each.name) in _UNTOLD:
            continue
        item = getattr(value, each.name)
        if item is None or item is False:
            continue
        if item not in ((), Selectors()):
            found[each.name] = _to_json(item)
    return found
