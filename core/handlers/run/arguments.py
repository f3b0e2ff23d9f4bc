"""The arguments of handlers, computed if a handler's signature names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from fnop.core.api.cluster_changes import ClusterChange, Reached, Unreachable
from fnop.core.api.ownership import owner_of
from fnop.core.api.resources import Resource
from fnop.core.api.reviews import Request
from fnop.core.children.owned import Children, Owned
from fnop.core.children.planning import Keeper
from fnop.core.children.siblings import Beside
from fnop.core.handlers.declare.filters import Callback
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import EVENTS, kwargs_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.signatures import (
    AdmissionHandler,
    ChangeHandler,
    LogHandler,
    ObjectCallback,
    names_in,
)
from fnop.core.handlers.declare.writers import LogWriter, PatchWriter, Stopped, texts
from fnop.core.memory.observation import Seen, essence_of, observed_at, value_at
from fnop.core.values.body import Body, Memo, Meta, MetaBefore, View
from fnop.core.values.diff import diff
from fnop.core.values.log_lines import LogLine
from fnop.core.values.models import Unfit
from fnop.core.values.now import Now, wall_time
from fnop.core.values.table import NOTHING
from fnop.effects import Log
from fnop.effects.values import ReadOnlyDict, read_only, shown, type_name

__all__ = [
    "PROVIDERS",
    "Keeping",
    "Situation",
    "Writers",
    "argument_names",
    "arguments_for",
    "filter_arguments",
    "provide",
    "seconds_of",
]


class Situation(Struct, frozen=True):
    """The facts for computing a handler's arguments, fixed for one attempt.

    `reason` is the cause of a change, the name of an activity, or the type of a watch
    event (None for a listed object). `before` is the last-handled state. Only some
    handlers have the rest: reconcilers `keeping`, admission handlers the `request`.
    Handlers of changes of the cluster have `cluster_change`, and log handlers a `line`
    of a `container`.
    """

    handler: Handler
    settings: Settings
    now: Now
    resource: Resource | None = None
    body: Body | None = None
    reason: str | None = None
    before: Seen | None = None
    retry: int = 0
    started: float = 0.0
    memo: ReadOnlyDict = ReadOnlyDict()
    indices: Mapping[str, Any] = NOTHING
    keeping: Keeping | None = None
    request: Request | None = None
    cluster_change: ClusterChange | None = None
    line: LogLine | None = None
    container: str = ""


class Keeping(Struct, frozen=True):
    """The facts for a reconciler in addition to its object: children, and the keeper.

    Without a keeper, as in a plain test, fnop does not create the desired children.
    `beside` has the other reconcilers of the object.
    """

    owned: Owned
    keeper: Keeper | None
    beside: Beside = Beside()


class Writers:
    """The arguments of one call that collect, such as `patch`."""

    __slots__ = ("lines", "patch", "stopped", "warnings")

    def __init__(self) -> None:
        self.lines: list[Log] = []
        self.patch = PatchWriter()
        self.stopped = Stopped()
        self.warnings: list[str] = []

    def warned(self) -> tuple[str, ...]:
        """The warnings so far."""
        return texts(self.warnings)


def _body(situation: Situation) -> Body:
    assert situation.body is not None, "only handlers of objects ask for one"
    return situation.body


def _stanza_of(situation: Situation, name: str) -> Any:
    """A part of the object: empty if it is missing, or not a mapping.

    Raises `Unfit` for the latter if a rule is evaluated, or if a class is read.
    """
    body = _body(situation)
    found = body.data.get(name)
    is_judged = situation.request is not None or situation.handler.reads(name)
    if is_judged and found is not None and not isinstance(found, Mapping):
        raise Unfit(f"{shown(found)} is not an object", (name,))
    return read_only(body.stanza(name))


def _meta(situation: Situation) -> Meta:
    found = read_only(_body(situation).meta)
    return Meta(found) if situation.request is None else MetaBefore(found)


def _request(situation: Situation) -> Request:
    assert situation.request is not None, "only admission handlers ask for one"
    return situation.request


def _empty_name(situation: Situation) -> str | None:
    """The name or uid of an object without one: None before it is stored, as in Kopf.

    The API server sets both on a new object after the mutations.
    """
    return "" if situation.request is None else None


def _old_value(situation: Situation) -> Any:
    if situation.cluster_change is not None:
        return getattr(situation.cluster_change, "old", None)
    if situation.request is not None:
        return _view_of(situation.request.old, situation)
    if situation.reason == "create":
        return None
    return read_only(value_at(situation.before, situation.handler.field))


def _new_value(situation: Situation) -> Any:
    if situation.cluster_change is not None:
        return getattr(situation.cluster_change, "new", None)
    if situation.request is not None:
        return _view_of(situation.request.object, situation)
    path, body, settings = situation.handler.field, _body(situation), situation.settings
    if path:
        found = observed_at(body, path, settings.places.paths, settings.hidden)
        return read_only(found)
    return read_only(essence_of(body, settings.hidden))


def _downtime(change: ClusterChange | None) -> timedelta:
    match change:
        case Unreachable(seconds) | Reached(seconds):
            return timedelta(seconds=seconds)
        case _:
            raise AssertionError("only handlers of such times ask for one")


def _line(situation: Situation) -> LogLine:
    assert situation.line is not None, "only log handlers ask for one"
    return situation.line


def _match(situation: Situation) -> re.Match[str] | None:
    """The match of `regex=`, which has selected the line."""
    log = situation.handler.log
    regex = None if log is None else log.regex
    return None if regex is None else regex.search(_line(situation).text)


def _view_of(found: dict[str, Any] | None, situation: Situation) -> View | None:
    return None if found is None else View.of(found, situation.now.wall)


def _event(situation: Situation) -> Any:
    data = read_only(_body(situation).data)
    return ReadOnlyDict(type=_type(situation), object=data)


def _type(situation: Situation) -> str | None:
    """The type of the watch event; None for other handlers."""
    return situation.reason if situation.handler.role in EVENTS else None


def _children(situation: Situation) -> Children:
    assert situation.keeping is not None, "only reconcile handlers ask for children"
    namespace, wall = _body(situation).namespace, situation.now.wall
    return situation.keeping.owned.children(namespace, wall)


def _conditions(situation: Situation) -> ReadOnlyDict:
    """The conditions in the object's status, by type; malformed ones are skipped."""
    found = _body(situation).stanza("status").get("conditions")
    given = found if isinstance(found, list) else ()
    named = (e for e in given if isinstance(e, dict) and isinstance(e.get("type"), str))
    known = {each["type"]: each for each in named}
    return ReadOnlyDict(read_only(known))


_Provider = Callable[[Situation, Writers], Any]

PROVIDERS: dict[str, _Provider] = {
    "logger": lambda _, writers: LogWriter(writers.lines.append),
    "patch": lambda _, writers: writers.patch,
    "memo": lambda s, _: Memo(s.memo),
    "param": lambda s, _: s.handler.param,
    "retry": lambda s, _: s.retry,
    "started": lambda s, _: wall_time(s.started),
    # The clock may have been set back meanwhile.
    "runtime": lambda s, _: timedelta(seconds=max(0.0, s.now.wall - s.started)),
    "now": lambda s, _: wall_time(s.now.wall),
    "settings": lambda s, _: s.settings,
    "activity": lambda s, _: s.reason,
    "resource": lambda s, _: s.resource,
    "body": lambda s, _: View.of(_body(s).data, s.now.wall),
    "obj": lambda s, _: View.of(_body(s).data, s.now.wall),
    "spec": lambda s, _: _stanza_of(s, "spec"),
    "status": lambda s, _: _stanza_of(s, "status"),
    "meta": lambda s, _: _meta(s),
    "labels": lambda s, _: read_only(_body(s).mapping("labels")),
    "annotations": lambda s, _: read_only(_body(s).mapping("annotations")),
    "uid": lambda s, _: _body(s).uid or _empty_name(s),
    "name": lambda s, _: _body(s).name or _empty_name(s),
    "namespace": lambda s, _: _body(s).namespace,
    "reason": lambda s, _: s.reason,
    "old": lambda s, _: _old_value(s),
    "new": lambda s, _: _new_value(s),
    "diff": lambda s, _: diff(_old_value(s), _new_value(s)),
    "type": lambda s, _: _type(s),
    "event": lambda s, _: _event(s),
    "owner": lambda s, _: owner_of(_body(s), s.handler.owners),
    "stopped": lambda _, writers: writers.stopped,
    "children": lambda s, _: _children(s),
    "downtime": lambda s, _: _downtime(s.cluster_change),
    "conditions": lambda s, _: _conditions(s),
    "line": lambda s, _: _line(s).text,
    "match": lambda s, _: _match(s),
    "time": lambda s, _: wall_time(_line(s).time // 1000 / 1e6),
    "container": lambda s, _: s.container,
    "warnings": lambda _, writers: writers.warnings,
    "operation": lambda s, _: _request(s).operation,
    "subresource": lambda s, _: _request(s).subresource or None,
    "dryrun": lambda s, _: _request(s).dry_run,
    "userinfo": lambda s, _: read_only(dict(_request(s).user_info)),
    "headers": lambda s, _: read_only(dict(_request(s).headers)),
    "sslpeer": lambda s, _: read_only(dict(_request(s).peer)),
}

# Arguments that a handler gets only by name, and not by **kwargs (R1). `obj` is `body`
# once more, for handlers with a class for it.
_NAMED_ONLY = frozenset(("old", "diff", "obj"))
# Arguments that an impure handler cannot take; registration refuses them.
_NOT_OUTSIDE = frozenset(("settings",))
# Arguments that functions in options get by name in some roles only, and by **kwargs in
# all roles.
_OF_SOME_ROLES = names_in(ObjectCallback) & (
    {"reason", "type", "event"}
    | (names_in(AdmissionHandler) | names_in(LogHandler)) - names_in(ChangeHandler)
)
_IN_CALLBACKS = names_in(ObjectCallback) - _NAMED_ONLY - _OF_SOME_ROLES


def arguments_for(situation: Situation, writers: Writers) -> dict[str, Any]:
    """The keyword arguments that the handler's signature asks for (R1)."""
    return {
        name: provide(name, situation, writers) for name in argument_names(situation)
    }


def argument_names(situation: Situation) -> tuple[str, ...]:
    """The names of these arguments; a function can observe the order of **kwargs."""
    signature = situation.handler.signature
    found = dict.fromkeys(signature.wants)
    if signature.rest:
        found |= dict.fromkeys(situation.indices)
        more = kwargs_of(situation.handler.role) - found.keys()
        # A review needs no stored state to have the previous object.
        more -= _NAMED_ONLY if situation.request is None else {"obj"}
        if situation.handler.function:
            more -= _NOT_OUTSIDE
        found |= dict.fromkeys(sorted(more))
    return tuple(found)


def provide(name: str, situation: Situation, writers: Writers) -> Any:
    """The value of one argument; an index may have a name of its own."""
    provider = PROVIDERS.get(name)
    if provider is not None:
        return provider(situation, writers)
    return situation.indices[name]


def seconds_of(
    option: Callback, situation: Situation, *, otherwise: float
) -> tuple[float, BaseException | None]:
    """The seconds that an option's function returns, and the error if it failed.

    After an error the result is `otherwise`; negative seconds count as zero.
    """
    try:
        arguments = filter_arguments(situation, option.wants, option.rest)
        found = option.call((), arguments)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise TypeError(f"it answers a number of seconds, not {type_name(found)}")
        if not found < float("inf"):  # also for NaN
            raise ValueError(f"it answers a number of seconds, not {found}")
    except BaseException as problem:
        return otherwise, problem
    return max(0.0, float(found)), None


def filter_arguments(
    situation: Situation, wants: tuple[str, ...], rest: bool
) -> dict[str, Any]:
    """The keyword arguments of a function in an option, such as a filter."""
    writers = Writers()
    names = set(wants)
    if rest:
        own = kwargs_of(situation.handler.role) & _OF_SOME_ROLES
        names.update(_IN_CALLBACKS, own, situation.indices)
    return {name: provide(name, situation, writers) for name in sorted(names)}
