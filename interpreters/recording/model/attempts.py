"""The attempts of a recording: what each was shown, asked for, was given, and decided.

They are folded from the records, in JSON: nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from immutables import Map

from fnop.core.api.catalogue import Catalogue
from fnop.core.objects.store.indexing import Index
from fnop.core.seam.traces import Seen, Version
from fnop.core.values.body import Body, Key
from fnop.core.values.now import Now
from fnop.effects.values import read_only
from fnop.effects.wire import from_wire
from fnop.interpreters.recording.model.served import Served
from fnop.interpreters.recording.model.times import moment
from fnop.interpreters.recording.model.versions import Versions

__all__ = ["Attempt", "Attempts", "Exchange"]

Json = Mapping[str, Any]


class Exchange(NamedTuple):
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


@dataclass
class Attempt:
    """One attempt, as it was recorded.

    `step` is the number of the step in which it began, from 1. `desires` is the trace
    of the children that a reconcile handler desires. `end` is the trace of its plan or
    its failure. Each is None if the recording lacks it, for example after a crash.
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
    def where(self) -> str:
        """The object as people name it: `default/web`."""
        return "" if self.object is None else self.object.where


class Attempts:
    """The fold: takes records in, returns finished attempts."""

    def __init__(self, versions: Versions | None = None) -> None:
        self.versions = versions or Versions()
        self.open: dict[int, Attempt] = {}
        self.steps = 0
        self._indices: Map[str, Any] = Map()
        self._unindexed: set[str] = set()
        # Whether steps of this process are missing.
        self._missed = False
        self._served = Served()

    @property
    def catalogue(self) -> Catalogue:
        """The kinds that the API server has served, as far as they are recorded."""
        return self._served.catalogue

    def add(self, record: Json) -> list[Attempt]:
        """Take one record in; return the attempts that it ended or cut off.

        Raises `ValueError`, `KeyError` or `TypeError` for anything that is not a
        record.
        """
        if "gap" in record:
            self._note_missing(record["gap"])
            return []
        input, step = record["input"], self.steps + 1
        self.steps = step
        now, found = moment(record), []
        if input["in"] == "Started" and step > 1:
            found += self.cut_off()
        self.versions.learn(input)
        self._served.add(record)
        for command in record["commands"]:
            ended = self._note_trace(command, input, step, now)
            if ended is not None:
                found.append(ended)
        return found

    def _note_missing(self, count: int) -> None:
        """Note that `count` steps are missing: their content is unknown."""
        self.steps += count
        for each in self.open.values():
            each.unknown = each.unknown or f"{count} steps are missing after its begin"
        self._missed = True

    def cut_off(self) -> list[Attempt]:
        """The attempts of a process that has ended; its indices are dropped, too."""
        found = [*self.open.values()]
        self.open.clear()
        self._indices, self._unindexed, self._missed = Map(), set(), False
        return found

    def _note_trace(
        self, command: Json, input: Json, step: int, now: Now
    ) -> Attempt | None:
        """Note a trace; return the attempt that it ends."""
        match command["do"]:
            case "Began":
                self._begin(command, step, now)
            case "Asked":
                if (attempt := self.open.get(command["attempt"])) is not None:
                    attempt.exchanges.append(Exchange(step, command["effect"]))
            case "Given":
                self._note_answer(command, input, now)
            case "Desires":
                if (attempt := self.open.get(command["attempt"])) is not None:
                    attempt.desires = command
            case "Ended":
                attempt = self.open.pop(command["attempt"], None)
                if attempt is not None:
                    attempt.end = command
                return attempt
            case "Indexed":
                self._index(command)
            case _:
                pass
        return None

    def _begin(self, trace: Json, step: int, now: Now) -> None:
        where = trace.get("object")
        version = None if where is None else Version(*where)
        seen = trace.get("before")
        found = Attempt(
            trace["attempt"],
            trace["handler"],
            step,
            now,
            version,
            None if version is None else self.versions.find(version),
            trace.get("reason"),
            trace.get("retry", 0),
            trace.get("started", 0.0),
            None if seen is None else Seen(*seen),
            read_only(trace.get("memo") or {}),
            indices=self._indices,
            unindexed=frozenset(self._unindexed),
            missed=self._missed,
        )
        if trace.get("line") is not None:
            container, time, text = trace["line"]
            found.line = str(container), int(time), str(text)
            first = str(text).partition("\n")[0]
            found.reason = f"a line of {container}: {first:.100}"
        if version is not None and found.body is None:
            found.unknown = _words_for_unshown(version)
        for each in trace.get("children", ()):
            child = Version(*each)
            body = self.versions.find(child)
            if body is None:
                found.unknown = _words_for_unshown(child)
            else:
                found.children[Key(child.resource, child.namespace, child.name)] = body
        self.open[found.number] = found

    def _note_answer(self, trace: Json, input: Json, now: Now) -> None:
        attempt = self.open.get(trace["attempt"])
        if attempt is None or not attempt.exchanges:
            return
        outcome: Any = input.get("outcome")
        if "outcome" in trace:
            outcome = trace["outcome"]
        elif "version" in trace:
            outcome = self._answer_in_version(attempt, trace["version"])
        answer = None if outcome is None else from_wire(outcome)
        last = attempt.exchanges[-1]
        stopped = trace.get("stopped") or ""
        attempt.exchanges[-1] = last._replace(
            outcome=answer, wall=now.wall, stopped=stopped, answered=self.steps
        )

    def _answer_in_version(self, attempt: Attempt, version: str) -> Json | None:
        if attempt.object is None:
            return None
        shown = attempt.object._replace(version=version)
        body = self.versions.find(shown)
        if body is None:
            attempt.unknown = _words_for_unshown(shown)
            return None
        return {"is": "Applied", "object": body.data}

    def _index(self, trace: Json) -> None:
        name, key = trace["index"], Key(*trace["object"])
        if trace.get("unknown"):
            self._unindexed.add(name)
            return
        values = {
            _hashable_key(each): read_only(value)
            for each, value in trace.get("values", ())
        }
        index = self._indices.get(name, Index()).with_object(key, values)
        self._indices = self._indices.set(name, index)


def _words_for_unshown(version: Version) -> str:
    return (
        f"{version.resource} {version.where} in version {version.version} is not in "
        "the recording"
    )


def _hashable_key(key: Any) -> Any:
    """A key of an index: JSON has lists instead of tuples."""
    return tuple(map(_hashable_key, key)) if isinstance(key, list) else key
