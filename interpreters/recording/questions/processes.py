"""Several recordings as one timeline: processes that ran at the same time.

The steps of all processes are numbered together, in their order of time. So versions,
requests and their causes are comparable between processes. Each process keeps a history
of its own, and all processes share the versions of objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from fnop.interpreters.recording.model.account import Account
from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.model.revisions import Revision, Revisions
from fnop.interpreters.recording.questions.headlines import LOSSES
from fnop.interpreters.recording.questions.timeline import (
    EVENTS_MAX,
    Event,
    Timeline,
)

__all__ = ["Process", "Processes", "by_time", "names_of"]

Json = Mapping[str, Any]


class Process(Struct, frozen=True):
    """One process on a page.

    `steps` is its number of steps, and `first` and `last` are the times of its events
    (Unix seconds). `states` are its states in words, each with the step at which it
    begins. `sights` are the versions of each object that it was shown, with the steps.
    """

    name: str
    steps: int
    first: float
    last: float
    states: Sequence[tuple[int, str]]
    sights: Mapping[Ref, Sequence[tuple[int, Revision]]]


class Processes:
    """The timelines of several recordings, by the names of their processes.

    Records come in their order of time (`by_time`). After the last one comes `end`.
    """

    def __init__(self, names: Sequence[str], most: int = EVENTS_MAX) -> None:
        self.account = Account()
        self.revisions = Revisions()
        self.steps = 0
        self.events: deque[Event] = deque(maxlen=most)
        self.count = 0
        self._timelines = {
            name: Timeline(
                events=deque(maxlen=most), revisions=self.revisions, sights={}
            )
            for name in names
        }
        # The common number of each step of a process.
        self._numbers = {name: list[int]() for name in names}

    def add(self, name: str, record: Json) -> None:
        """Take in a record of a process; raises as `History.read`."""
        timeline = self._timelines[name]
        timeline.history.steps = self.steps
        timeline.add(record)
        steps = timeline.history.steps
        self._numbers[name].extend(range(self.steps + 1, steps + 1))
        self.steps = steps

    def end(self) -> None:
        """The recordings are over: put the events in their order."""
        for name, timeline in self._timelines.items():
            timeline.end()
            for each in timeline.events:
                each.process = name
                each.own_step = bisect_left(self._numbers[name], each.step) + 1
        found = (each.events for each in self._timelines.values())
        self.count = sum(each.count for each in self._timelines.values())
        self.events.extend(sorted(chain(*found), key=lambda each: each.step))

    @property
    def left_out(self) -> str:
        """The events that are not kept, in words; "" if all are kept."""
        left = self.count - len(self.events)
        return f"the first {left:,} of {self.count:,} events" if left else ""

    @property
    def processes(self) -> Iterator[Process]:
        """The processes, in the order of their names as given."""
        for name, timeline in self._timelines.items():
            own = [each for each in self.events if each.process == name]
            walls = [each.wall for each in own] or [0.0]
            yield Process(
                name,
                len(self._numbers[name]),
                walls[0],
                walls[-1],
                [*_states(own)],
                timeline.sights or {},
            )


def _states(events: Iterable[Event]) -> Iterator[tuple[int, str]]:
    """The states of a process: it serves, leads, stands by, is frozen, or has ended."""
    last = 0
    for event in events:
        last = event.step
        match event.sort:
            case "start":
                yield event.step, "it serves"
            case "stop":
                yield event.step, "it is to stop"
            case "peer":
                yield event.step, event.text
            case "say" if event.text.startswith(LOSSES):
                yield event.step, event.text.removeprefix("warning: ")
            case _:
                pass
    if last:
        yield last + 1, "its recording has ended"


def by_time(
    recordings: Mapping[str, Iterable[Json]],
) -> Iterator[tuple[str, Json]]:
    """The records of processes in their order of time, with the processes' names.

    A clock that is put back does not change the order of a process's own records.

    >>> one, two = [{"wall": 1.0}, {"wall": 5.0}, {"wall": 2.0}], [{"wall": 3.0}]
    >>> [name for name, _ in by_time({"one": one, "two": two})]
    ['one', 'two', 'one', 'one']
    """
    left = {name: _timed(records) for name, records in recordings.items()}
    ahead = {name: found for name, each in left.items() if (found := next(each, None))}
    while ahead:
        name = min(ahead, key=lambda each: ahead[each][0])
        yield name, ahead[name][1]
        found = next(left[name], None)
        if found is None:
            del ahead[name]
        else:
            ahead[name] = found


def _timed(records: Iterable[Json]) -> Iterator[tuple[float, Json]]:
    wall = 0.0
    for record in records:
        now = record.get("wall")
        if isinstance(now, int | float):
            wall = max(wall, float(now))
        yield wall, record


def names_of(paths: Sequence[str]) -> list[str]:
    """Short names of files and folders: the last parts of their paths, if they differ.

    >>> names_of(["runs/a.fnop", "runs/b.fnop"])
    ['a', 'b']
    >>> names_of(["pod-a/run.fnop", "pod-b/run.fnop"])
    ['pod-a/run', 'pod-b/run']
    """
    parts = [each.removesuffix(".fnop").strip("/").split("/") for each in paths]
    most = max(map(len, parts), default=0)
    for count in range(1, most + 1):
        names = ["/".join(each[-count:]) for each in parts]
        if len({*names}) == len(names):
            return names
    return [f"{number}" for number in range(1, len(paths) + 1)]
