"""Spans of recordings: each request, call and attempt has exactly one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fnop.adapters.common.loading import handlers_of_file
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import input_from_wire
from fnop.core.values.now import Now
from fnop.interpreters.recording.replay.replay import (
    read_header,
    read_records,
    recorded_settings,
)
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.runtime.spans import Change, Opened, Span, Spans
from tests.long import parameters
from tests.replays.corpus import Recorded, counted_recordings
from tests.simulations import ROOT

RECORDED = counted_recordings()
# Retries, calls, several handlers, daemons, timers, conflicts, and lost replies.
AT_ONCE = (
    *("churn-faults-2-1", "churn-outages-1", "churn-replicas-2", "real-14-daemons-1"),
    *("real-07-subhandlers-1", "simulated-03-exceptions", "simulated-15-timers"),
)


class Folded:
    """An observer that keeps the changes of all spans."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.spans = Spans()

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        self.changes += self.spans.take(now, input, commands)


def folded(recorded: Recorded) -> tuple[list[Change], list[dict[str, Any]]]:
    """The changes of the spans of a recording, and its records."""
    folded, records = Folded(), []
    with recorded.file.open("rb") as file:
        read = read_records(file)
        settings = recorded_settings(read_header(read))
        program = Program(handlers_of_file(ROOT / recorded.operator), settings)
        machine = Machine(program, [folded])
        folded.spans.state = lambda: machine.state
        for record in read:
            if record is not None:  # else it is cut off
                records.append(record)
                now = Now(record["wall"], record["mono"])
                machine.feed(now, input_from_wire(record["input"]))
        machine.close()
    return [*folded.changes, *folded.spans.end()], records


def expected_starts(records: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """The steps of all requests, calls and attempts, as the records show them."""
    found: Counter[tuple[Any, ...]] = Counter()
    for number, record in enumerate(records, 1):
        for command in record["commands"]:
            match command["do"]:
                case "Perform" if command["effect"]["is"] == "Call":
                    found["call", number, command["handler"]] += 1
                case "Perform" if command["effect"]["is"] != "Random":
                    found["request", number, command.get("handler") or ""] += 1
                case "Fetch" | "ListPage":
                    found["request", number, ""] += 1
                case "Began":
                    found["attempt", number, command["handler"]] += 1
                case _:
                    pass
    return found


def expected_answers(records: list[dict[str, Any]]) -> Counter[int]:
    """The steps that answer a request or a call."""
    asked = {
        command["id"]
        for record in records
        for command in record["commands"]
        if command["do"] in ("Perform", "Fetch")
        and command.get("effect", {}).get("is") != "Random"
    }
    return Counter(
        number
        for number, record in enumerate(records, 1)
        if record["input"]["in"] == "Answered" and record["input"]["id"] in asked
    )


def around(span: Span) -> list[Span]:
    return [] if span.parent is None else [span.parent, *around(span.parent)]


@pytest.mark.parametrize(
    "recorded", parameters(RECORDED.values(), AT_ONCE, lambda each: each.name)
)
def test_each_request_and_attempt_has_one_span(recorded: Recorded) -> None:
    changes, records = folded(recorded)
    opened = [each.span for each in changes if isinstance(each, Opened)]
    closed = [each.span for each in changes if not isinstance(each, Opened)]
    assert Counter(map(id, opened)) == Counter(map(id, closed)), "each closes once"
    parts = [each for each in opened if each.kind != "reconcile"]
    starts = Counter((each.kind, each.step, each.handler) for each in parts)
    assert starts == expected_starts(records)
    answers = Counter(
        each.ended
        for each in parts
        if each.kind in ("call", "request") and "before the answer" not in each.error
    )
    assert answers >= expected_answers(records), "listings end by other inputs"


@pytest.mark.parametrize(
    "recorded", parameters(RECORDED.values(), AT_ONCE, lambda each: each.name)
)
def test_children_lie_within_their_parents(recorded: Recorded) -> None:
    changes, _ = folded(recorded)
    is_open: set[int] = set()
    for change in changes:
        span = change.span
        above = around(span)
        if isinstance(change, Opened):
            assert all(id(each) in is_open for each in above)
            assert [each.kind for each in above] == sorted(
                (each.kind for each in above), key=("attempt", "reconcile").index
            )
            is_open.add(id(span))
            continue
        is_open.remove(id(span))
        assert span.end is not None
        assert span.begin <= span.end
        for each in above:
            assert id(each) in is_open
            assert each.begin <= span.begin
            assert each.end is None or span.end <= each.end
    assert not is_open


@pytest.mark.parametrize(
    "recorded", parameters(RECORDED.values(), AT_ONCE[:3], lambda each: each.name)
)
def test_one_object_has_one_reconcile_at_a_time(recorded: Recorded) -> None:
    changes, _ = folded(recorded)
    busy: set[object] = set()
    for change in changes:
        span = change.span
        if span.kind != "reconcile":
            continue
        assert span.about is not None
        key = span.about.resource, span.about.label
        if isinstance(change, Opened):
            assert key not in busy
            busy.add(key)
        else:
            busy.remove(key)
            assert not span.inside
