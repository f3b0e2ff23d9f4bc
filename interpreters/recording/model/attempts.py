"""The attempts of a recording: what each was shown, asked for, was given, and decided.

They are folded from traces: nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from immutables import Map
from msgspec import Struct, field

from fnop.core.objects.store.indexing import Index
from fnop.core.seam.traces import Seen, Version
from fnop.core.values.body import Body, Key
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.effects.values import read_only
from fnop.effects.wire import from_wire
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.versions import Versions

__all__ = ["Attempt", "Attempts", "Exchange"]

Json = Mapping[str, Any]


class Exchange(Struct, frozen=True):
    """An effect that an attempt awaited, and the answer; None if no answer has come.

    `step` is the step in which it asked, and `answered` is the step that brought the
    answer.
    """

    step: int
    asked: Json
    outcome: Any = None
    wall: float = 0.0
    stopped: str = ""
    answered: int = 0


class Attempt(Struct):
    """One attempt, as it was recorded.

    `step` is the number of the step in which it began, from 1. `desires` is the
    decision of a reconcile handler about its children. `end` is its plan or its
    failure. Each is None if the recording lacks it, for example after a crash.
    `unknown` says which part of its view the recording lacks. `unindexed` are indices
    with values that are not JSON. In any index the values of some objects may be
    `missed`.
    """

    number: int
    handler: str
    step: int
    now: Now
    object: Version | None = None
    body: Body | None = None
    reason: str | None = None
    retry: int = 0
    started: float = 0.0
    before: Seen | None = None
    memo: Json = field(default_factory=dict)
    children: dict[Key, Body] = field(default_factory=dict)
    indices: Mapping[str, Any] = field(default_factory=dict)
    unindexed: frozenset[str] = frozenset()
    missed: bool = False
    exchanges: list[Exchange] = field(default_factory=list)
    desires: Json | None = None
    end: Json | None = None
    unknown: str = ""
    # The line of a log that the attempt is about: container, time in nanoseconds, text.
    line: tuple[str, int, str] | None = None

    @property
    def reason_text(self) -> str:
        """The reason that the handler was given, as in `x is called for create`."""
        return f" for {self.reason}" if self.reason else ""

    @property
    def retry_text(self) -> str:
        """The number of the attempt, if it is not the first one."""
        return f", attempt {self.retry + 1}" if self.retry else ""

    @property
    def where(self) -> str:
        """The object as people name it: `default/web`."""
        return "" if self.object is None else self.object.where


class Attempts:
    """The fold of traces to attempts.

    `open` are those that have not ended, by their numbers. `latest` are the last ones
    of each handler, by the handler and the object as people name it.
    """

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        self.open: dict[int, Attempt] = {}
        self.latest: dict[tuple[str, str], Attempt] = {}
        self._indices: Map[str, Any] = Map()
        self._unindexed: set[str] = set()
        # Whether steps of this process are missing.
        self._missed = False

    def miss(self, count: int) -> None:
        """Note that `count` steps are missing: their content is unknown."""
        for each in self.open.values():
            each.unknown = each.unknown or f"{count} steps are missing after its begin"
        self.latest.clear()
        self._missed = True

    def cut_off(self) -> list[Attempt]:
        """The attempts of a process that has ended; its indices are dropped, too."""
        found = [*self.open.values()]
        self.open.clear()
        self.latest.clear()
        self._indices, self._unindexed, self._missed = Map(), set(), False
        return found

    def note(
        self, trace: records.Command, outcome: Json | None, step: int, now: Now
    ) -> Attempt | None:
        """The attempt that a trace is about; `outcome` came with the step's input."""
        match trace:
            case records.Began():
                found: Attempt | None = self._begin(trace, step, now)
            case (
                records.Asked() | records.Given() | records.Desires() | records.Ended()
            ):
                found = self.open.get(trace.attempt)
            case records.Indexed():
                self._index(trace)
                return None
            case _:
                return None
        if found is None:
            return None
        self.latest[found.handler, found.where] = found
        match trace:
            case records.Asked(effect=effect):
                found.exchanges.append(Exchange(step, effect))
            case records.Given():
                self._note_answer(found, trace, outcome, step, now)
            case records.Desires(decision=decision):
                found.desires = decision
            case records.Ended(decision=decision):
                found.end = decision
                del self.open[trace.attempt]
            case _:
                pass
        return found

    def _begin(self, trace: records.Began, step: int, now: Now) -> Attempt:
        version = trace.object
        found = Attempt(
            trace.attempt,
            trace.handler,
            step,
            now,
            version,
            None if version is None else self.versions.find(version),
            trace.reason,
            trace.retry,
            trace.started,
            None if trace.before is None else Seen(*trace.before),
            read_only(trace.memo or {}),
            indices=self._indices,
            unindexed=frozenset(self._unindexed),
            missed=self._missed,
        )
        if trace.line is not None:
            container, time, text = trace.line
            found.line = str(container), int(time), str(text)
            first = str(text).partition("\n")[0]
            found.reason = f"a line of {container}: {first:.100}"
        if version is not None and found.body is None:
            found.unknown = _words_for_unshown(version)
        for child in trace.children:
            body = self.versions.find(child)
            if body is None:
                found.unknown = _words_for_unshown(child)
            else:
                found.children[Key(*child[:3])] = body
        self.open[found.number] = found
        return found

    def _note_answer(
        self,
        attempt: Attempt,
        trace: records.Given,
        came: Json | None,
        step: int,
        now: Now,
    ) -> None:
        if not attempt.exchanges:
            return
        outcome = self.outcome_of(attempt, trace, came)
        attempt.exchanges[-1] = replace(
            attempt.exchanges[-1],
            outcome=None if outcome is None else from_wire(outcome),
            wall=now.wall,
            stopped=trace.stopped or "",
            answered=step,
        )

    def outcome_of(
        self, attempt: Attempt, trace: records.Given, came: Json | None
    ) -> Json | None:
        """The outcome that an attempt is given, if the recording has it."""
        if trace.outcome is not None:
            return trace.outcome
        if trace.version is None:
            return came
        if attempt.object is None:
            return None
        shown = attempt.object._replace(version=trace.version)
        body = self.versions.find(shown)
        if body is None:
            attempt.unknown = _words_for_unshown(shown)
            return None
        return {"is": "Applied", "object": body.data}

    def _index(self, trace: records.Indexed) -> None:
        if trace.unknown:
            self._unindexed.add(trace.name)
            return
        values = {_hashable_key(k): read_only(value) for k, value in trace.values}
        index = self._indices.get(trace.name, Index()).with_object(trace.object, values)
        self._indices = self._indices.set(trace.name, index)


def _words_for_unshown(version: Version) -> str:
    return (
        f"{version.resource} {version.where} in version {version.version} is not in "
        "the recording"
    )


def _hashable_key(key: Any) -> Any:
    """A key of an index: JSON has lists instead of tuples."""
    return tuple(map(_hashable_key, key)) if isinstance(key, list) else key
