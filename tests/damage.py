"""A recording that tests damage, and one way to damage it."""

from __future__ import annotations

import io

from fnop.core.handlers.program import Program
from fnop.interpreters.recorder import Recorder, header_of
from fnop.interpreters.redaction import Redaction
from tests.recordings import TRACED
from tests.simulations import Scenario, example, example_handlers


def recorded() -> bytes:
    program, file = Program(example_handlers("05-handlers"), TRACED), io.BytesIO()
    recorder = Recorder(file, header_of(program, "test"), Redaction(b"k" * 16, program))
    sim = Scenario(program.handlers, settings=TRACED, observers=[recorder])
    sim.apply(*(example(f"e{number}") for number in range(40)))
    sim.settle()
    for number in range(40):
        sim.edit("fnopexamples", f"e{number}", spec={"field": f"of {number * 7919}"})
        sim.settle(seconds=1)
    recorder.finish()
    assert recorder.problem is None
    return file.getvalue()


WHOLE = recorded()


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
