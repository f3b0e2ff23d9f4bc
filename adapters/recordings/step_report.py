"""Lines for people about the position of a cursor in a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fnop.adapters.common.manifests import dump_yaml
from fnop.adapters.recordings.story_report import quoted, written
from fnop.core.values.errors import number_of
from fnop.core.values.paths import path_text
from fnop.interpreters.explain.recorded import took
from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.model.revisions import Revision
from fnop.interpreters.recording.model.times import clock, stamp
from fnop.interpreters.recording.questions.cursor import Cursor, Stretch
from fnop.interpreters.recording.questions.provenance import Why
from fnop.interpreters.recording.questions.staleness import Beside, View
from fnop.interpreters.recording.questions.steps import Steps
from fnop.interpreters.recording.questions.timeline import Event

__all__ = [
    "around_lines",
    "object_lines",
    "present_lines",
    "step_lines",
    "stretch_lines",
    "title_of",
    "view_lines",
    "writer_lines",
]

_OBJECTS_SHOWN, _FIELDS_SHOWN, _STRETCHES_SHOWN = 40, 30, 10
# Sorts of events by others: they come after the step.
_BESIDE = frozenset(("user", "change", "fault", "rest"))


def title_of(name: str, steps: Steps, *, is_whole: bool) -> str:
    """The recording in one line, as far as it is read."""
    count = number_of(len(steps.numbers), "step")
    parts = [count if is_whole else f"its first {count}"]
    if steps.processes > 1:
        parts.append(f"{steps.processes} processes")
    parts.append(number_of(len(steps.pasts), "object"))
    if steps.walls:
        parts.append(f"{stamp(steps.walls[0])} to {clock(steps.walls[-1])}")
    rest = "" if is_whole else "; more is read as it is asked for"
    return f"{name}: {', '.join(parts)}{rest}"


# ------------------------------------------------------------------------------ a step


def step_lines(cursor: Cursor) -> Iterator[str]:
    """The step: its time, its input, and its effects."""
    steps, step = cursor.steps, cursor.step
    place = steps.place(step)
    after = ""
    if place > 0:
        seconds = max(0.0, steps.walls[place] - steps.walls[place - 1])
        after = f", {took(seconds)} after #{steps.numbers[place - 1]}"
    yield f"#{step}, {clock(steps.wall(step))}{after}"
    yield from (f"  {each}" for each in _event_lines(cursor))


def _event_lines(cursor: Cursor) -> Iterator[str]:
    steps, step = cursor.steps, cursor.step
    aside, events = steps.aside(step), cursor.events
    found = [each for each in events if each.sort not in _BESIDE]
    if step in steps.gaps:
        first = step - steps.gaps[step] + 1
        yield f"#{first} to #{step}: {number_of(steps.gaps[step], 'step')} are missing"
        found = [each for each in found if each.sort != "gap"]
    if aside.heard:
        yield aside.heard
    for each in steps.answers.get(step, ()):
        since = "" if each.step == step else f" (sent at #{each.step})"
        yield f"{_place_prefix(each)}{each.told}{since}"
    for each in found:
        indent = "    " if each.depth else ""
        yield f"{indent}{_place_prefix(each)}{_text(each)}"
    yield from aside.done
    for each in events:
        if each.sort in _BESIDE:
            yield f"after it, {_text(each)}"
    if not (events or aside.heard or aside.done or step in steps.answers):
        yield "nothing comes of it"


def _place_prefix(event: Event) -> str:
    return f"[{event.where}] " if event.where else ""


def _text(event: Event) -> str:
    """The text of an event; a request has the step of its answer, not the result."""
    request = event.request
    if event.sort != "send" or request is None:
        return event.told
    if not request.ended:
        return f"{event.text} (never answered)"
    then = "" if request.ended == event.step else f" (answered at #{request.ended})"
    return f"{event.text}{then}"


def around_lines(cursor: Cursor, count: int) -> Iterator[str]:
    """The steps around the cursor with their events; an arrow marks the cursor."""
    steps = cursor.steps
    here, first = steps.place(cursor.step), steps.place(steps.first)
    for step in steps.numbers[max(first, here - count) : here + count + 1]:
        mark = "->" if step == cursor.step else "  "
        there = Cursor(steps, step)
        for number, text in enumerate(_event_lines(there)):
            head = f"{clock(steps.wall(step))} {f'#{step}':>7}"
            yield f"{mark if not number else '  '} {head} {text}"


# -------------------------------------------------------------------------- the objects


def object_lines(cursor: Cursor, ref: Ref) -> Iterator[str]:
    """An object as it is, as YAML, with its version."""
    found = cursor.truth(ref)
    yield f"# {ref.label}, version {found.version}{_version_since(found, cursor.step)}"
    meta = {**found.data.get("metadata", {}), "resourceVersion": found.version}
    yield from dump_yaml([{**found.data, "metadata": meta}]).splitlines()


def _version_since(found: Revision, step: int) -> str:
    """The time since which a version exists, its author, and whether it was shown."""
    by = f", made by the request at #{found.made}" if found.made else ""
    seen = f", first shown at #{found.shown}" if found.shown else ", never shown"
    late = " only" if found.shown > step else ""
    return f", there since #{found.since}{by}{seen}{late}"


def present_lines(cursor: Cursor, kind: str) -> Iterator[str]:
    """The existing objects, with their versions and the versions that were shown."""
    found = [*cursor.present(kind)]
    shown = found[:_OBJECTS_SHOWN]
    width = max((len(each.ref.label) for each in shown), default=0)
    for each in shown:
        beside = cursor.shown(each.ref)
        yield f"{each.ref.label:{width}}  version {each.version}{_state(beside)}"
    more = len(found) - len(shown)
    if more > 0:
        yield f"and {number_of(more, 'object')} more; ask for a kind, as in get pods"
    if not found:
        yield f"there are no {kind or 'objects'} at #{cursor.step}"


def _state(beside: Beside) -> str:
    if beside.seen is None:
        return ", not shown yet"
    return f", shown in version {beside.seen.version}" if beside.revisions else ""


# --------------------------------------------------------------------------- the views


def view_lines(cursor: Cursor) -> Iterator[str]:
    """The views of the step's handlers, or else the operator's view."""
    views = cursor.views()
    for view in views:
        yield from _view_lines(view, cursor.steps)
    if not views:
        yield "no handler is called here; the operator was shown:"
        yield from (f"  {each}" for each in _compare_view(cursor.shown(cursor.object)))


def _view_lines(view: View, steps: Steps) -> Iterator[str]:
    attempt, end = view.attempt, steps.ends.get(id(view.attempt))
    place = steps.places.get(attempt.handler)
    name = f"{attempt.handler} ({place})" if place else attempt.handler
    where = f" of {attempt.where}" if attempt.reason else f" for {attempt.where}"
    words = f"{name} was called{attempt.reason_text}{where if attempt.where else ''}"
    ended = "it has no end" if end is None else f"at #{end.step} it {end.text}"
    yield f"{words} at #{attempt.step}; {ended}"
    yield from (f"  {line}" for each in view.sights for line in _compare_view(each))


def _compare_view(beside: Beside) -> Iterator[str]:
    """A handler's view next to the true object, with the fields that differ."""
    label, seen, truth = beside.object.label, beside.seen, beside.truth
    now = "it is not there" if truth is None else f"it is in version {truth.version}"
    if seen is None:
        yield f"{label}: nothing was seen of it; {now}"
        return
    head = f"{label} in version {seen.version}"
    if not beside.revisions:
        yield f"{head}: {'as it is' if truth is not None else now}"
        return
    age = number_of(beside.revisions, "revision")
    yield f"{head}: {age} old for {beside.seconds:.3g} s; {now}"
    rows = [
        (path_text(path) or "all of it", quoted(old), quoted(new))
        for path, old, new in beside.differing[:_FIELDS_SHOWN]
    ]
    if rows:
        yield from (
            f"  {each}" for each in _table_lines([("", "truth", "seen"), *rows])
        )
    more = len(beside.differing) - len(rows)
    if more > 0:
        yield f"  and {number_of(more, 'field')} more"


def _table_lines(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    widths = [min(60, max(len(row[each]) for row in rows)) for each in (0, 1)]
    for field, truth, seen in rows:
        yield f"{field:{widths[0]}}  {truth:{widths[1]}}  {seen}"


# --------------------------------------------------------------------------- questions


def writer_lines(
    changes: Sequence[Why], places: Mapping[str, str], step: int
) -> Iterator[str]:
    """Each change of a field, with its author; an arrow marks the present one."""
    rows = [*_changes(changes, places)]
    past = [each for each in rows if each[0] <= step]
    for row in rows:
        number, wall, text = row
        mark = "->" if past and row is past[-1] else "  "
        yield f"{mark} {clock(wall)} {f'#{number}':>7} {text}"


def _changes(
    changes: Sequence[Why], places: Mapping[str, str]
) -> Iterator[tuple[int, float, str]]:
    """The step, the time and the text of each change, and of the object's ends."""
    following = [*(each.shown.body.uid for each in changes[1:]), ""]
    for each, then in zip(changes, following, strict=True):
        old = "nothing" if each.former is None else quoted(each.former)
        new = "nothing" if each.value is None else quoted(each.value)
        text = f"{old} -> {new}, {written(each, places)}"
        yield each.shown.step, each.shown.wall, text
        gone, is_last = each.gone, then != each.shown.body.uid
        if gone is not None and is_last and each.value is not None:
            how = "a listing lacks the object" if gone.listed else "with the object"
            yield gone.step, gone.wall, f"{new} -> nothing, {how}"


def stretch_lines(what: str, found: Sequence[Stretch]) -> Iterator[str]:
    """The steps in which a condition holds."""
    told: list[Any] = [
        f"from #{each.first} to #{each.last}"
        if each.last
        else f"from #{each.first} to the end"
        for each in found[:_STRETCHES_SHOWN]
    ]
    more = len(found) - len(told)
    if more > 0:
        told.append(f"and {more} times more")
    yield f"{what} holds {', '.join(told)}"
