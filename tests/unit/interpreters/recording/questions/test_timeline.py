"""Timelines of recordings: who caused what, and how long a call lasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.model.revisions import (
    VERSIONS_MAX,
    Revision,
    Revisions,
    packed,
)
from fnop.interpreters.recording.questions.lanes import (
    OPERATOR,
    OTHERS,
    OUTSIDE,
    calls_of,
    lanes_of,
)
from fnop.interpreters.recording.questions.links import Behind
from fnop.interpreters.recording.questions.timeline import Event, Timeline
from tests.checks import failure
from tests.pages import read_recording, timeline_of
from tests.recorded_examples import record


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    return timeline_of(
        *read_recording(record("14-daemons", tmp_path_factory.mktemp("d")))
    )


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    return timeline_of(*read_recording(failure(tmp_path_factory.mktemp("f"))))


def test_a_request_without_news_has_made_nothing(daemons: Timeline) -> None:
    """The daemon patches what is so already: the version is another handler's."""
    objects = daemons.revisions.of_objects()
    (versions,) = objects.values()
    behind = Behind(daemons.events, daemons.revisions)
    writes = [
        each
        for each in daemons.events
        if each.sort == "send" and each.request is not None and each.request.is_write
    ]
    made = [each.request.made for each in writes if each.request is not None]
    assert len(writes) > 20
    assert {each.version for each in made if each} == {e.version for e in versions[1:]}
    assert sum(each is not None for each in made) == len(versions) - 1
    last = versions[-1]
    sight = next(e for e in daemons.events if e.sort == "shown" and e.revision is last)
    texts = [each.text for each in behind.links(sight)]
    assert texts[0].startswith("made by Patch")
    assert "for once" in texts[0]


def test_a_call_without_an_end_lasts_as_long_as_its_process(failed: Timeline) -> None:
    events = [*failed.events]
    spans = dict(calls_of(events))
    starts = [n for n, each in enumerate(events) if each.sort == "start"]
    calls = [n for n, each in enumerate(events) if each.sort == "call"]
    first = calls[0]
    assert events[first].attempt is not None
    assert spans[first] == starts[1] - 1  # the crash
    for number in calls[1:]:
        assert events[spans[number]].sort == "end"


def test_what_the_crash_has_left_behind_was_made_by_its_request(
    failed: Timeline,
) -> None:
    lost = next(
        each.request
        for each in failed.events
        if each.sort == "send" and each.request is not None and not each.request.ended
    )
    assert lost.made is not None
    assert (lost.made.made, lost.made.ref.name) == (lost.step, "x-a")


def test_the_lanes_stand_in_their_order(failed: Timeline) -> None:
    lanes = lanes_of(failed.events)
    assert lanes[0] == "user"
    assert lanes[-1] == OPERATOR
    objects = [each for each in lanes if isinstance(each, Ref)]
    assert [each.name for each in objects] == ["x", "x-a"]
    assert OUTSIDE not in lanes


def test_objects_that_nobody_handles_share_a_lane(tmp_path: Path) -> None:
    timeline = timeline_of(*read_recording(record("19-database", tmp_path)))
    lanes = lanes_of(timeline.events)
    assert OTHERS in lanes
    assert not any("root-ca" in each.name for each in lanes if isinstance(each, Ref))


def body(name: str, version: int) -> dict[str, Any]:
    meta = {"name": name, "uid": name, "resourceVersion": str(version)}
    return {"kind": "K", "metadata": meta}


def test_a_version_was_there_when_a_later_one_of_its_kind_was_shown() -> None:
    revisions = Revisions()
    one, other = Ref("ks", "", "one"), Ref("ks", "", "other")
    revisions.show(one, body("one", 5), 1, 0.0, gone=False)
    revisions.show(other, body("other", 9), 2, 0.0, gone=False)
    revisions.show(one, body("one", 7), 4, 0.0, gone=False)  # its watch was late
    versions = revisions.of_objects()[one]
    assert [(e.version, e.since, e.shown) for e in versions] == [
        ("5", 1, 1),
        ("7", 2, 4),
    ]


def test_a_version_that_also_tells_of_the_end_was_there() -> None:
    """A watch with a selector ends an object in the version that it has elsewhere."""
    revisions, one = Revisions(), Ref("ks", "", "one")
    shown = revisions.show(one, body("one", 5), 2, 0.0, gone=False)
    end = revisions.show(one, body("one", 5), 4, 1.0, gone=True)
    assert revisions.show(one, body("one", 5), 5, 1.0, gone=True) is end
    assert (shown.gone, end.gone) == (False, True)
    assert revisions.find("one", "5") is shown
    assert [(e.since, e.gone) for e in revisions.of_objects()[one]] == [
        (2, False),
        (4, True),
    ]
    # It may be selected again.
    revisions.show(one, body("one", 9), 7, 2.0, gone=False)
    assert [e.gone for e in revisions.of_objects()[one]] == [False, True, False]


def test_an_end_of_its_own_version_is_told_once() -> None:
    revisions, one = Revisions(), Ref("ks", "", "one")
    revisions.show(one, body("one", 5), 2, 0.0, gone=False)
    end = revisions.show(one, body("one", 6), 4, 1.0, gone=True)
    # An answer may show it too late.
    assert revisions.show(one, body("one", 6), 5, 1.0, gone=False) is end
    assert [(e.since, e.gone) for e in revisions.of_objects()[one]] == [
        (2, False),
        (4, True),
    ]


def test_of_very_many_versions_the_last_of_each_object_stay() -> None:
    revisions = Revisions()
    still, busy = Ref("ks", "", "still"), Ref("ks", "", "busy")
    revisions.show(still, body("still", 1), 1, 0.0, gone=False)
    for number in range(2, VERSIONS_MAX + 102):
        found = Revision(busy, "busy", str(number), 0.0, number, body=packed({}))
        revisions.tell(found)
    objects = revisions.of_objects()
    assert [each.version for each in objects[still]] == ["1"]
    assert len(objects[busy]) == VERSIONS_MAX - 1
    assert objects[busy][-1].version == str(VERSIONS_MAX + 101)
    assert revisions.forgotten == 101


def test_the_key_of_an_event_has_no_versions_and_no_stable_names() -> None:
    one = Event(1, 0.0, "end", "ends with Adopt pod/a-0123456789")
    other = Event(2, 5.0, "end", "ends with Adopt pod/a-9876543210")
    assert one.key == other.key
