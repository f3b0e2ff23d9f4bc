"""The report of a plan: for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fnop.adapters.common.loading import SCRIPT, shown_path
from fnop.core.values.errors import joined, number_of
from fnop.interpreters.plan.facts import (
    Change,
    Due,
    Failure,
    Notice,
    Place,
    Plan,
    Source,
    Tried,
    Unmade,
)
from fnop.interpreters.plan.fields import UNKNOWN, FieldChange

__all__ = [
    "FORMAT",
    "as_json",
    "as_lines",
    "by_json",
    "field_text",
    "place_json",
    "source_text",
]

FORMAT = 1
# The longest text of a value in a line, in characters.
_VALUE_MAX = 70
# The most objects that are named when only the operator's own notes change.
_NAMED_MAX = 3
_SIGNS = {"create": "+", "change": "~", "delete": "-"}
_DONE = {"create": "created", "change": "changed", "delete": "deleted"}


def as_lines(plan: Plan, *, own: bool = False) -> Iterator[str]:
    """The plan for people; with `own` the operator's bookkeeping is shown in full."""
    for number in range(1, plan.rounds + 1):
        yield from _round_lines(plan, number, own=own)
    for stale in plan.stale:
        yield f"  stale: {stale.place.label}: {stale.why} since it was read"
    if plan.tried is not None:
        yield from _tried_lines(plan)
    if plan.due is not None:
        yield from _due_lines(plan.due, plan)
    for note in plan.notes:
        yield f"  note: {note}"
    yield _footer(plan)


def _round_lines(plan: Plan, number: int, *, own: bool) -> Iterator[str]:
    found = [
        *_change_lines([e for e in plan.changes if e.round == number], own=own),
        *_event_lines(plan, number),
        *_call_lines(plan, number),
        *_failure_lines(plan, number),
    ]
    if plan.rounds > 1:
        if number == 1:
            yield "round 1"
        else:
            yield f"≈ round {number}, if controllers do what the simulated ones did"
        if not found:
            fails = any(number in each.again for each in plan.failures)
            yield "  nothing but what fails again" if fails else "  nothing"
    yield from found
    if found or plan.rounds > 1:
        yield ""


def _change_lines(changes: Sequence[Change], *, own: bool) -> Iterator[str]:
    noted = []
    for each in changes:
        if each.is_own and not own:
            noted.append(each)
        else:
            yield from _one_change(each, own=own)
    if noted:
        yield from _noted_lines(noted)


def _one_change(change: Change, *, own: bool) -> Iterator[str]:
    sign = "".join(_SIGNS[each] for each in change.actions)
    yield f"{sign:>3} {change.place.label}"
    yield f"      {_actions_text(change)}"
    for field in change.fields:
        yield f"        {field_text(field)}"
    if change.own:
        yield f"      bookkeeping: {', '.join(change.own)}"
        for field in change.own_fields if own else ():
            yield f"        {field_text(field)}"


def _actions_text(change: Change) -> str:
    done = " and ".join(_DONE[each] for each in change.actions)
    by = f" by {_sources(change.sources)}" if change.sources else ""
    about = change.subject or change.place
    whom = "" if about == change.place else f", for {about.label}"
    waits = ""
    if change.actions[-1] == "delete" and change.after is not None:
        waits = "; it goes once its finalizers are off"
    return f"{done}{by}{whom}{waits}"


def _noted_lines(changes: Sequence[Change]) -> Iterator[str]:
    """One line for all objects with only such changes, by changed part."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for each in changes:
        groups.setdefault(each.own, []).append(each)
    for own, found in groups.items():
        names = _names([each.place for each in found])
        yield f"  ~ bookkeeping: {', '.join(own)}: {names}"


def _names(places: Sequence[Place]) -> str:
    """The first of the objects, and the number of the others."""
    names = ", ".join(each.label for each in places[:_NAMED_MAX])
    rest = len(places) - _NAMED_MAX
    return f"{names} and {rest} more" if rest > 0 else names


def field_text(field: FieldChange) -> str:
    """A field with its values before and after.

    >>> field_text(FieldChange("spec.size", 1, 2))
    'spec.size: 1 → 2'
    """
    path = field.path or "."
    if field.unknown:
        return f"{path}: {UNKNOWN}"
    if field.old is None:
        return f"{path}: {_value(field.new)}"
    if field.new is None:
        return f"{path}: {_value(field.old)} → (gone)"
    return f"{path}: {_value(field.old)} → {_value(field.new)}"


def _value(value: Any) -> str:
    """A value as JSON in one line; a long value is cut off.

    >>> _value({"a": 1}), len(_value("x" * 100))
    ('{"a": 1}', 70)
    """
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 3]}..."


def _event_lines(plan: Plan, number: int) -> Iterator[str]:
    for each in plan.events:
        if each.round == number:
            about = f" about {each.subject.label}" if each.subject else ""
            by = f" by {_sources(each.sources)}" if each.sources else ""
            again = f"{_times(each)}{_rounds_clause(each)}"
            what = f"{each.type} {each.reason}{about}{by}{again}"
            yield f"  ! Event {what}: {each.message}"


def _times(notice: Notice) -> str:
    return f", {notice.times} times" if notice.times > 1 else ""


def _call_lines(plan: Plan, number: int) -> Iterator[str]:
    for each in plan.calls:
        if each.round == number:
            about = f" for {each.subject.label}" if each.subject else ""
            by = _sources(each.sources)
            if each.is_of_handler:
                yield f"  ? handler {by} would be called{about}, and is not run"
            elif each.is_handler:
                yield f"  ? impure handler {by} is not run"
            else:
                function = each.function.removeprefix(SCRIPT)
                yield f"  ? call of {function} by {by} is not made{about}"
            yield f"      what follows is known after call {_call_name(each)}"
    for unread in plan.unread:
        if unread.round == number:
            who = _sources(unread.sources)
            yield f"  ? {unread.place.label} is asked for by {who}, and cannot be read:"
            yield f"      {unread.why}"


def _call_name(call: Unmade) -> str:
    """
    >>> _call_name(Unmade(1, "shop:price_of", False, "h", (), None))
    'price_of'
    """
    return call.handler if call.is_handler else call.function.rpartition(":")[2]


def _failure_lines(plan: Plan, number: int) -> Iterator[str]:
    for each in plan.failures:
        if each.round == number:
            about = f" for {each.subject.label}" if each.subject else ""
            tried = "; it would be tried again" if each.retried else ""
            fails = f"fails{about}{_rounds_clause(each)}{tried}"
            yield f"  x {_sources(each.sources)} {fails}: {each.message}"


def _rounds_clause(told: Failure | Notice) -> str:
    """
    >>> _rounds_clause(Failure(1, "no", True, (), None, again=(2, 4)))
    ', again in rounds 2 and 4'
    """
    if not told.again:
        return ""
    many = "s" if len(told.again) > 1 else ""
    return f", again in round{many} {joined(list(map(str, told.again)))}"


def _due_lines(due: Sequence[Due], plan: Plan) -> Iterator[str]:
    """The handlers that are called when the operator starts."""
    for each in due:
        yield f"  takeover: {_source(each.source)} {_words_for_due(each)}"
    for why in dict.fromkeys(each.why for each in plan.unfound):
        names = _names([each.place for each in plan.unfound if each.why == why])
        yield f"  takeover: changes until now are not handled for {names}: {why}"
    if plan.unlisted:
        yield f"  takeover: not known for {_names(plan.unlisted)}, which cannot be read"
    elif not plan.again and not plan.unfound:
        yield "  takeover: no handler would be called again"
    if due:
        yield "  takeover: these calls may lead to others, which are not known"


def _words_for_due(due: Due) -> str:
    """
    >>> place = Place("v1", "Pod", "pods", "prod", "web")
    >>> _words_for_due(Due("retry", "delete", Source("h", "", 0), (place,)))
    'would be retried for the deletion of pods/web in prod'
    """
    names, what = _names(due.places), _NOUNS.get(due.reason, due.reason)
    match due.why:
        case "again":
            return f"would be called again for the {what} of {names}"
        case "retry":
            return f"would be retried for the {what} of {names}"
        case "first":
            return f"would be called for the {what} of {names}, not handled before"
        case _:
            return f"is called at each start, for {names}"


_NOUNS = {"create": "creation", "update": "update", "delete": "deletion"}


def _tried_lines(plan: Plan) -> Iterator[str]:
    for each in plan.tried or ():
        if each.refusal:
            yield f"  dry run: {each.place.label} is refused: {each.refusal}"
            continue
        yield f"  dry run: {each.place.label} would be stored otherwise:"
        for field in each.fields:
            yield f"        {field_text(field)}"
    if not plan.tried:
        yield "  dry run: the server answers as the simulated one has"


def _footer(plan: Plan) -> str:
    dry = "" if plan.tried is None else f"{number_of(plan.tries, 'dry run')}, "
    sent = f"0 writes sent, {dry}{number_of(plan.reads, 'read')}."
    if plan.is_empty:
        return f"Nothing would change. {sent}"
    counts = ", ".join(
        f"{plan.count(action)} to {action}" for action in ("create", "change", "delete")
    )
    handlers = sum(each.is_of_handler for each in plan.calls)
    more = [
        (len({e.place for e in plan.changes if e.is_own}), "bookkeeping only"),
        (handlers, "handler call" if handlers == 1 else "handler calls"),
        (len(plan.calls) - handlers, "not known before a call"),
        (len(plan.unread), "not readable"),
        (plan.failing, "failing"),
        (len(plan.stale), "stale"),
    ]
    rest = "".join(f", {count} {what}" for count, what in more if count)
    return f"Plan: {counts}{rest}. {sent}"


def _sources(sources: Iterable[Source]) -> str:
    return ", ".join(map(_source, sources)) or "the operator"


def _source(source: Source) -> str:
    place = source_text(source)
    return f"{source.handler} ({place})" if place else source.handler


def source_text(source: Source) -> str:
    """The file and the line of a handler; below the present folder, a relative path.

    >>> source_text(Source("created", "/nowhere/operator.py", 7))
    '/nowhere/operator.py:7'
    """
    if not source.file:
        return ""
    return f"{shown_path(Path(source.file))}:{source.line}"


# ------------------------------------------------------------------------- JSON


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON; `format` changes if its meaning does."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "changes": [_change_json(each) for each in plan.changes],
        "calls": [_call_json(each) for each in plan.calls],
        "events": [_event_json(each) for each in plan.events],
        "failures": [_failure_json(each) for each in plan.failures],
        "unread": [
            {**place_json(each.place), "why": each.why, "round": each.round}
            for each in plan.unread
        ],
        "stale": [{**place_json(each.place), "why": each.why} for each in plan.stale],
        "notes": list(plan.notes),
        "rounds": plan.rounds,
        "reads": plan.reads,
        "writes": 0,
    }
    if plan.tried is not None:
        found["dry_runs"] = plan.tries
        found["dry_run"] = [_dry_run_json(each) for each in plan.tried]
    if plan.due is not None:
        found["takeover"] = [_due_json(each) for each in plan.again]
        found["unfound"] = [
            {**place_json(each.place), "why": each.why} for each in plan.unfound
        ]
        found["due"] = [
            {**_due_json(each), "why": each.why, "reason": each.reason or None}
            for each in plan.due
        ]
    return found


def _due_json(due: Due) -> dict[str, Any]:
    """The handler, and its objects."""
    return {**by_json([due.source]), "objects": [*map(place_json, due.places)]}


def _call_json(call: Unmade) -> dict[str, Any]:
    return {
        "function": call.function.removeprefix(SCRIPT),
        "impure_handler": call.is_handler,
        **by_json(call.sources),
        "object": _object_json(call.subject),
        "after_unknown": True,
        "round": call.round,
    }


def _event_json(event: Notice) -> dict[str, Any]:
    return {
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "again": list(event.again),
        "times": event.times,
        **by_json(event.sources),
        "object": _object_json(event.subject),
        "round": event.round,
    }


def _failure_json(failure: Failure) -> dict[str, Any]:
    return {
        "message": failure.message,
        "retried": failure.retried,
        "again": list(failure.again),
        **by_json(failure.sources),
        "object": _object_json(failure.subject),
        "round": failure.round,
    }


def _dry_run_json(tried: Tried) -> dict[str, Any]:
    return {
        **place_json(tried.place),
        "refusal": tried.refusal or None,
        "fields": [
            {"field": field.path, "simulated": field.old, "server": field.new}
            for field in tried.fields
        ],
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {
        **place_json(change.place),
        **by_json(change.sources),
        "object": _object_json(change.subject),
        "actions": list(change.actions),
        "before": change.before,
        "after": change.after,
        "after_unknown": change.unknown,
        "bookkeeping": list(change.own),
        "bookkeeping_only": change.is_own,
        "round": change.round,
    }


def place_json(place: Place) -> dict[str, Any]:
    """The object that an entry is about."""
    return {
        "apiVersion": place.api_version,
        "kind": place.kind,
        "namespace": place.namespace or None,
        "name": place.name,
    }


def _object_json(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else place_json(place)


def by_json(sources: Iterable[Source]) -> dict[str, Any]:
    """The handlers and their lines; several that share a write are joined."""
    found = tuple(sources)
    return {
        "handler": ", ".join(each.handler for each in found) or None,
        "line": ", ".join(filter(None, map(source_text, found))) or None,
    }
