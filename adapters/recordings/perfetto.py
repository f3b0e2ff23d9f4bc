"""A recording as a trace for Perfetto: tracks, slices, and flows from cause to effect.

The trace is protobuf (`perfetto.protos.Trace`, with track events). A few lines write
the needed part of it. The numbers of the fields are those that Perfetto publishes in
`protos/perfetto/trace/`.

An event takes at least a microsecond, so that simultaneous events have an order: in
virtual time many steps happen at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec import Struct

from fnop.adapters.common.plain import one_line
from fnop.effects.structs import replace
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.history import Request
from fnop.interpreters.recording.model.refs import Ref, ref_of
from fnop.interpreters.recording.questions.links import Behind
from fnop.interpreters.recording.questions.timeline import Event, Timeline

__all__ = ["TRACE_EVENTS_MAX", "trace_of"]

TRACE_EVENTS_MAX = 500_000


def trace_of(timeline: Timeline) -> bytes:
    """The trace of a timeline that has ended."""
    return b"".join(map(_packet, _Trace(timeline).packets()))


# ------------------------------------------------------------------------ what is drawn


class Slice(Struct, frozen=True):
    """A span between two times, in nanoseconds; an instant if `end` is 0.

    `flows` are numbers of flows through it, from the earliest to the latest.
    """

    track: tuple[str, ...]
    name: str
    begin: int
    end: int = 0
    flows: tuple[int, ...] = ()
    notes: tuple[tuple[str, str | int], ...] = ()


@dataclass
class _Trace:
    timeline: Timeline
    _times: list[int] = field(default_factory=list)
    _flows: dict[object, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events = [*self.timeline.events]
        self._times = [*_times_of(self.events)]
        self._behind = Behind(self.events, self.timeline.revisions)

    def packets(self) -> Iterator[bytes]:
        """The contents of all packets: the clocks, the tracks, the events by time."""
        slices = [*_side_by_side(self._slices())]
        first = self._times[0] if self._times else 0
        yield _bytes(6, b"".join(_clock(each, first) for each in (_BOOT, _REAL)))
        tracks = _Tracks()
        for each in slices:
            tracks.add(each.track)
        yield from tracks.descriptors()
        told = [packet for each in slices for packet in _packets_of_slice(each, tracks)]
        told.sort(key=lambda each: each[:2])
        yield from (packet for _, _, packet in told)

    # ------------------------------------------------------------------------- slices

    def _slices(self) -> Iterator[Slice]:
        ends = self._life_ends()
        yield from self._lives()
        yield from self._attempts(ends)
        for number, event in enumerate(self.events):
            match event.sort:
                case "send" if event.request is not None:
                    yield self._request(number, event, event.request, ends)
                case "call" | "answer" | "start":
                    pass
                case _:
                    yield self._moment(number, event)

    def _life_ends(self) -> list[int]:
        """The time at which the process of each event ends."""
        found, end = [], self._times[-1] + 1_000 if self._times else 0
        for time, event in zip(
            reversed(self._times), reversed(self.events), strict=True
        ):
            found.append(end)
            if event.sort == "start":
                end = time
        return found[::-1]

    def _lives(self) -> Iterator[Slice]:
        starts = [n for n, each in enumerate(self.events) if each.sort == "start"]
        last = self._times[-1] + 1_000 if self._times else 0
        times = [*(self._times[n] for n in starts), last]
        for number, (begin, end) in enumerate(pairwise(times), 1):
            yield Slice(("operator", "processes"), f"process {number}", begin, end)

    def _attempts(self, life_ends: list[int]) -> Iterator[Slice]:
        last: dict[int, int] = {}
        for number, event in enumerate(self.events):
            if event.attempt is not None:
                last[id(event.attempt)] = number
        for number, event in enumerate(self.events):
            attempt = event.attempt
            if event.sort != "call" or attempt is None:
                continue
            end = self._times[last[id(attempt)]]
            if attempt.end is None:
                end = life_ends[number]
            begin = self._times[number]
            flows = [
                *self._flows_of_sightings(attempt),
                *self._flows_of_requests(attempt),
            ]
            notes = (*_notes(event), ("ended", int(attempt.end is not None)))
            track = _track_of(attempt)
            yield Slice(
                *(track, attempt.handler, begin, max(end, begin + 500)),
                *(tuple(flows), notes),
            )

    def _request(
        self, number: int, event: Event, request: Request, life_ends: list[int]
    ) -> Slice:
        begin, following = self._times[number], life_ends[number]
        if number + 1 < len(self._times):
            following = min(following, self._times[number + 1])
        end = life_ends[number]
        if event.answer:
            end = min(max(_nanoseconds(request.ended_wall), begin + 500), following - 1)
        elif request.ended:
            end = self._answered(number, request)
        flows = [self._flow((id(each), id(request))) for each in request.attempts]
        if request.made is not None:
            flows.append(self._flow(id(request.made)))
        first = request.attempts[0] if request.attempts else None
        track = _track_of(first) if first else _tracks_of(request.object)
        name = f"{request.verb} {request.object.label if request.object else ''}"
        outcome = ("outcome", request.result)
        return Slice(
            *((*track, "requests"), name.strip(), begin, max(end, begin + 500)),
            *(tuple(flows), (*_notes(event), outcome)),
        )

    def _answered(self, number: int, request: Request) -> int:
        for later in range(number + 1, len(self.events)):
            event = self.events[later]
            if event.sort == "answer" and event.request is request:
                return self._times[later]
        return self._times[number]

    def _moment(self, number: int, event: Event) -> Slice:
        flows: list[int] = []
        revision = event.revision
        if revision is not None and event.request is None:
            flows.append(self._flow(id(revision)))
        track: tuple[str, ...] = ("operator", "events")
        if event.attempt is not None:
            track = _track_of(event.attempt)
        elif event.object is not None and event.sort in ("shown", "change", "user"):
            track = (event.object.label, "versions")
        return Slice(
            *(track, event.told, self._times[number], 0, tuple(flows), _notes(event))
        )

    # -------------------------------------------------------------------------- flows

    def _flow(self, key: object) -> int:
        return self._flows.setdefault(key, len(self._flows) + 1)

    def _flows_of_sightings(self, attempt: Attempt) -> Iterator[int]:
        """The flows of the versions that an attempt was shown when it began."""
        for each in self._behind.sightings(attempt):
            if each.revision is not None and each.step == attempt.step:
                yield self._flow(id(each.revision))

    def _flows_of_requests(self, attempt: Attempt) -> Iterator[int]:
        for request in self._behind.requests(attempt):
            yield self._flow((id(attempt), id(request)))


def _track_of(attempt: Attempt) -> tuple[str, ...]:
    if attempt.object is None:
        return ("operator", attempt.handler)
    return (ref_of(*attempt.object[:3]).label, attempt.handler)


def _tracks_of(ref: Ref | None) -> tuple[str, ...]:
    return ("operator",) if ref is None else (ref.label, "fnop")


def _notes(event: Event) -> tuple[tuple[str, str | int], ...]:
    return (("step", event.step), ("text", event.told))


# ------------------------------------------------------------------------------- times

_SECONDS_MAX = 4e9
_LEAST = 1_000


def _nanoseconds(wall: float) -> int:
    return round(max(0.0, min(wall, _SECONDS_MAX)) * 1e6) * 1_000


def _times_of(events: Iterable[Event]) -> Iterator[int]:
    """The time of each event, later than the time of the one before."""
    last = 0
    for event in events:
        last = max(_nanoseconds(event.wall), last + _LEAST)
        yield last


def _side_by_side(slices: Iterable[Slice]) -> Iterator[Slice]:
    """Slices of one track that overlap, on tracks of their own."""
    ends: dict[tuple[str, ...], list[int]] = {}
    for each in sorted(slices, key=lambda each: each.begin):
        if not each.end:
            yield each
            continue
        busy = ends.setdefault(each.track, [])
        free = (n for n, end in enumerate(busy) if end <= each.begin)
        place = next(free, len(busy))
        busy[place : place + 1] = [each.end]
        *above, name = each.track
        track = (*above, f"{name} ({place + 1})") if place else each.track
        yield replace(each, track=track)


# ------------------------------------------------------------------------------ packets

_BEGIN, _END, _INSTANT = 1, 2, 3
_BOOT, _REAL = 6, 1  # clocks


class _Tracks:
    """Tracks by name; those of the first level are shown as processes."""

    def __init__(self) -> None:
        self._uuids: dict[tuple[str, ...], int] = {}

    def add(self, track: tuple[str, ...]) -> None:
        """Register a track, and the tracks around it."""
        for length in range(1, len(track) + 1):
            self._uuids.setdefault(track[:length], len(self._uuids) + 1)

    def __getitem__(self, track: tuple[str, ...]) -> int:
        return self._uuids[track]

    def descriptors(self) -> Iterator[bytes]:
        """A packet for each track."""
        for track, uuid in self._uuids.items():
            found = _number(1, uuid)
            if len(track) == 1:
                process = _number(1, uuid) + _text(6, track[0])
                found += _bytes(3, process)
            else:
                found += _text(2, track[-1]) + _number(5, self._uuids[track[:-1]])
            yield _bytes(60, found)


def _packets_of_slice(each: Slice, tracks: _Tracks) -> Iterator[tuple[int, int, bytes]]:
    """The packets of a slice, each with its time, and its order at one time."""
    track = _number(11, tracks[each.track])
    kind = _BEGIN if each.end else _INSTANT
    event = _number(9, kind) + track + _text(23, each.name) + _text(22, "fnop")
    event += b"".join(_fixed(47, flow) for flow in dict.fromkeys(each.flows))
    event += b"".join(_bytes(4, _note(*note)) for note in each.notes)
    yield each.begin, 1, _number(8, each.begin) + _bytes(11, event)
    if each.end:
        end = _number(9, _END) + track
        yield each.end, 0, _number(8, each.end) + _bytes(11, end)


def _note(name: str, value: str | int) -> bytes:
    told = _number(3, value) if isinstance(value, int) else _text(6, value)
    return _text(10, name) + told


def _clock(clock: int, time: int) -> bytes:
    return _bytes(1, _number(1, clock) + _number(2, time))


def _packet(content: bytes) -> bytes:
    return _bytes(1, content + _number(10, 1))  # of the only sequence


# -------------------------------------------------------------------------- wire format


def _varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte.

    >>> _varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3) + _varint(value)


def _fixed(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3 | 1) + value.to_bytes(8, "little")


def _bytes(field_number: int, value: bytes) -> bytes:
    return _varint(field_number << 3 | 2) + _varint(len(value)) + value


def _text(field_number: int, value: object) -> bytes:
    text = one_line(str(value))
    return _bytes(field_number, text.encode(errors="backslashreplace"))
