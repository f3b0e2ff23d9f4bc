"""Timelines of any run, and of the part that a ring keeps."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.adapters.recordings.html_report import page_of
from fnop.adapters.recordings.perfetto import trace_of
from fnop.interpreters.recording.format.ring import Ring
from fnop.interpreters.recording.questions.timeline import Timeline
from tests.pages import seen_in, timeline_of
from tests.property.recorded_scripts import Script, dumped, keeping, watched
from tests.property.scripts import scripts
from tests.recordings import Recording
from tests.thorough import examples


def read(recording: Recording) -> tuple[dict[str, Any], Timeline]:
    """The header, and the timeline."""
    header, records = recording.records()
    return header, timeline_of(header, [each for each in records if each is not None])


def assert_consistent(timeline: Timeline) -> None:
    """Versions are there before they are seen, and made before they are there."""
    objects = timeline.revisions.of_objects()
    for versions in objects.values():
        steps = [each.since for each in versions]
        assert steps == sorted(steps)
        for each in versions:
            assert 0 < each.since <= (each.shown or each.since)
            assert each.made < each.since
    for event in timeline.events:
        attempt = event.attempt
        if event.sort == "call" and attempt is not None and attempt.object is not None:
            version = attempt.object
            found = timeline.revisions.find(version.uid, version.version)
            assert found is not None
            assert 0 < found.since <= attempt.step


@settings(max_examples=examples(8))
@given(scripts, st.integers(1_000, 60_000), st.integers(1, 200))
def test_a_ring_of_any_size_has_a_page_and_a_trace(
    script: Script, size: int, age: int
) -> None:
    ring = Ring(size=size, age=age)
    _, whole = watched(script, ring)
    _, all_of_it = read(whole)
    assert_consistent(all_of_it)
    header, timeline = read(dumped(keeping(80), ring))
    assert_consistent(timeline)
    header |= {"dropped": ring.dropped} if ring.dropped else {}
    page = page_of(header, timeline, "ring.fnop", cut_off=False)
    seen = seen_in(page)
    assert len(seen.rows) == len(timeline.events) == len(seen.data["e"])
    assert ("which the ring had dropped" in page) == bool(ring.dropped)
    assert trace_of(timeline)
