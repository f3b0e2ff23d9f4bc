"""`fnop replay --perfetto`: the trace, decoded by Perfetto's own library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from fnop.adapters.recordings.perfetto import trace_of
from tests.checks import failure
from tests.commands import fnop
from tests.pages import read_recording, timeline_of
from tests.recorded_examples import EXAMPLES, record

protos = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    reason="Perfetto's own decoder is missing: pip install '.[test]'",
)

Json = dict[str, Any]


class Told(NamedTuple):
    """A slice or a moment, with the names of its track and of those above it."""

    track: tuple[str, ...]
    name: str
    begin: int
    end: int
    flows: frozenset[int]


def decoded(text: bytes) -> list[Told]:
    """The slices of a trace; it has nothing else, and nothing that is unknown."""
    trace = protos.Trace()
    trace.ParseFromString(text)
    trace.DiscardUnknownFields()
    assert trace.ByteSize() == len(text)  # no field is unknown, or of another type
    tracks: dict[int, tuple[str, ...]] = {}
    for each in trace.packet:
        if each.HasField("track_descriptor"):
            found = each.track_descriptor
            assert found.uuid not in tracks
            name = found.name or found.process.process_name
            above = tracks[found.parent_uuid] if found.parent_uuid else ()
            tracks[found.uuid] = (*above, name)
    return [*_slices(trace, tracks)]


def _slices(trace: Any, tracks: dict[int, tuple[str, ...]]) -> Iterator[Told]:
    event_type = protos.TrackEvent
    open_: dict[int, tuple[Any, int]] = {}
    last = 0
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= last, "in the order of time"
        last = packet.timestamp
        event = packet.track_event
        track = event.track_uuid
        flows = frozenset(event.flow_ids)
        if event.type == event_type.TYPE_SLICE_BEGIN:
            assert track not in open_, "one at a time"
            open_[track] = event, packet.timestamp
        elif event.type == event_type.TYPE_SLICE_END:
            begun, at = open_.pop(track)
            told = frozenset(begun.flow_ids)
            yield Told(tracks[track], begun.name, at, packet.timestamp, told)
        else:
            assert event.type == event_type.TYPE_INSTANT
            at = packet.timestamp
            yield Told(tracks[track], event.name, at, at, flows)
    assert not open_, "each slice has an end"


@pytest.mark.parametrize("name", EXAMPLES)
def test_attempts_and_requests_are_slices(name: str, tmp_path: Path) -> None:
    timeline = timeline_of(*read_recording(record(name, tmp_path)))
    told = decoded(trace_of(timeline))
    slices = Counter(each.name for each in told if each.end > each.begin)
    calls = [each for each in timeline.events if each.sort == "call"]
    sent = [each for each in timeline.events if each.sort == "send"]
    assert calls
    for event in calls:
        assert event.attempt is not None
        slices[event.attempt.handler] -= 1
    for event in sent:
        assert event.request is not None
        about = event.request.object.label if event.request.object else ""
        slices[f"{event.request.verb} {about}".strip()] -= 1
    slices["process 1"] -= 1
    assert not +slices
    assert not -slices
    moments = [each for each in told if each.end == each.begin]
    rest = ("call", "send", "answer", "start")
    assert len(moments) == sum(each.sort not in rest for each in timeline.events)


def test_flows_lead_from_cause_to_effect(tmp_path: Path) -> None:
    """From the sight of an object to its handler, to its request, to what that made."""
    recording = record("02-children", tmp_path)
    done = fnop("replay", recording, "--perfetto", "trace.pb", folder=tmp_path)
    assert done.status == 0
    told = decoded((tmp_path / "trace.pb").read_bytes())
    sight = one(told, "sees fnopexamples/default/example-1 listed")
    attempt = one(told, "create_pod")
    request = first(told, "pods/default")
    # The kubelet changes the pod afterwards.
    echo = earliest(told, "sees pods/default/")
    spy = earliest(told, "pod_changed")
    for cause, effect in ((sight, attempt), (attempt, request), (request, echo)):
        assert cause.flows & effect.flows, (cause, effect)
        assert cause.begin < effect.begin
    assert echo.flows & spy.flows
    assert attempt.track == ("fnopexamples/default/example-1", "create_pod")
    assert request.track == (*attempt.track, "requests")
    assert not sight.flows & echo.flows


def one(told: list[Told], name: str) -> Told:
    (found,) = (each for each in told if each.name.startswith(name))
    return found


def earliest(told: list[Told], name: str) -> Told:
    named = (each for each in told if each.name.startswith(name))
    return min(named, key=lambda each: each.begin)


def first(told: list[Told], name: str) -> Told:
    return next(each for each in told if name in each.name and each.end > each.begin)


def test_a_crash_ends_what_was_under_way(tmp_path: Path) -> None:
    timeline = timeline_of(*read_recording(failure(tmp_path)))
    told = decoded(trace_of(timeline))
    lives = [each for each in told if each.track == ("operator", "processes")]
    assert len(lives) == 4
    (lost,) = (each for each in told if each.name == "Create secrets/default/x-a")
    assert lost.end == lives[0].end
    (fault,) = (each for each in told if "crash after" in each.name)
    assert fault.track == ("operator", "events")
    assert lost.begin < fault.begin < lost.end


@given(st.text(), st.integers(0, 2**63))
def test_any_text_and_number_is_told(text: str, number: int) -> None:
    from fnop.adapters.recordings.perfetto import _fixed, _number, _text

    event = protos.TrackEvent()
    event.ParseFromString(_number(11, number) + _text(23, text) + _fixed(47, number))
    assert event.track_uuid == number
    assert [*event.flow_ids] == [number]
    assert event.name.isprintable()
