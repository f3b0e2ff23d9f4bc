"""Counts of recordings: a replay counts what the run has counted.

    python -m tests.replays.test_counts

writes the counts again, if they have changed on purpose or there are other recordings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from fnop.adapters.common.loading import handlers_of_file
from fnop.core.handlers.program.program import Program
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import command_to_wire, input_from_wire
from fnop.core.values.now import Now
from fnop.effects.values import canonical
from fnop.interpreters.recording.model.carried import told_alike
from fnop.interpreters.recording.replay.replay import (
    read_header,
    read_records,
    recorded_settings,
)
from fnop.interpreters.runtime.flow import Flow
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.runtime.meter import Histogram, Meter
from tests.replays.corpus import FOLDER, Recorded, counted_recordings
from tests.simulations import ROOT

COUNTS = FOLDER / "counts.json"


def counted(recorded: Recorded) -> dict[str, Any]:
    """Everything that a meter and a flow have counted at the end of a recording."""
    meter, flow = Meter(), Flow()
    with recorded.file.open("rb") as file:
        records = read_records(file)
        settings = recorded_settings(read_header(records))
        program = Program(handlers_of_file(ROOT / recorded.operator), settings)
        machine = Machine(program, [meter, flow])
        flow.state = lambda: machine.state
        try:
            for record in records:
                if record is not None:  # else it is cut off
                    _feed(machine, record)
        finally:
            machine.close()
    return {
        "meter.attempts": _named(meter.attempts),
        "meter.events": _named(meter.events),
        "meter.ends": _named(meter.ends),
        "meter.calls": _of_all(meter.calls),
        "flow.adds": _named(flow.adds),
        "flow.retries": _named(flow.retries),
        "flow.waits": _of_all(flow.waits),
        "flow.works": _of_all(flow.works),
        "flow.attempts": _of_all(flow.attempts),
    }


def _feed(machine: Machine, record: dict[str, Any]) -> None:
    now, input = Now(record["wall"], record["mono"]), _input(record)
    decided = [command_to_wire(each) for each in machine.feed(now, input)]
    if not record.get("redacted"):
        for is_, was in zip(decided, record["commands"], strict=True):
            assert canonical(is_) == canonical(was) or told_alike(was, is_)


def _input(record: dict[str, Any]) -> Input:
    return input_from_wire(record["input"])


def _named(found: Counter[Any]) -> dict[str, int]:
    return {
        name if isinstance(name, str) else " ".join(name): number
        for name, number in sorted(found.items())
    }


def _of_all(times: Mapping[str, Histogram]) -> dict[str, Any]:
    return {name: _of_one(each) for name, each in sorted(times.items())}


def _of_one(times: Histogram) -> dict[str, Any]:
    """The number within each bound, without empty ones; in all, seconds."""
    bounds = [*map(str, times.bounds), "more"]
    numbers = [after - before for before, after in pairwise([0, *times.cumulated()])]
    found = zip(bounds, numbers, strict=True)
    return {
        "seconds": round(times.total, 6),
        "within": {bound: number for bound, number in found if number},
    }


@pytest.mark.parametrize(
    "recorded", counted_recordings().values(), ids=lambda each: each.name
)
def test_the_same_is_counted(recorded: Recorded) -> None:
    assert counted(recorded) == json.loads(COUNTS.read_text())[recorded.name]


if __name__ == "__main__":
    found = {name: counted(each) for name, each in sorted(counted_recordings().items())}
    COUNTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
