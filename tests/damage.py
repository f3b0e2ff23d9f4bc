"""A recording that tests damage, and one way to damage it."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.format.blocks import CORRUPT
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from tests.recordings import TRACED, inflated, records_in
from tests.simulations import Scenario, example, example_handlers

# As many as make a recording of several blocks.
OBJECTS = 25


@cache
def whole() -> bytes:
    """A recording, as it is written."""
    program, file = Program(example_handlers("05-handlers"), TRACED), io.BytesIO()
    recorder = Recorder(file, header_of(program, "test"), Redaction(b"k" * 16, program))
    sim = Scenario(program.handlers, settings=TRACED, observers=[recorder])
    sim.apply(*(example(f"e{number}") for number in range(OBJECTS)))
    sim.settle()
    for number in range(OBJECTS):
        sim.edit("fnopexamples", f"e{number}", spec={"field": f"of {number * 7919}"})
        sim.settle(seconds=1)
    recorder.finish()
    assert recorder.problem is None
    return file.getvalue()


@cache
def all_records() -> list[dict[str, Any]]:
    return records_in(whole())


@cache
def all_lines() -> list[bytes]:
    return inflated(whole()).splitlines()


def damaged(part: float) -> bytes:
    """The recording with a changed bit at about this part of it, which matters.

    Some bits between two compressed blocks mean nothing.
    """
    places = range(int(part * len(whole())), len(whole()))
    return next(found for at in places if _is_damaged(found := flipped(whole(), at)))


def _is_damaged(data: bytes) -> bool:
    try:
        return inflated(data) != inflated(whole())
    except (*CORRUPT, AssertionError):
        return True


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
