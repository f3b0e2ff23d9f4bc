"""`fnop replay --step`: back leads to the same place, and what it shows is true."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.cli.step import Session, Unclear
from fnop.adapters.recordings.step_report import (
    around_lines,
    object_lines,
    step_lines,
    view_lines,
)
from fnop.core.values.paths import parse_path
from fnop.interpreters.recording.format.ring import Ring
from fnop.interpreters.recording.model.contents import NoSuchObject
from fnop.interpreters.recording.model.predicates import parse_predicate
from fnop.interpreters.recording.model.refs import Named
from fnop.interpreters.recording.questions.cursor import Cursor, NoAnswer
from fnop.interpreters.recording.questions.provenance import Provenance
from fnop.interpreters.recording.questions.steps import Reading, Steps
from fnop.interpreters.recording.questions.timeline import Timeline
from tests.property.recorded_scripts import Script, dumped, keeping, watched
from tests.property.scripts import scripts
from tests.thorough import examples

Records = Sequence[dict[str, Any]]

PREDICATES = (
    *("spec.n >= 2", "spec.n = 0", "status absent", "status exists"),
    *("status.conditions[type=Ready].status = True", "metadata.name ~ example"),
)
FIELDS = ("spec.n", "status", "status.conditions", "metadata.finalizers", "data")


def recorded(script: Script, *, size: int | None = None) -> Records:
    """The records of a run, or of its last part, if a ring of a size has them."""
    ring = Ring(size=size or 1_000)
    _, whole = watched(script, ring)
    _, records = (whole if size is None else dumped(keeping(80), ring)).records()
    return [each for each in records if each is not None]


def steps_of(records: Records) -> Steps:
    """The steps, folded up to their end."""
    reading = Reading()
    for each in records:
        reading.add(each)
    reading.end()
    return reading.steps()


@settings(max_examples=examples(8))
@given(scripts, st.data())
def test_back_is_where_one_was(script: Script, data: st.DataObject) -> None:
    steps = steps_of(recorded(script))
    cursor = Cursor(steps, data.draw(st.integers(steps.first, steps.last - 1)))
    count = data.draw(st.integers(1, steps.last - cursor.step))
    there = cursor.moved(count)
    assert there.step == cursor.step + count
    back = there.moved(-count)
    assert back == cursor
    assert [*step_lines(back)] == [*step_lines(cursor)]
    assert [*view_text(back)] == [*view_text(cursor)]


def view_text(cursor: Cursor) -> list[str]:
    try:
        return [*view_lines(cursor)]
    except NoAnswer as problem:
        return [str(problem)]


@settings(max_examples=examples(6))
@given(scripts, st.data())
def test_what_is_so_at_a_step_is_what_the_records_up_to_it_tell(
    script: Script, data: st.DataObject
) -> None:
    """A version that was shown late was there before: only that is known better."""
    records = recorded(script)
    steps = steps_of(records)
    step = data.draw(st.integers(steps.first, steps.last))
    fresh = Timeline()
    for each in records[:step]:
        fresh.add(each)
    told = fresh.revisions.of_objects()
    assert {*told} <= {*steps.pasts}
    for ref, past in steps.pasts.items():
        number, shown = past.at(step), past.shown_by(step)
        known = [each for each in told.get(ref, ()) if each.shown]
        assert (shown < 0) == (not known)
        if known:
            assert past.versions[shown].version == known[-1].version
            assert past.versions[shown].body == known[-1].body
            assert past.versions[shown].gone == known[-1].gone
        assert all(each.shown > step for each in past.versions[shown + 1 : number + 1])


@settings(max_examples=examples(5))
@given(scripts, st.sampled_from(PREDICATES))
def test_a_predicate_holds_where_it_is_told_to_hold(script: Script, words: str) -> None:
    steps, predicate = steps_of(recorded(script)), parse_predicate(words)
    for ref in steps.pasts:
        holds = set()
        for number in steps.numbers:
            try:
                found = Cursor(steps, number).truth(ref).data
            except NoAnswer:
                found = None
            holds |= {number} if predicate.holds(found) else set()
        stretches = Cursor(steps, steps.first).stretches(ref, predicate)
        told = [
            number
            for first, last in stretches
            for number in range(first, (last or steps.last) + 1)
        ]
        assert told == sorted(holds)
        assert all(one.last + 1 < other.first for one, other in pairwise(stretches))


@settings(max_examples=examples(5))
@given(scripts, st.sampled_from(FIELDS), st.data())
def test_why_as_of_a_step_is_why_by_the_records_up_to_it(
    script: Script, field: str, data: st.DataObject
) -> None:
    records, path = recorded(script), parse_path(field)
    steps = steps_of(records)
    step = data.draw(st.integers(steps.first, steps.last))
    for named in steps.named.values():
        whole, until = Provenance(*named), Provenance(*named)
        for number, each in enumerate(records, 1):
            whole.add(each)
            if number <= step:
                until.add(each)
        found, expected = whole.why(path, step), until.why(path)
        assert (found is None) == (expected is None)
        if found is None or expected is None:
            continue
        assert (found.value, found.former) == (expected.value, expected.former)
        assert (found.shown, found.before) == (expected.shown, expected.before)
        assert found.gone == expected.gone
        if all(each.answered for each in until.writes):
            sent = found.write and found.write.step
            assert sent == (expected.write and expected.write.step)
            assert found.author == expected.author


@settings(max_examples=examples(6))
@given(scripts, st.sampled_from(FIELDS))
def test_the_changes_of_a_field_are_a_chain(script: Script, field: str) -> None:
    records, path = recorded(script), parse_path(field)
    for named in steps_of(records).named.values():
        whole = Provenance(*named)
        for each in records:
            whole.add(each)
        changes = whole.changes(path)
        assert changes[-1:] == [each for each in [whole.why(path)] if each]
        for one, other in pairwise(changes):
            # An object that is gone may come again, as another one.
            is_same = one.shown.body.uid == other.shown.body.uid
            assert other.former == (one.value if is_same else None)
            assert is_same or one.gone
            assert one.gone or other.value != one.value


@settings(max_examples=examples(6))
@given(scripts, st.integers(1_000, 60_000))
def test_every_step_of_the_last_of_a_run_can_be_shown(
    script: Script, size: int
) -> None:
    steps = steps_of(recorded(script, size=size))
    for number in steps.numbers:
        cursor = Cursor(steps, number)
        assert [*step_lines(cursor)]
        assert view_text(cursor)
        for found in cursor.present():
            assert [*object_lines(cursor, found.ref)]
    assert len([*around_lines(Cursor(steps, steps.first), 10**6)]) >= len(steps.numbers)
    with pytest.raises(NoAnswer, match="is the last step"):
        Cursor(steps, steps.last).moved(1)


class Lazily:
    """Reads records as far as it is asked to."""

    def __init__(self, records: Records) -> None:
        self._records, self._reading, self._read = records, Reading(), 0

    def read_on(self, until: int | None) -> Steps | None:
        last = len(self._records)
        wanted = last if until is None else min(until, last)
        if wanted <= self._read:
            return None
        for each in self._records[self._read : wanted]:
            self._reading.add(each)
        self._read = wanted
        if wanted == last:
            self._reading.end()
        return self._reading.steps()


def session_of(records: Records, ahead: int) -> Session:
    """A session that reads this far at first, and this far beyond each step."""
    source = Lazily(records)
    steps = source.read_on(ahead)
    assert steps is not None

    def provenance(named: Named, until: int | None) -> Provenance:
        found = Provenance(*named)
        for each in records[:until]:
            found.add(each)
        return found

    return Session(Cursor(steps, steps.first), source.read_on, provenance, ahead)


OBJECT = "fnopexamples/default/example-1"
COMMANDS = (
    *("next", "next 7", "back 3", "call", "back call", "write", "change", "failed"),
    *("next change", "back change", "goto 5", "goto last", "goto 9999", "first"),
    *("list 3", "object -", f"object {OBJECT}", f"get {OBJECT}", "object nobody"),
    *("get fnopexamples", "saw", "why spec.n", "who status", "when spec.n >= 1"),
    *("find status exists", "find spec.n = 2", "bisect 1 last spec.n >= 1"),
)


def told_by(session: Session, command: str) -> list[str]:
    try:
        return [*session.do(command)]
    except (NoAnswer, NoSuchObject, Unclear) as problem:
        return [str(problem)]


@settings(max_examples=examples(10))
@given(scripts, st.integers(4, 20), st.lists(st.sampled_from(COMMANDS), max_size=9))
def test_reading_as_it_is_asked_for_tells_what_reading_all_tells(
    script: Script, ahead: int, commands: list[str]
) -> None:
    records = recorded([*script, *script])
    lazy, whole = session_of(records, ahead), session_of(records, len(records))
    for command in commands:
        assert told_by(lazy, command) == told_by(whole, command), command
        assert lazy.cursor.step == whole.cursor.step
