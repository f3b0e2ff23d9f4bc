"""Impure handlers: run outside of the core, whole, as one recorded call (R9).

`call_of` puts what the handler's signature asks for into JSON; `Outside` makes the
handler's arguments of it again, where the call is run, and puts into JSON what the
handler has patched and returned, or how it has failed; `ended` takes that up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

from fnop.core.arguments import PROVIDERS, Situation, Writers, arguments_for
from fnop.core.diff import diff
from fnop.core.errors import PermanentError, TemporaryError, text_of
from fnop.core.now import Now
from fnop.core.objects import Body
from fnop.core.progress import Failure
from fnop.core.registry import Handler
from fnop.core.resources import Resource
from fnop.core.settings import Settings
from fnop.core.writers import LogWriter, PatchWriter
from fnop.effects import Call, Effect, Log, Patch, Target
from fnop.effects.values import freeze_json, read_only
from fnop.effects.wire import from_wire, to_wire

__all__ = ["Outside", "call_of", "ended"]

_EFFECTS = get_args(Effect)
# What is made where the handler runs, and what follows from the object or the time.
_MADE = frozenset(("logger", "patch", "stopped"))
_OF_BODY = frozenset(("body", "spec", "status", "meta", "labels", "annotations"))
_OF_TIME = frozenset(("now", "started", "runtime"))
_FOLLOWING = _MADE | _OF_BODY | _OF_TIME | {"diff"}


def call_of(situation: Situation) -> Call:
    """The call that runs an impure handler.

    Raises `TypeError` for an argument that is no JSON value, such as a `param` that
    is a connection.
    """
    given = arguments_for(situation, Writers())
    if "diff" in given:
        for name in ("old", "new"):
            given.setdefault(name, PROVIDERS[name](situation, Writers()))
    facts = {
        name: _to_json(name, value, situation)
        for name, value in given.items()
        if name not in _FOLLOWING
    }
    if situation.body is not None:
        facts["body"] = situation.body.data
    facts["moments"] = [situation.now.wall, situation.started]
    wants = sorted(arguments_for(situation, Writers()))
    indices = sorted(set(situation.indices) & set(wants))
    arguments = {"wants": wants, "indices": indices, "facts": facts}
    return Call(situation.handler.function, arguments, as_handler=True)


def _to_json(name: str, value: Any, situation: Situation) -> Any:
    if isinstance(value, Resource):
        return value.to_json()
    if isinstance(value, Target):
        return to_wire(value)
    if name in situation.indices:
        return [[key, list(values)] for key, values in value.items()]
    where = f"the argument {name!r} of the impure handler {situation.handler.id}"
    return freeze_json(value, where)


class Outside:
    """One run of an impure handler: its arguments, and what comes of it.

    `say` gets each log line as it is said; `stopped` is what a daemon gets under that
    name.
    """

    def __init__(
        self, arguments: Mapping[str, Any], say: Callable[[Log], None], stopped: Any
    ) -> None:
        facts = arguments["facts"]
        wall, started = facts["moments"]
        body = facts.get("body")
        situation = Situation(
            cast(Handler, None),  # nothing that is made here asks for it
            Settings(),
            Now(wall, 0.0),
            body=None if body is None else Body(body),
            started=started,
        )
        self._patch = PatchWriter()
        made = {"patch": self._patch, "logger": LogWriter(say), "stopped": stopped}
        self.arguments = {
            name: made[name] if name in made else _made(name, facts, situation)
            for name in arguments["wants"]
        }
        for name in arguments["indices"]:
            pairs = facts[name]
            self.arguments[name] = {_key(key): tuple(found) for key, found in pairs}

    def returned(self, value: Any) -> dict[str, Any]:
        """What the handler returned, in JSON; raises `TypeError` if it cannot be."""
        if "fns" in self._patch.__dict__:
            raise TypeError(
                "patch.fns are functions, which an impure handler cannot hand over; "
                "let it write fields, or return what a pure handler then patches"
            )
        found: dict[str, Any] = {}
        if isinstance(value, _EFFECTS):
            value = [value]
        if isinstance(value, (list, tuple)) and any(
            isinstance(item, _EFFECTS) for item in value
        ):
            found["plan"] = [
                to_wire(item) if isinstance(item, _EFFECTS) else None for item in value
            ]
        elif value is not None:
            found["value"] = freeze_json(value, "the result")
        return {**found, **self._patched()}

    def failed(self, problem: BaseException) -> dict[str, Any]:
        """How the handler failed, in JSON."""
        failure: dict[str, Any] = {"type": type(problem).__name__}
        failure["message"] = text_of(problem)
        if isinstance(problem, TemporaryError):
            failure["temporary"] = problem.delay
        failure["permanent"] = isinstance(problem, PermanentError)
        return {"failure": failure, **self._patched()}

    def _patched(self) -> dict[str, Any]:
        patch = self._patch.effect()
        return {} if patch is None else {"patch": to_wire(patch)}


def _made(name: str, facts: Mapping[str, Any], situation: Situation) -> Any:
    if name in _OF_BODY or name in _OF_TIME:
        return PROVIDERS[name](situation, Writers())
    if name == "diff":
        return diff(read_only(facts["old"]), read_only(facts["new"]))
    found = facts.get(name)
    if name == "resource" and found is not None:
        return Resource.from_json(found)
    if name == "owner" and found is not None:
        return from_wire(found)
    return read_only(found)


def _key(key: Any) -> Any:
    return tuple(map(_key, key)) if isinstance(key, list) else key


def ended(value: Mapping[str, Any]) -> tuple[Any, Patch | None, Failure | None]:
    """What an impure handler returned, patched, and how it failed."""
    patch = from_wire(value["patch"]) if "patch" in value else None
    failure = None
    if "failure" in value:
        found = value["failure"]
        failure = Failure(
            found["type"],
            found["message"],
            temporary=found.get("temporary"),
            permanent=found["permanent"],
        )
    if "plan" in value:
        plan = [None if item is None else from_wire(item) for item in value["plan"]]
        return plan, patch, failure
    return value.get("value"), patch, failure
