"""Scripts: what a user does to an operator's objects, made from a few of them.

An author gives an object, or a definition; the scripts create it, edit it, revert the
edit, delete it, and create it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fnop.interpreters.actions import (
    Action,
    Apply,
    Delete,
    Edit,
    SetPace,
    Wait,
)
from fnop.interpreters.cluster import Off, On, Pace, Slow, Stuck

__all__ = [
    "Change",
    "Script",
    "ScriptProblem",
    "changes_of",
    "script_from_json",
    "script_to_json",
    "scripts_for",
]

# The number of fields of an object that are edited, each in scripts of its own.
CHANGES_MAX = 2


class ScriptProblem(Exception):
    """An author's file of scripts is wrong, in one sentence with the remedy."""


class Script(NamedTuple):
    """A list of actions with a name."""

    name: str
    actions: tuple[Action, ...]


class Change(NamedTuple):
    """An edit of one field, and the edit that takes it back."""

    path: str
    there: dict[str, Any]
    back: dict[str, Any]


def scripts_for(
    subjects: Sequence[Mapping[str, Any]],
    where: Sequence[str],
    changes: Sequence[Change],
) -> list[Script]:
    """The scripts for some objects, of which the last is edited.

    `where` are their names as kind/name; `changes` are edits that the cluster takes.
    """
    create = tuple(Apply(dict(each)) for each in subjects)
    found = [Script("create", create)]
    for change in changes[:CHANGES_MAX]:
        there = Edit(where[-1], change.there, _namespace(subjects[-1]))
        back = Edit(where[-1], change.back, _namespace(subjects[-1]))
        found.append(Script(f"edit {change.path}", (*create, there)))
        found.append(Script(f"edit and revert {change.path}", (*create, there, back)))
    gone = tuple(
        Delete(name, _namespace(each))
        for name, each in zip(where, subjects, strict=True)
    )
    found.append(Script("delete", (*create, *gone)))
    found.append(Script("delete and recreate", (*create, *gone, *create)))
    return found


def _namespace(manifest: Mapping[str, Any]) -> str | None:
    found = (manifest.get("metadata") or {}).get("namespace")
    return found if isinstance(found, str) else None


def changes_of(manifest: Mapping[str, Any]) -> Iterator[Change]:
    """Edits of single fields of a spec, or of data, that make a difference.

    >>> [each.there["spec"] for each in changes_of({"spec": {"a": "1Gi", "b": True}})]
    [{'a': '2Gi'}, {'a': '1Gi-2'}, {'b': False}]
    >>> [each.there["spec"] for each in changes_of({"spec": {"members": ["a", "b"]}})]
    [{'members': ['a']}]
    """
    for stanza in ("spec", "data"):
        found = manifest.get(stanza)
        if isinstance(found, Mapping):
            yield from _changes_in(found, (stanza,))


def _changes_in(found: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Change]:
    for key, value in found.items():
        here = (*path, str(key))
        if isinstance(value, Mapping):
            yield from _changes_in(value, here)
            continue
        for other in _others(value):
            yield Change(".".join(here), _at(here, other), _at(here, value))


def _others(value: Any) -> Iterator[Any]:
    """Other values of the same type, the likeliest first."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        if value > 0:
            yield value - 1
    elif isinstance(value, float):
        yield value + 0.5
    elif isinstance(value, str):
        number = re.match(r"\d+", value)
        if number:
            yield f"{int(number[0]) + 1}{value[number.end() :]}"
        yield f"{value}-2" if value else "changed"
    elif isinstance(value, list) and value:
        yield from _other_lists(value)


def _other_lists(found: list[Any]) -> Iterator[list[Any]]:
    """Lists of which something is gone: what was made for it has to go as well."""
    *rest, last = found
    if not rest:
        yield from ([other] for other in _others(last))
    yield rest


def _at(path: Sequence[str], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    found: dict[str, Any] = value
    return found


# -------------------------------------------------------------------------- JSON

_PACES: dict[str, Pace] = {"On": On(), "Off": Off(), "Stuck": Stuck()}


def script_to_json(actions: Sequence[Action]) -> list[dict[str, Any]]:
    """A script as plain JSON.

    >>> script_to_json([Wait(3.0)])
    [{'do': 'wait', 'seconds': 3.0}]
    """
    return [_to_json(each) for each in actions]


def _to_json(action: Action) -> dict[str, Any]:
    match action:
        case Apply(manifest):
            return {"do": "apply", "manifest": manifest}
        case Edit(where, changes, namespace):
            found = {"do": "edit", "where": where, "changes": changes}
            return {**found, **({"namespace": namespace} if namespace else {})}
        case Delete(where, namespace, propagation):
            found = {"do": "delete", "where": where}
            if namespace:
                found["namespace"] = namespace
            if propagation:
                found["propagation"] = propagation
            return found
        case Wait(seconds):
            return {"do": "wait", "seconds": seconds}
        case SetPace(controller, pace):
            found = {"do": "pace", "controller": controller}
            more = {"seconds": pace.seconds} if isinstance(pace, Slow) else {}
            return {**found, "pace": type(pace).__name__, **more}


def script_from_json(found: Sequence[Mapping[str, Any]]) -> tuple[Action, ...]:
    """The script of `script_to_json`. Raises `ValueError` for what is none.

    >>> script_from_json([{"do": "delete", "where": "claims/c"}])
    (Delete(where='claims/c', namespace=None, propagation=None),)
    """
    try:
        return tuple(_from_json(each) for each in found)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"this is no script of actions: {problem!r}") from None


def _from_json(found: Mapping[str, Any]) -> Action:
    match found["do"]:
        case "apply":
            return Apply(dict(found["manifest"]))
        case "edit":
            changes = dict(found["changes"])
            return Edit(str(found["where"]), changes, found.get("namespace"))
        case "delete":
            where = str(found["where"])
            return Delete(where, found.get("namespace"), found.get("propagation"))
        case "wait":
            return Wait(float(found["seconds"]))
        case "pace":
            controller, pace = str(found["controller"]), found["pace"]
            if pace == "Slow":
                return SetPace(controller, Slow(float(found["seconds"])))
            return SetPace(controller, _PACES[pace])
        case other:
            raise ValueError(f"there is no action {other!r}")
