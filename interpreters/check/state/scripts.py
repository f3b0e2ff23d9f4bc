"""Scripts: the actions of a user on an operator's objects, as values and as JSON.

The generated ones come from `fnop.interpreters.check.campaign.walks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.interpreters.cluster import Off, On, Pace, Slow, Stuck
from fnop.interpreters.simulation.actions import (
    Action,
    Apply,
    Delete,
    Edit,
    Outage,
    SetPace,
    Upgrade,
    Wait,
    WriteLog,
    outage,
    upgrade,
)

__all__ = [
    "Script",
    "ScriptProblem",
    "script_from_json",
    "script_to_json",
]


class ScriptProblem(Exception):
    """An author's file of scripts is wrong; one sentence says why, with the remedy."""


class Script(Struct, frozen=True):
    """A list of actions with a name.

    Faults do not strike a script that is `calm`. In a script with a `mistake` the user
    writes a value that the operator does not serve, and corrects it.
    """

    name: str
    actions: tuple[Action, ...]
    calm: bool = False
    mistake: bool = False


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
        case Upgrade(release):
            return {"do": "upgrade", "release": release}
        case Outage(seconds):
            return {"do": "outage", "seconds": seconds}
        case WriteLog(where, text, container, namespace):
            named = {"container": container, "namespace": namespace}
            given = {name: each for name, each in named.items() if each}
            return {"do": "log_line", "where": where, "text": text, **given}
        case SetPace(controller, pace):
            found = {"do": "pace", "controller": controller}
            more = {"seconds": pace.seconds} if isinstance(pace, Slow) else {}
            return {**found, "pace": type(pace).__name__, **more}


def script_from_json(found: Sequence[Mapping[str, Any]]) -> tuple[Action, ...]:
    """The script of `script_to_json`. Raises `ValueError` for other values.

    >>> script_from_json([{"do": "delete", "where": "claims/c"}])
    (Delete(where='claims/c', namespace=None, propagation=None),)
    """
    try:
        return tuple(_from_json(each) for each in found)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"this is not a script of actions: {problem!r}") from None


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
        case "upgrade":
            return upgrade(str(found["release"]))
        case "outage":
            return outage(float(found["seconds"]))
        case "log_line":
            where, text = str(found["where"]), str(found["text"])
            container, namespace = found.get("container"), found.get("namespace")
            return WriteLog(where, text, container, namespace)
        case "pace":
            controller, pace = str(found["controller"]), found["pace"]
            if pace == "Slow":
                return SetPace(controller, Slow(float(found["seconds"])))
            return SetPace(controller, _PACES[pace])
        case other:
            raise ValueError(f"there is no action {other!r}")
