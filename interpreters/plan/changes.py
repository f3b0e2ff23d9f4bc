"""Turn the requests of a rehearsal into changes of objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.values.diff import resolve
from fnop.effects.structs import replace
from fnop.interpreters.plan.bookkeeping import noted, without_notes
from fnop.interpreters.plan.facts import Change, Notice, Place, Write, sources_of
from fnop.interpreters.plan.fields import (
    FieldChange,
    changed_fields,
    known_part,
    unknown_of,
    without_server_fields,
)

__all__ = ["Shown", "changes_of", "is_planned", "notices_of"]

Json = dict[str, Any]
# From the two states of an object to the states that are shown. Secrets are masked,
# equal values stay equal, and different values stay different.
Shown = Callable[[Json | None, Json | None], tuple[Json | None, Json | None]]


def changes_of(
    writes: Iterable[Write],
    others: Iterable[Write],
    handlers: Sequence[Handler],
    settings: Settings,
    shown: Shown,
) -> tuple[Change, ...]:
    """The changes that requests make, by object and round.

    `others` are the requests of a second run from the same state, with other times,
    uids and random numbers. Values that differ between the runs cannot be foreseen.
    """
    twins = {each.identity: each for each in others}
    groups: dict[tuple[int, Place], list[Write]] = {}
    for each in writes:
        if not each.is_event and each.status < 400:
            groups.setdefault((each.round, each.place), []).append(each)
    found = (
        _change(group, twins, handlers, settings, shown) for group in groups.values()
    )
    return tuple(each for each in found if each is not None)


def _change(
    group: list[Write],
    twins: Mapping[tuple[Any, ...], Write],
    handlers: Sequence[Handler],
    settings: Settings,
    shown: Shown,
) -> Change | None:
    first, last = group[0], group[-1]
    twin = twins.get(last.identity)
    both = last.after, None if twin is None else twin.after
    actions = _actions_of_group(group)
    if not actions:
        return None
    before, after = shown(first.before, last.after)
    unknown = _unknown_parts(*both)
    fields = _fields_without_notes(before, after, both, settings)
    every = _fields_with_notes(before, after, unknown)
    unknown = _unknown_without_managed(unknown)
    own = tuple(noted(first.before, last.after, settings)) if after else ()
    if actions == ("change",) and not fields and not own:
        return None
    names = ", ".join(dict.fromkeys(each.handler for each in group if each.handler))
    return Change(
        first.round,
        first.place,
        actions,
        sources_of(handlers, names),
        first.subject,
        None if before is None else _without_managed_fields(before),
        None if after is None else known_part(_without_managed_fields(after), unknown),
        unknown,
        () if after is None else fields,
        own,
        tuple(each for each in every if each not in fields),
        version=resolve(first.before, ("metadata", "resourceVersion")) or "",
    )


def _fields_without_notes(
    before: Json | None,
    after: Json | None,
    twins: tuple[Json | None, Json | None],
    settings: Settings,
) -> tuple[FieldChange, ...]:
    """The changed fields, without the operator's own bookkeeping.

    `twins` are the unmasked results of both runs.
    """
    old, new, mine, theirs = (
        _shown_object(each, settings, new=before is None)
        for each in (before, after, *twins)
    )
    return changed_fields(old, new, _unknown_parts(mine, theirs))


def _fields_with_notes(
    before: Json | None, after: Json | None, unknown: Any
) -> tuple[FieldChange, ...]:
    """All changed fields."""
    old, new = (_complete_object(e, new=before is None) for e in (before, after))
    return changed_fields(old, new, _unknown_below(unknown, new))


def _actions_of_group(group: list[Write]) -> tuple[str, ...]:
    """The things that happen to the object, in the order of the requests."""
    found: dict[str, None] = {}
    for each in group:
        if each.method == "DELETE":
            found["delete"] = None
        elif each.before is None and each.after is not None:
            found["create"] = None
        elif each.after is None and each.before is not None:
            # The last finalizer of an object under deletion is gone.
            found["delete"] = None
        elif each.before != each.after:
            found["change"] = None
    if "change" in found and len(found) > 1:
        del found["change"]  # new objects are patched at once, as by their status
    return tuple(found)


def _unknown_parts(after: Json | None, twin: Json | None) -> Any:
    """The parts of an object that cannot be foreseen; `twin` is from the second run."""
    if after is None:
        return False
    return True if twin is None else unknown_of(after, twin)


def _without_managed_fields(body: Json) -> Json:
    metadata = body.get("metadata") or {}
    kept = {key: each for key, each in metadata.items() if key != "managedFields"}
    return {**body, "metadata": kept}


def _unknown_without_managed(unknown: Any) -> Any:
    if not isinstance(unknown, dict):
        return unknown
    metadata = unknown.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return unknown
    kept = {key: each for key, each in metadata.items() if key != "managedFields"}
    rest = {key: each for key, each in unknown.items() if key != "metadata"}
    return {**rest, "metadata": kept} if kept else rest


def _complete_object(body: Json | None, *, new: bool) -> Json | None:
    return None if body is None else without_server_fields(body, new=new)


def _shown_object(body: Json | None, settings: Settings, *, new: bool) -> Json | None:
    if body is None:
        return None
    return without_server_fields(without_notes(body, settings), new=new)


def _unknown_below(unknown: Any, shown: Any) -> Any:
    """The unknown parts among the shown ones: keys may have been removed."""
    if not isinstance(unknown, dict) or not isinstance(shown, dict):
        return unknown if shown is not None else False
    found = {
        key: _unknown_below(part, shown[key])
        for key, part in unknown.items()
        if key in shown
    }
    return {key: part for key, part in found.items() if part} or False


def notices_of(
    writes: Iterable[Write], handlers: Sequence[Handler]
) -> tuple[Notice, ...]:
    """The Kubernetes Events that requests report, each once.

    A repeated Event may differ in the time until the next attempt. It appears in the
    round of its first report.
    """
    found: dict[object, Notice] = {}
    for each in writes:
        if not each.is_event or each.after is None:
            continue
        notice = _notice_of_event(each, each.after, handlers)
        key = replace(notice, round=0, message=_AGAIN_IN.sub("", notice.message))
        first = found.get(key)
        found[key] = notice if first is None else _repeated_notice(first, notice)
    return tuple(found.values())


def _notice_of_event(
    write: Write, body: Mapping[str, Any], handlers: Sequence[Handler]
) -> Notice:
    return Notice(
        write.round,
        body.get("type") or "Normal",
        body.get("reason") or "",
        body.get("message") or body.get("note") or "",
        sources_of(handlers, write.handler),
        write.subject,
    )


# The wait after a failure, in the log line about it: it grows with each attempt.
_AGAIN_IN = re.compile(r", again in [0-9.e+]+ s(?=:|$)")


def _repeated_notice(first: Notice, later: Notice) -> Notice:
    """
    >>> first = Notice(1, "Warning", "Logging", "no", (), None)
    >>> found = _repeated_notice(first, first)
    >>> found = _repeated_notice(found, replace(first, round=3))
    >>> found.round, found.again, found.times
    (1, (3,), 3)
    """
    rounds = {*first.again, later.round} - {first.round}
    return replace(first, again=tuple(sorted(rounds)), times=first.times + later.times)


def is_planned(write: Write, twin: Write | None, sent: Mapping[str, Any]) -> bool:
    """Whether the operator sent the request that was planned.

    `sent` has its `method`, `path`, `query`, `content_type` and `body`. Parts in which
    the twin of the planned request differs are not compared.

    >>> place = Place("v1", "ConfigMap", "configmaps", "a", "b")
    >>> write = Write(1, place, "h", None, "POST", "/x", (), {"a": 1}, "json",
    ...               None, None, 201)
    >>> sent = {"method": "POST", "path": "/x", "query": (), "content_type": "json"}
    >>> is_planned(write, write, {**sent, "body": {"a": 1}})
    True
    >>> is_planned(write, write, {**sent, "body": {"a": 2}})
    False
    """
    head = (write.method, write.path, write.query, write.content_type)
    names = ("method", "path", "query", "content_type")
    if head != tuple(sent[name] for name in names):
        return False
    open_parts = True if twin is None else unknown_of(write.body, twin.body)
    return unknown_of(
        known_part(write.body, open_parts), known_part(sent["body"], open_parts)
    ) in (False,)
