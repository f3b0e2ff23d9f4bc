"""An object's story as text for people, and as JSON for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins

from fnop.core.values.durations import ago, span
from fnop.core.values.errors import joined, number_of
from fnop.core.values.now import wall_seconds
from fnop.interpreters.explain.facts import Requested
from fnop.interpreters.explain.story import (
    Child,
    ConditionTold,
    EventTold,
    HandlerState,
    Operator,
    Peering,
    State,
    Story,
    Subject,
    Writer,
)

__all__ = ["FORMAT_VERSION", "as_json", "as_lines"]

FORMAT_VERSION = 1
# The number of lines shown of each list; the rest is in the JSON form.
_EVENTS_SHOWN = 12
_WRITERS_SHOWN = 6
_RECORDED_SHOWN = 30
_CHANGES_SHOWN = 8
_MESSAGE_LENGTH = 160
# Texts that the diagnosis shows in full are short in the parts above it.
_BRIEF_LENGTH = 60
_COLUMN_MAX = 72
_TIMES = {"wall", "created", "since", "renewed", "seen", "until", "wrote", "started"}
_TIMES |= {"due", "going", "at"}


# ------------------------------------------------------------------------- JSON


def as_json(story: Story) -> dict[str, Any]:
    """The story as JSON; times are RFC 3339, null if they are not known."""
    return {"version": FORMAT_VERSION, **_with_time_texts(to_builtins(story))}


def _with_time_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _time(each) if name in _TIMES else _with_time_texts(each)
            for name, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_with_time_texts(each) for each in value]
    return value


def _time(at: float | None) -> str | None:
    try:
        return None if at is None else wall_seconds(at)
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return None


# ------------------------------------------------------------------------- text


def as_lines(story: Story, width: int = 100) -> Iterator[str]:
    """The story for people, in lines that may contain text of others."""
    wall = story.wall
    yield from _subject(story.subject, wall)
    yield from _section("Operator", _operator(story.operator, wall))
    yield from _section("Handled", _state(story, wall))
    yield from _section("Handlers in the files", _handlers(story))
    yield from _section("Conditions", _conditions(story.conditions, story, wall))
    yield from _section("Children", _children(story.children, story, wall))
    yield from _section("Events", _events(story.events, wall))
    yield from _section("Written by", _writers(story.writers, wall))
    yield from _section("Recorded", _recorded_lines(story))
    yield from _section("Not looked at", [_cut_text(each) for each in story.unread])
    yield from _section("What now", _advice(story, width))


def _section(title: str, lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    found = [*lines]
    if found:
        yield ""
        yield title
        yield from (f"  {each}" for each in found)


def _table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows as aligned columns, the last one ragged, without empty columns.

    >>> [*_table_lines([["a", "bb", "", "c"], ["aaa", "", "", "d"]])]
    ['a    bb  c', 'aaa      d']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            f"{cell:{min(width, _COLUMN_MAX)}}"
            for cell, width in zip(row, widths, strict=True)
            if width
        ]
        yield "  ".join(cells).rstrip()


def _cut_text(text: str, length: int = _MESSAGE_LENGTH) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _age_text(at: float | None, wall: float) -> str:
    return "?" if at is None else ago(at, wall)


# ------------------------------------------------------------------- its parts


def _subject(subject: Subject, wall: float) -> Iterator[str]:
    place = f" in {subject.namespace}" if subject.namespace else ""
    yield f"{subject.kind} {subject.name}{place} ({subject.resource})"
    facts = []
    if subject.generation is not None:
        facts.append(f"generation {subject.generation}")
    if subject.created is not None:
        facts.append(f"created {ago(subject.created, wall)}")
    facts.append(f"version {subject.version}")
    yield f"  {', '.join(facts)}"
    if subject.owners:
        names = ", ".join(f"{each.kind} {each.name}" for each in subject.owners)
        yield f"  owned by {names}"
    deletion = subject.deletion
    if deletion is None:
        return
    since = "" if deletion.since is None else f" for {span(wall - deletion.since)}"
    yield f"  being deleted{since}, held by {_holders(subject) or 'nobody'}"


def _holders(subject: Subject) -> str:
    deletion = subject.deletion
    if deletion is None:
        return ""
    own = [f"{each} (this operator)" for each in deletion.own]
    return ", ".join([*own, *deletion.fnop, *deletion.foreign])


def _operator(operator: Operator, wall: float) -> Iterator[str]:
    wrote = (
        f"wrote last {ago(operator.wrote, wall)}"
        if operator.wrote is not None
        else "has left marks on it"
        if operator.marked
        else "has left no mark on it"
    )
    yield f"{operator.name}: {wrote}"
    for each in operator.leases:
        lease = f"lease {each.namespace}/fnop-{operator.name}"
        aged = _age_text(each.renewed, wall)
        if each.held:
            yield f"{lease}: held by {each.holder}, renewed {aged}"
        elif each.holder:
            yield f"{lease}: run out; {each.holder} renewed it {aged}"
        else:
            yield f"{lease}: held by nobody"
    for peer in operator.peers:
        yield _peer_text(peer, wall)
    for place in operator.places:
        if not any(each.place == place for each in operator.peers):
            yield f"peering object {place}: nobody is in it"
    if operator.life == "unknown":
        yield f"not known whether it runs: {_reason_unknown(operator)}"
    if operator.others:
        yield f"other operators of fnop have written it: {', '.join(operator.others)}"
    if operator.kopf:
        yield f"an operator with Kopf's API keeps its state in {joined(operator.kopf)}"


def _reason_unknown(operator: Operator) -> str:
    """The reason why nothing shows whether the operator runs."""
    if not operator.sees_all:
        return "not all leases and peering objects may be read"
    if operator.leases or operator.places:
        return "it has written without them since"
    return "without leader election and peering, an operator reports it nowhere"


def _peer_text(peer: Peering, wall: float) -> str:
    state = "alive" if peer.alive else "not alive"
    message = f": {peer.message}" if peer.message else ""
    return (
        f"peering object {peer.place}: {peer.identity} (priority {peer.priority}"
        f"{message}), {state}, seen {_age_text(peer.seen, wall)}"
    )


def _state(story: Story, wall: float) -> Iterator[str]:
    state, deletion = story.state, story.subject.deletion
    place = {"status": "in the status", "annotation": "in an annotation"}.get(
        state.place, ""
    )
    if state.problem:
        yield f"the state {place} cannot be read: {_cut_text(state.problem)}"
    elif deletion is not None and deletion.own:
        yield "its deletion is under way"
    elif state.place:
        yield {
            "yes": "as it was before a change"
            if state.changed
            else _current_state_text(state),
            "no": "not yet",
            "creating": "its creation is under way",
        }.get(state.handled, "not known")
    if state.signature == "unchecked":
        yield "the state is signed; --state-key-file checks it"
    if state.changed:
        names = [each or "something" for each in state.changed]
        more = len(names) - _CHANGES_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        yield f"changed since: {', '.join(names[:_CHANGES_SHOWN])}{rest}"
    rows = [[each.id, *_handler(each, wall)] for each in state.handlers]
    yield from _table_lines(rows) if rows else ()


def _current_state_text(state: State) -> str:
    failed = [each for each in state.handlers if each.stage == "failed"]
    if failed:
        return f"as it is now, and {number_of(len(failed), 'handler')} failed for good"
    return "as it is now"


_STAGES = {
    "done": "done",
    "failed": "failed for good",
    "waiting": "waits",
    "retrying": "failed, tried again",
    "started": "begun",
    "again": "to be called for this version",
}


def _handler(handler: HandlerState, wall: float) -> list[str]:
    stage = _STAGES[handler.stage]
    if handler.due is not None:
        due = handler.due - wall
        stage += f" in {span(due)}" if due >= 0 else f", due {span(-due)} ago"
    attempts = number_of(handler.attempts, "attempt") if handler.attempts else ""
    return [stage, attempts, _cut_text(handler.message, _BRIEF_LENGTH)]


def _handlers(story: Story) -> Iterator[str]:
    words = {True: "fits", False: "its filters do not fit", None: "cannot be told"}
    rows = [[each.id, each.role, words[each.fits]] for each in story.handlers or ()]
    if rows:
        yield from _table_lines(rows)
    elif story.handlers is not None:
        yield f"none of {story.subject.resource}"
    if (text := _requested_text(story.requested)) and rows:
        yield f"asked of the API server: {text}"


def _requested_text(requested: Requested | None) -> str:
    """The selectors for a kind, and the amount that they ask for; "" for all."""
    if requested is None:
        return ""
    labels, fields = requested.selectors.labels, requested.selectors.fields
    named = (("labels", labels), ("fields", fields))
    parts = [f"{name} {text}" for name, text in named if text]
    if requested.metadata_only:
        parts.append("metadata only")
    return ", ".join(parts)


def _conditions(
    conditions: tuple[ConditionTold, ...], story: Story, wall: float
) -> Iterator[str]:
    rows = []
    for each in conditions:
        stale = f" [of generation {each.generation}]" if each.stale else ""
        since = "?" if each.since is None else span(wall - each.since)
        # The text of the operator's own condition is shown with the handlers.
        length = _BRIEF_LENGTH if each.own else _MESSAGE_LENGTH
        message = _cut_text(_own_message(each.reason, each.message), length)
        rows.append(
            [each.type, each.status, since, each.reason, f"{message}{stale}".strip()]
        )
    yield from _table_lines(rows) if rows else ()


def _own_message(reason: str, message: str) -> str:
    """The message, unless it only repeats the reason because it has no own text."""
    return "" if message == reason else message


def _children(children: tuple[Child, ...], story: Story, wall: float) -> Iterator[str]:
    rows = [[_place(each, story), *_child(each, wall)] for each in children]
    yield from _table_lines(rows) if rows else ()


def _place(child: Child, story: Story) -> str:
    is_near = child.namespace in (None, story.subject.namespace)
    label = child.label if is_near else f"{child.label} in {child.namespace}"
    return "  " * child.depth + label


def _child(child: Child, wall: float) -> list[str]:
    told = []
    if child.is_going:
        since = "" if child.going is None else f" for {span(wall - child.going)}"
        told.append(f"being deleted{since}")
    if child.told:
        told.append(child.told)
    if child.lacks:
        told.append(f"lacks {' and '.join(child.lacks)}")
    for each in child.touched:
        more = len(each.fields) - 3
        rest = f" and {more} more" if more > 0 else ""
        fields = ", ".join(each.fields[:3])
        told.append(f"{each.manager} wrote {fields}{rest} {_age_text(each.at, wall)}")
    kind = "applied" if child.applied else "" if child.depth else "owned"
    age = "?" if child.created is None else span(wall - child.created)
    return [kind, age, "; ".join(told)]


def _events(events: tuple[EventTold, ...], wall: float) -> Iterator[str]:
    more = len(events) - _EVENTS_SHOWN
    if more > 0:
        yield f"{number_of(more, 'earlier Event')}: see -o json"
    rows = []
    for each in events[-_EVENTS_SHOWN:]:
        count = f"x{each.count}" if each.count > 1 else ""
        about = f"{each.about}: " if each.about else ""
        by = f" ({each.by})" if each.by else ""
        text = f"{about}{_cut_text(_own_message(each.reason, each.message))}{by}"
        rows.append([_age_text(each.at, wall), count, each.type, each.reason, text])
    yield from _table_lines(rows) if rows else ()


def _writers(writers: tuple[Writer, ...], wall: float) -> Iterator[str]:
    rows = [
        [
            each.manager,
            f"{each.operation} {each.subresource}".strip(),
            _age_text(each.at, wall),
            number_of(each.fields, "field"),
        ]
        for each in writers[:_WRITERS_SHOWN]
    ]
    yield from _table_lines(rows) if rows else ()


def _recorded_lines(story: Story) -> Iterator[str]:
    if story.recorded is None:
        return
    if not story.recorded:
        yield "nothing about this object"
        return
    more = len(story.recorded) - _RECORDED_SHOWN
    if more > 0:
        yield f"{number_of(more, 'earlier line')}: see -o json"
    rows = [
        [_clock(each.at), each.who, _cut_text(each.what)]
        for each in story.recorded[-_RECORDED_SHOWN:]
    ]
    yield from _table_lines(rows)


def _clock(at: float) -> str:
    text = _time(at) or "?"
    return text.replace("T", " ").removesuffix("Z")


def _advice(story: Story, width: int) -> Iterator[str]:
    width = max(40, width - 2)
    for each in story.advice:
        yield from textwrap.wrap(each.text, width)
        for detail in each.details:
            yield from textwrap.wrap(
                detail, width, initial_indent="  ", subsequent_indent="    "
            )
        yield from textwrap.wrap(each.remedy, width)
