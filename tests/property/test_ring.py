"""A ring: what remains of a run reads as a recording, however small the ring is."""

from __future__ import annotations

from hypothesis import example as example_of, given, settings, strategies as st

from fnop.core.handlers.registry import Registry
from fnop.interpreters.ring import Ring
from tests.property.test_convergence import KIND, moved, scripts
from tests.property.test_shadow import Script, keeping
from tests.recordings import TRACED, Recording
from tests.simulations import Scenario, example
from tests.thorough import examples


def watched(script: Script, ring: Ring) -> tuple[Scenario, Recording]:
    """A run before a ring, and its whole recording."""
    whole = Recording(keeping(80))
    run = Scenario(
        keeping(80),
        [example(f"example-{number}", n=0, m=0) for number in (1, 2)],
        settings=TRACED,
        observers=(ring, whole.recorder),
    )
    moved(run, script)
    assert run.settle()
    return run, whole


def dumped(registry: Registry, ring: Ring) -> Recording:
    """What the ring remembers, written as a recording."""
    found = Recording(registry)
    for now, input, commands in ring.steps():
        found.recorder.observe(now, input, commands)
    return found


# An update that is made of one of which the ring has kept the middle alone.
CRASH = [("crash", 0, 0)]
IN_THE_MIDDLE: Script = [
    *CRASH,
    ("edit", 1, 0),
    ("wait", 3, 0),
    ("wait", 28, 0),
    *CRASH,
    ("wait", 29, 0),
    *CRASH,
    ("edit", 0, 0),
    ("edit", 0, 1),
    ("step", 3, 0),
    ("edit", 0, 0),
    ("step", 1, 0),
]


@settings(max_examples=examples(10))
@example_of(IN_THE_MIDDLE, 59_999, 1)
@given(scripts, st.integers(1_000, 60_000), st.integers(1, 200))
def test_each_attempt_that_began_in_it_can_be_asked_again(
    script: Script, size: int, age: int
) -> None:
    ring = Ring(size=size, age=age)
    run, whole = watched(script, ring)
    all_of_it = whole.shadow(keeping(80))
    last = dumped(keeping(80), ring)
    found = last.shadow(keeping(80))
    assert (found.changed, found.untold, found.missing) == ([], {}, {})
    assert found.attempts <= all_of_it.attempts
    if not ring.dropped:
        assert found.attempts == all_of_it.attempts
    # What another version would decide is found in it, too.
    other = last.shadow(keeping(81))
    assert {each.attempt.number for each in other.changed} <= {
        each.attempt.number for each in whole.shadow(keeping(81)).changed
    }
    assert run.get(KIND) is not None
