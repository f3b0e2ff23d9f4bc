"""Repeated log lines that are folded: none is hidden for good, times never go back."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from fnop.adapters.common.repeats import Repeats
from fnop.core.seam.commands import Say, Subject

LINES = st.builds(
    Say,
    st.sampled_from(["debug", "info", "warning", "error"]),
    st.sampled_from(["a succeeded", "a failed: no", "step 1 of 2", "step 2 of 2"]),
    st.sampled_from(
        [None, Subject("pods.v1.", "ns", "x"), Subject("pods.v1.", "ns", "y")]
    ),
    st.sampled_from([None, "a", "b"]),
    error=st.sampled_from([None, "no"]),
)
LOGS = st.lists(st.tuples(LINES, st.sampled_from([0.0, 0.5, 60.0])), max_size=80)


@given(LOGS)
def test_every_line_is_shown_or_counted(log: list[tuple[Say, float]]) -> None:
    shown: list[tuple[Say, float]] = []
    repeats = Repeats(lambda say, at: shown.append((say, at)))
    now = 0.0
    for say, pause in log:
        now += pause
        repeats.say(say, now)
    before = len(shown)
    repeats.close(now)
    times = [at for _, at in shown]
    assert times == sorted(times)
    counts = [
        re.search(r"\((\d+) times in all", say.message) for say, _ in shown[before:]
    ]
    assert all(counts)
    folded = sum(int(found[1]) for found in counts if found)
    # Those that were folded were shown at first, and are in the count once more.
    assert len(log) <= before + folded
    assert [say for say, _ in log if say.level == "debug"] == [
        say for say, _ in shown if say.level == "debug"
    ]
    about_nobody = [say for say, _ in log if say.level == "info" and not say.handler]
    assert about_nobody == [
        say for say, _ in shown if say.level == "info" and not say.handler
    ]


@given(st.integers(1, 60))
def test_what_goes_well_for_each_of_many_objects_is_never_folded(number: int) -> None:
    shown: list[Say] = []
    repeats = Repeats(lambda say, at: shown.append(say))
    for each in range(number):
        subject = Subject("pods.v1.", "ns", f"p{each}")
        repeats.say(Say("info", "a succeeded", subject, "a"), 0.0)
    repeats.close(0.0)
    assert len(shown) == number
