"""Inputs and commands as JSON for recordings, and inputs back from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_args

from fnop.core.api.resources import Resource, Selectors
from fnop.core.seam.commands import Command, Fetch, ListPage, Say, Subject, Watch
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    Bookmark,
    EventPosted,
    Input,
    ListDone,
    ListItem,
    LogLines,
    Started,
    StopRequested,
    StreamEnded,
    WatchEvent,
    WriteDenied,
)
from fnop.core.seam.traces import Indexed
from fnop.core.values.body import Body
from fnop.core.values.log_lines import LogLine, LogMark, LogPlace
from fnop.effects.desired import Desired
from fnop.effects.effects import Effect
from fnop.effects.outcomes import Applied, Outcome
from fnop.effects.structs import replace
from fnop.effects.values import canonical
from fnop.effects.wire import desired_to_wire, from_wire, to_wire

__all__ = [
    "apart",
    "command_to_wire",
    "input_from_wire",
    "input_to_wire",
    "together",
]

_INPUTS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Started,
        Answered,
        ListItem,
        ListDone,
        WatchEvent,
        Bookmark,
        LogLines,
        StreamEnded,
        AlarmRang,
        StopRequested,
        WriteDenied,
        EventPosted,
    )
}
# The types of fields in the JSON form; `from_wire` checks outcomes.
_KINDS = {"id": int, "stream": int, "body": dict, "type": str, "version": str}
_VALUES: tuple[type, ...] = (*get_args(Effect), *get_args(Outcome))
# Fields that are not recorded:
# - a live exception
# - the end of an attempt and a refused act: they are in the text of the line, and
#   recordings of earlier releases lack them
# - options of requests whose answers show their form: so recordings of releases with
#   other options replay
_UNTOLD = frozenset(
    (
        (Say, "exception"),
        (Say, "ended"),
        (Say, "act"),
        (Fetch, "accept"),
        (Fetch, "seconds"),
        (ListPage, "metadata_only"),
        (Watch, "metadata_only"),
    )
)


# The ways to write values that are not JSON, by their types.
_WRITTEN: dict[type, Callable[[Any], Any]] = {
    Body: lambda value: value.data,
    Resource: lambda value: value.key,
    Subject: lambda value: value.label,
    Selectors: lambda value: [value.labels, value.fields],
    Desired: desired_to_wire,
    **dict.fromkeys(_VALUES, to_wire),
}


def _to_json(value: Any) -> Any:
    write = _WRITTEN.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value


def input_to_wire(value: Input) -> dict[str, Any]:
    """The JSON form of an input.

    >>> input_to_wire(Bookmark(1, "7"))
    {'in': 'Bookmark', 'stream': 1, 'version': '7'}
    """
    cls: Any = type(value)
    given = {name: _to_json(getattr(value, name)) for name in _recorded_fields(cls)}
    return {"in": cls.__name__, **_without_log(value, given)}


def _without_log(value: Input, wire: dict[str, Any]) -> dict[str, Any]:
    """Return an end's JSON form without log fields, for all other streams."""
    if isinstance(value, StreamEnded) and value.place is None and not value.rest:
        del wire["place"], wire["rest"]
    return wire


def apart(value: Input) -> tuple[dict[str, Any], Body | dict[str, Any] | None]:
    """Return an input's JSON form without the object that it shows, and that object.

    >>> apart(Answered(1, Applied({"metadata": {}})))
    ({'in': 'Answered', 'id': 1, 'outcome': {'is': 'Applied', 'object': None}}, \
{'metadata': {}})
    """
    cls: Any = type(value)
    body: Body | dict[str, Any] | None = None
    wire: dict[str, Any] = {"in": cls.__name__}
    for name in _recorded_fields(cls):
        item = getattr(value, name)
        if type(item) is Body:
            body, item = item, None
        wire[name] = _to_json(item)
    wire = _without_log(value, wire)
    outcome = wire.get("outcome")
    if outcome is not None and outcome["is"] == Applied.__name__:
        found = outcome.get("object")
        if isinstance(found, dict) and isinstance(found.get("metadata"), dict):
            body, outcome["object"] = found, None
    return wire, body


def together(wire: dict[str, Any], body: Any) -> None:
    """Put the object back into the JSON form of an input; the inverse of `apart`.

    Raises `KeyError` or `TypeError` for an input that has no place for it.

    >>> wire, body = apart(Answered(1, Applied({"metadata": {}})))
    >>> together(wire, body)
    >>> wire == input_to_wire(Answered(1, Applied({"metadata": {}})))
    True
    """
    if "body" in wire:
        wire["body"] = body
    else:
        wire["outcome"]["object"] = body


def input_from_wire(wire: dict[str, Any]) -> Input:
    """Return the input from its JSON form; raise `ValueError` for anything else."""
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
        if cls is LogLines:
            given |= _parse_log_lines(given)
        if given.get("place") is not None or given.get("rest"):
            given |= _parse_log_end(given)
        found: Input = cls(**given)
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"{wire['in']}: {problem}") from problem
    return found


def _parse_log_lines(given: dict[str, Any]) -> dict[str, Any]:
    """Return lines and mark of `LogLines`; raise `TypeError` for other values."""
    mark = given.get("mark")
    return {
        "lines": tuple(LogLine(*each) for each in given["lines"]),
        "mark": None if mark is None else LogMark(*mark),
        "dropped": tuple((str(name), int(n)) for name, n in given.get("dropped") or ()),
    }


def _parse_log_end(given: dict[str, Any]) -> dict[str, Any]:
    """Return the place and the rest of an ended log; raises as `_parse_log_lines`."""
    place = given.get("place")
    if place is not None:
        mark, held, missing = place
        known = None if mark is None else LogMark(*mark)
        place = LogPlace(known, int(held), int(missing))
    rest = tuple(LogLine(*each) for each in given.get("rest") or ())
    return {"place": place, "rest": rest}


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
    if isinstance(value, Indexed) and not _is_json(value.values):
        value = replace(value, values=(), unknown=True)
    cls: Any = type(value)
    found: dict[str, Any] = {"do": cls.__name__}
    for name in _recorded_fields(cls):
        item = getattr(value, name)
        if item is None or item is False or item == ():
            continue
        if type(item) in _PLAIN:
            found[name] = item
        elif item != _ALL:
            found[name] = _to_json(item)
    return found


_PLAIN = frozenset((str, int, float, bool))
_ALL = Selectors()


@cache
def _recorded_fields(cls: Any) -> tuple[str, ...]:
    """The names of the fields that are recorded."""
    names: tuple[str, ...] = cls.__struct_fields__
    return tuple(name for name in names if (cls, name) not in _UNTOLD)
