"""Recordings by a ring: what remains is a valid recording, at any size."""

from __future__ import annotations

from hypothesis import example as example_of, given, settings, strategies as st

from fnop.interpreters.recording.format.ring import Ring
from tests.property.recorded_scripts import Script, dumped, keeping, watched
from tests.property.scripts import KIND, scripts
from tests.thorough import examples

# An update based on another one; the ring has kept only the middle of that.
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
