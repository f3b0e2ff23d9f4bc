"""The last steps of a run, kept in memory, and written down when something fails.

Inputs and commands are immutable values, so a step is kept by reference. It is not
copied, written, or searched for secrets before a dump is requested. When steps are
dropped, the things that later steps refer to remain: the last version of each object,
the versions that its handlers acted on, the served kinds, and the indices. So a dump
reads as a recording that begins with a listing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sized
from itertools import chain
from typing import Any, Literal, NamedTuple

import orjson
from msgspec import Struct

from fnop.core.seam.commands import Command, Exit, Fetch, Say, Subject
from fnop.core.seam.inputs import (
    Answered,
    Bookmark,
    Input,
    ListItem,
    LogLines,
    Started,
    WatchEvent,
)
from fnop.core.seam.traces import Began, Ended, Indexed
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import Applied

__all__ = [
    "AGE_SECONDS",
    "SIZE_BYTES",
    "Failure",
    "Ring",
    "Step",
    "failure_in",
    "size_of",
]

SIZE_BYTES = 64 * 1024 * 1024
AGE_SECONDS = 3600.0
# A parsed object takes about this many times the memory of its text.
_PARSED = 6
# A step without an object, and a command, in bytes.
_STEP, _COMMAND = 300, 400
# A line of a log, without its text.
_LINE = 150


class Step(NamedTuple):
    """One step: its time, its input, and the commands that followed."""

    now: Now
    input: Input
    commands: tuple[Command, ...]


class Ring:
    """Observes a run, and remembers its last steps.

    It keeps at most `size` bytes, by an estimate, and steps of the last `age` seconds.
    """

    def __init__(self, *, size: int = SIZE_BYTES, age: float = AGE_SECONDS) -> None:
        self._limit, self._age = size, age
        self._steps: deque[tuple[Step, int]] = deque()
        self._size = 0
        self.dropped = 0
        # The parts of dropped steps that later steps refer to.
        self._bodies: dict[str, Body] = {}
        self._fetches: dict[int, Step] = {}
        self._served: dict[str, tuple[Step, Step]] = {}
        self._indexed: dict[tuple[str, tuple[str, str, str]], Indexed] = {}
        # The versions that handlers acted on, by the handler and the object: later
        # calls compare with them. Also the versions of calls that have not ended.
        self._acted: dict[tuple[str, str], Body] = {}
        self._begun: dict[int, tuple[str, Body]] = {}
        self._last = Now(0.0, 0.0)

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Remember one step; forget steps that are too old or too large in sum."""
        step = Step(now, input, commands)
        size = size_of(input, commands)
        self._steps.append((step, size))
        self._size += size
        steps = self._steps
        while self._size > self._limit or now.mono - steps[0][0].now.mono > self._age:
            if len(steps) == 1:
                break
            self._drop()

    def _drop(self) -> None:
        step, size = self._steps.popleft()
        self._size -= size
        self.dropped += 1
        self._last = step.now
        match step.input:
            case Started():
                self._indexed.clear()
                self._begun.clear()
            case ListItem(body=body):
                self._bodies[body.uid] = body
            case WatchEvent(type="DELETED", body=body):
                self._forget(body.uid)
            case WatchEvent(body=body):
                self._bodies[body.uid] = body
            case Answered(id=number, outcome=Applied(object=dict() as found)):
                self._remember(number, step, found)
            case _:
                pass
        for command in step.commands:
            self._note(step, command)

    def _note(self, step: Step, command: Command) -> None:
        """Remember the parts of a command that later steps refer to."""
        match command:
            case Fetch(id=number):
                self._fetches[number] = Step(step.now, Bookmark(0, ""), (command,))
            case Indexed(index=index, object=about):
                self._indexed[index, about] = command
            case Began(attempt=number, handler=handler, object=shown):
                body = self._bodies.get(shown.uid) if shown else None
                if body is not None:
                    self._begun[number] = handler, body
            case Ended(attempt=number, failure=None) if number in self._begun:
                handler, body = self._begun.pop(number)
                self._acted[handler, body.uid] = body
            case Ended(attempt=number):
                self._begun.pop(number, None)
            case _:
                pass

    def _forget(self, uid: str) -> None:
        self._bodies.pop(uid, None)
        for each in [each for each in self._acted if each[1] == uid]:
            del self._acted[each]

    def _remember(self, number: int, step: Step, found: dict[str, Any]) -> None:
        asked = self._fetches.pop(number, None)
        if asked is not None:
            path = asked.commands[0].path  # type: ignore[union-attr]
            self._served[path] = asked, step._replace(commands=())
        elif isinstance(found.get("metadata"), dict):
            body = Body(found)
            if body.uid in self._bodies:
                self._bodies[body.uid] = body

    def steps(self) -> Iterator[Step]:
        """Everything remembered, as steps of a run; the ring may go on meanwhile."""
        now, kept = self._last, tuple(step for step, _ in self._steps)
        earlier = (*self._acted.values(), *(each for _, each in self._begun.values()))
        known = (*earlier, *self._bodies.values())
        bodies = tuple({(each.uid, each.version): each for each in known}.values())
        served = tuple(chain.from_iterable(self._served.values()))
        indexed = tuple(self._indexed.values())
        fetches = tuple(self._fetches.values())
        if not self.dropped:
            return iter(kept)
        listed = (Step(now, ListItem(0, body), ()) for body in bodies)
        index = Step(now, Bookmark(0, ""), indexed)
        return iter((*served, *fetches, *listed, index, *kept))


def size_of(input: Input, commands: Sized) -> int:
    """Estimate the memory that a step needs, in bytes."""
    return _size_of(input) + _COMMAND * len(commands)


def _size_of(input: Input) -> int:
    match input:
        case ListItem(body=body) | WatchEvent(body=body):
            return _STEP + len(body.raw)
        case LogLines(lines=lines):
            return _STEP + sum(_LINE + len(each.text) for each in lines)
        case Answered(outcome=Applied(object=dict() as found)):
            return _STEP + _PARSED * len(orjson.dumps(found))
        case _:
            return _STEP


class Failure(Struct, frozen=True):
    """A failure that a step shows.

    `why` is "failed" if a handler for the object `subject` has failed permanently. It
    is "ended" if the operator ends with an error.
    """

    why: Literal["failed", "ended"]
    subject: Subject | None = None


def failure_in(commands: Iterable[Command]) -> Failure | None:
    """The first failure that commands show."""
    return next(filter(None, map(_failure, commands)), None)


def _failure(command: Command) -> Failure | None:
    match command:
        case Say(ended=ended) if ended is not None:
            is_final = ended.result in ("error", "timeout") and not ended.retried
            return Failure("failed", command.subject) if is_final else None
        case Exit(status=status) if status:
            return Failure("ended")
        case _:
            return None
