"""Impure handlers: run outside of the core, whole, as one recorded call (R9).

`call_of` encodes the handler's arguments as JSON. `Outside` decodes them on the side
that runs the call. It encodes the handler's patches, and its result or failure. `ended`
decodes these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from fnop.core.api.cluster_changes import change_from_json, change_to_json
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.plans import plan_of, refuse_lost
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.writers import (
    LogWriter,
    PatchWriter,
    Transform,
    texts,
)
from fnop.core.handlers.run.arguments import (
    PROVIDERS,
    Situation,
    Writers,
    argument_names,
    provide,
)
from fnop.core.memory.progress import Failure
from fnop.core.values.body import Body, View
from fnop.core.values.diff import diff
from fnop.core.values.errors import (
    AdmissionError,
    PermanentError,
    TemporaryError,
    parts_of,
    text_of,
)
from fnop.core.values.merge import applied, difference
from fnop.core.values.models import Unfit
from fnop.core.values.now import Now
from fnop.effects import Call, Log, Patch, Return, Target, Witness
from fnop.effects.structs import replace
from fnop.effects.values import canonical, freeze_json, read_only, thaw_json
from fnop.effects.wire import from_wire, to_wire

__all__ = ["Outside", "answerable", "call_of", "ended"]

# The largest answer of a call: fnop keeps it for as long as its attempt lasts.
ANSWER_BYTES_MAX = 2 * 1024 * 1024
# The levels that the core adds around an answer; serializers go 254 levels deep.
_AROUND = 16
# Arguments that the handler's side creates, and arguments about object or time.
_MADE = frozenset(("logger", "patch", "stopped", "warnings"))
_OF_BODY = frozenset(("body", "obj", "spec", "status", "meta", "labels", "annotations"))
_OF_TIME = frozenset(("now", "started", "runtime"))
_OF_CHANGE = frozenset(("old", "new", "downtime"))
_FOLLOWING = _MADE | _OF_BODY | _OF_TIME | {"diff"}
_FOLLOWING_CHANGES = _FOLLOWING | _OF_CHANGE


def call_of(situation: Situation) -> Call:
    """The call that runs an impure handler.

    Raises `TypeError` for an argument that is not a JSON value, such as a `param` that
    is a connection.
    """
    wants = sorted(argument_names(situation))
    facts = {
        name: _to_json(name, provide(name, situation, Writers()), situation)
        for name in _facts_among(wants, situation)
    }
    if situation.cluster_change is not None:
        facts["cluster_change"] = change_to_json(situation.cluster_change)
    if situation.body is not None:
        # It comes from JSON: then it need not be checked as an author's value is.
        facts["body"] = read_only(situation.body.data)
    facts["moments"] = [situation.now.wall, situation.started]
    indices = sorted(set(situation.indices) & set(wants))
    arguments = {"wants": wants, "indices": indices, "facts": facts}
    return Call(situation.handler.function, arguments, as_handler=True)


def _facts_among(names: Iterable[str], situation: Situation) -> Iterator[str]:
    """The arguments whose values go into the call; the others follow from them."""
    wanted = {*names}
    if "diff" in wanted:
        wanted |= {"old", "new"}
    left_out = _FOLLOWING if situation.cluster_change is None else _FOLLOWING_CHANGES
    yield from sorted(wanted - left_out)


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
    """One run of an impure handler: its arguments, and its result.

    `say` is called with each log line at once; `stopped` is the argument of a daemon.
    """

    def __init__(
        self, arguments: Mapping[str, Any], say: Callable[[Log], None], stopped: Any
    ) -> None:
        self._say = say
        facts = arguments["facts"]
        wall, started = facts["moments"]
        body, change = facts.get("body"), facts.get("cluster_change")
        situation = Situation(
            cast(Handler, None),  # no argument that is created here needs it
            Settings(),
            Now(wall, 0.0),
            body=None if body is None else Body(body),
            started=started,
            cluster_change=None if change is None else change_from_json(change),
        )
        self._situation = situation
        self._patch = PatchWriter()
        self._warnings: list[str] = []
        made = {
            "patch": self._patch,
            "logger": LogWriter(say),
            "stopped": stopped,
            "warnings": self._warnings,
        }
        self.arguments = {
            name: made[name] if name in made else _make_argument(name, facts, situation)
            for name in arguments["wants"]
        }
        for name in arguments["indices"]:
            pairs = facts[name]
            self.arguments[name] = {
                _key_from_json(key): tuple(found) for key, found in pairs
            }

    @property
    def is_of_object(self) -> bool:
        """Whether the handler is about an object."""
        return self._situation.body is not None

    def shows(self, data: dict[str, Any], wall: float) -> None:
        """Update the views of the object in place.

        fnop calls it in the handler's own thread or task, as no other code may be
        iterating over them.
        """
        situation = replace(self._situation, body=Body(data), now=Now(wall, 0.0))
        for name in _OF_BODY & self.arguments.keys():
            view, fresh = self.arguments[name], _view_of_body(name, situation)
            dict.update(view, fresh)
            for key in view.keys() - fresh.keys():
                dict.__delitem__(view, key)
            if isinstance(view, View):
                object.__setattr__(view, "now", wall)  # only here, and by its reader

    def returned(self, value: Any, witness: Witness) -> dict[str, Any]:
        """The handler's result as JSON.

        `witness` has the effects that it has built. Raises `TypeError` or `ValueError`
        for a result that the core would refuse, and for lost effects.
        """
        try:
            plan = plan_of(value)
        except (TypeError, ValueError) as problem:
            found = f"it returned {type(value).__name__}, which is refused"
            raise type(problem)(f"{found}: {problem}") from None
        refuse_lost(witness, plan, "return it, in a list where there are several")
        answer = self._fields_of_patch()
        match plan:
            case ():
                return answer
            case (Return(value=result) as only,) if only is not value:
                return {**answer, "value": result}
            case _:
                return {**answer, "plan": [to_wire(effect) for effect in plan]}

    def failed(self, problem: BaseException) -> dict[str, Any]:
        """The handler's failure as JSON."""
        failure = _failure_to_json(problem)
        try:
            return {"failure": failure, **self._fields_of_patch()}
        except (TypeError, ValueError) as refusal:
            self._say(Log("warning", f"what it has patched is lost: {refusal}"))
            return {"failure": failure}

    @property
    def fns(self) -> tuple[Callable[[dict[str, Any]], object], ...]:
        """The functions in its `patch.fns`, for the core in the same process."""
        return tuple(self._patch.__dict__.get("fns", ()))

    def _changed(self, merge: Any) -> Any:
        """The change by `patch.fns` of the handler's object, as a merge patch.

        Another process, such as a replay, has no functions.
        """
        assert self._situation.body is not None, "only an object has a patch"
        before = applied(merge or {}, self._situation.body.data)
        after = thaw_json(before)
        for change in self.fns:
            change(after)
        return freeze_json(difference(before, after), "the change by patch.fns")

    def _fields_of_patch(self) -> dict[str, Any]:
        changes = self._patch.changes()
        patch = next((each for each in changes if isinstance(each, Patch)), None)
        found: dict[str, Any] = {} if patch is None else {"patch": to_wire(patch)}
        if self.fns:
            found["changed"] = self._changed(None if patch is None else patch.merge)
        if self._warnings:
            found["warnings"] = texts(self._warnings)
        return found


def _failure_to_json(problem: BaseException) -> dict[str, Any]:
    found: dict[str, Any] = {"type": type(problem).__name__}
    found["message"] = text_of(problem)
    if isinstance(problem, TemporaryError):
        found["temporary"] = problem.delay
    found["permanent"] = isinstance(problem, PermanentError)
    if isinstance(problem, Unfit):
        found |= {"code": 422, "field": problem.field}
        found["misfit"] = problem.of
        if problem.others:
            found["parts"] = [_failure_to_json(each) for each in problem.parts]
            return found
    if isinstance(problem, AdmissionError):
        found["code"] = problem.code
        found["field"] = getattr(problem, "field", "")
    if parts := parts_of(problem):
        found["parts"] = [_failure_to_json(each) for each in parts]
    return found


def answerable(value: Any, where: str) -> Any:
    """A read-only copy of an answer to the core; `where` names it in the error.

    Raises `TypeError` for values that are not JSON. Raises `ValueError` for numbers
    that JSON does not have, and for values that are too large or too deep.
    """
    found = freeze_json(value, where)
    deep: Any = found
    for _ in range(_AROUND):
        deep = [deep]
    try:
        size = len(canonical(deep))
    except TypeError as problem:
        raise ValueError(f"{where}: it is too deep ({problem})") from None
    if size > ANSWER_BYTES_MAX:
        raise ValueError(
            f"{where}: it has {size:,} bytes, and at most {ANSWER_BYTES_MAX:,} can be "
            "remembered; keep it elsewhere, and answer where it is"
        )
    return found


def _view_of_body(name: str, situation: Situation) -> Any:
    """An argument that is a view of the object; the core has checked its form."""
    if name in ("spec", "status"):
        assert situation.body is not None
        return read_only(situation.body.stanza(name))
    return PROVIDERS[name](situation, Writers())


def _make_argument(name: str, facts: Mapping[str, Any], situation: Situation) -> Any:
    if name in _OF_BODY:
        return _view_of_body(name, situation)
    is_of_change = situation.cluster_change is not None and name in _OF_CHANGE
    if is_of_change or name in _OF_TIME:
        return PROVIDERS[name](situation, Writers())
    if name == "diff":
        return diff(read_only(facts["old"]), read_only(facts["new"]))
    found = facts.get(name)
    if name == "resource" and found is not None:
        return Resource.from_json(found)
    if name == "owner" and found is not None:
        return from_wire(found)
    return read_only(found)


def _key_from_json(key: Any) -> Any:
    return tuple(map(_key_from_json, key)) if isinstance(key, list) else key


class Ended(NamedTuple):
    """The end of an impure handler: its result or failure, its changes and warnings."""

    result: Any
    changes: tuple[Patch | Transform, ...]
    failure: Failure | None
    warnings: tuple[str, ...]


def ended(
    value: Mapping[str, Any], fns: tuple[Callable[[dict[str, Any]], object], ...]
) -> Ended:
    """Decode the end of an impure handler; `fns` are the functions in its `patch.fns`.

    Without them, as in a replay, their change is the one that they made at that time.
    It is one function in either case, so that both decide alike.
    """
    changes: list[Patch | Transform] = []
    if "patch" in value:
        changes.append(from_wire(value["patch"]))
    if fns:
        changes.append(Transform(partial(_apply_all, fns)))
    elif "changed" in value:
        changes.append(Transform(partial(_apply_change, value["changed"])))
    failure = _failure_from_json(value["failure"]) if "failure" in value else None
    result = value.get("value")
    if "plan" in value:
        result = [from_wire(item) for item in value["plan"]]
    return Ended(result, tuple(changes), failure, tuple(value.get("warnings", ())))


def _apply_all(
    fns: tuple[Callable[[dict[str, Any]], object], ...], body: dict[str, Any]
) -> None:
    for change in fns:
        change(body)


def _apply_change(merge: Any, body: dict[str, Any]) -> None:
    """Apply a merge patch to an object, in place."""
    after = thaw_json(applied(merge, body))
    body.clear()
    body.update(after)


def _failure_from_json(found: Mapping[str, Any]) -> Failure:
    return Failure(
        found["type"],
        found["message"],
        temporary=found.get("temporary"),
        permanent=found["permanent"],
        code=found.get("code"),
        field=found.get("field", ""),
        parts=tuple(map(_failure_from_json, found.get("parts", ()))),
        misfit=found.get("misfit", ""),
    )
