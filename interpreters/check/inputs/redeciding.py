"""Decisions that are made again, with other inputs: what would a handler do then?

A handler that is not impure decides by its arguments and by the answers to its
requests. So an attempt of a run can be decided again without a cluster. It can get any
possible input: a spec that a user edits, an object that is gone.
"""

from __future__ import annotations

import io
import logging
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from threading import current_thread, main_thread
from types import CodeType, FrameType
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import (
    Ending,
    Journal,
    JournalEntry,
    LiveCache,
    advance,
)
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import (
    Adopt,
    Answer,
    Applied,
    Apply,
    Create,
    Effect,
    Get,
    List,
    Missing,
    Outcome,
)
from fnop.effects.structs import replace
from fnop.effects.values import canonical, read_only
from fnop.effects.wire import digest_of, encode
from fnop.interpreters.recording.comparison.shadow import end_to_wire
from fnop.interpreters.runtime.clock import ProcessClock
from fnop.interpreters.runtime.guard import Guard

__all__ = [
    "ABSENT",
    "OWN_ERRORS",
    "Asked",
    "Attempt",
    "Decision",
    "Inputs",
    "Path",
    "code_of",
    "quietly",
]

# A decision takes at most this number of answers: a daemon has no end.
ANSWERS_MAX = 12
# ... and this much processor time: other inputs may make a loop endless.
SECONDS_MAX = 1.0
# The errors of code that does not handle a case.
OWN_ERRORS = (
    AttributeError,
    ArithmeticError,
    AssertionError,
    LookupError,
    NameError,
    TypeError,
    ValueError,
)

# It begins with `object`, or with `answers` and a number.
Path = tuple[str | int, ...]


class _Absent:
    """The mark of a missing value."""


ABSENT: Any = _Absent()


class Asked(Struct, frozen=True):
    """An effect that an attempt has awaited, and the answer."""

    effect: Effect
    outcome: Outcome
    wall: float


class Inputs(Struct, frozen=True):
    """The inputs of a decision: the object, the answers in their order, the number.

    The decision is made `later` by this number of seconds.
    """

    object: Any
    answers: tuple[Any, ...]
    retry: int = 0
    later: float = 0.0

    def at(self, path: Path) -> Any:
        """The value at a path; ABSENT if there is no value."""
        found: Any = self.object if path[0] == "object" else self.answers
        for key in path[1:]:
            try:
                found = found[key]
            except (LookupError, TypeError):
                return ABSENT
        return found

    def with_(self, path: Path, value: Any) -> Inputs:
        """The inputs with another value at a path; ABSENT removes it."""
        if path[0] == "object":
            return replace(self, object=_whole_with_value(self.object, path[1:], value))
        number = int(path[1])
        answers = [*self.answers]
        answers[number] = _whole_with_value(answers[number], path[2:], value)
        return replace(self, answers=tuple(answers))


def _whole_with_value(whole: Any, path: Path, value: Any) -> Any:
    """A JSON value with another one at a path, or without it.

    >>> _whole_with_value({"a": [1, 2], "b": 3}, ("a", 0), 5)
    {'a': [5, 2], 'b': 3}
    >>> _whole_with_value({"a": [1, 2], "b": 3}, ("a", 0), ABSENT)
    {'a': [2], 'b': 3}
    """
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(whole, list) and isinstance(key, int) and key < len(whole):
        inner = _whole_with_value(whole[key], rest, value)
        middle = [] if inner is ABSENT else [inner]
        return [*whole[:key], *middle, *whole[key + 1 :]]
    if isinstance(whole, dict) and isinstance(key, str) and (key in whole or not rest):
        inner = _whole_with_value(whole.get(key), rest, value)
        found = {**whole, key: inner}
        if inner is ABSENT:
            del found[key]
        return found
    return whole


class Decision(Struct, frozen=True):
    """The decision: the requests and log lines, as texts, and its end.

    `error` is an error of its own with which the author's code has failed.
    """

    texts: tuple[bytes, ...]
    end: Ending | None = None
    error: BaseException | None = None

    def differs(self, other: Decision) -> bool:
        """Whether the author decides differently; errors of the code do not count."""
        if self.error is None and other.error is None:
            return self.texts != other.texts
        mine = self.texts if self.error is None else self.texts[:-1]
        yours = other.texts if other.error is None else other.texts[:-1]
        return any(one != two for one, two in zip(mine, yours, strict=False))


class Attempt:
    """An attempt of a run, which can be decided again.

    `asked` are the effects it has awaited, without those that keep the children of a
    level; `inputs` are its original inputs. With other inputs it may make requests
    whose answer another attempt knows: `answers` are by the effects.
    """

    def __init__(
        self,
        situation: Situation,
        journal: Journal = (),
        answers: Mapping[bytes, Outcome] = {},
    ) -> None:
        keeping = situation.keeping
        if keeping is not None:
            situation = replace(situation, keeping=replace(keeping, keeper=None))
        self.situation = situation
        self.asked: list[Asked] = []
        self._answers = answers
        self._live = LiveCache()
        self._ask(journal[:ANSWERS_MAX])
        self._known = [encode(each.effect) for each in self.asked]
        body = situation.body
        # Read-only: its views need no copies.
        found = None if body is None else read_only(body.data)
        given = tuple(read_only(_value_of(each.outcome)) for each in self.asked)
        self.inputs = Inputs(found, given, situation.retry)

    def _ask(self, journal: Journal) -> None:
        """Find the effects behind the answers of a journal."""
        taken: Journal = ()
        try:
            for entry in journal:
                found = advance(self.situation, taken, self._live, _KEY).asks
                if found is None or digest_of(found) != entry.digest:
                    break  # the rest keeps the children
                self.asked.append(Asked(found, entry.outcome, entry.wall))
                taken = (*taken, entry)
        finally:
            self._live.clear()

    @property
    def handler(self) -> Handler:
        """The handler that is called."""
        return self.situation.handler

    def with_(self, inputs: Inputs) -> Situation:
        """The facts at the beginning, with these inputs."""
        now = self.situation.now
        moved = Now(now.wall + inputs.later, now.mono + inputs.later)
        situation = replace(self.situation, retry=inputs.retry, now=moved)
        if situation.body is not None:
            situation = replace(situation, body=Body(inputs.object))
        if situation.request is not None:
            request = situation.request.about(inputs.object)
            situation = replace(situation, request=request)
        return situation

    def decided(self, inputs: Inputs) -> Decision:
        """The decision with these inputs."""
        texts: list[bytes] = []
        _PATIENCE.begin()
        try:
            end = self._run_attempt(inputs, texts)
        except _Endless as endless:
            return Decision((*texts, b""), None, endless)
        finally:
            _PATIENCE.end()
            self._live.clear()
        if end is None:
            return Decision(tuple(texts))
        texts.append(canonical(end_to_wire(end)))
        failure = None if end.failure is None else end.failure.exception
        error = failure if isinstance(failure, (*OWN_ERRORS, _Endless)) else None
        return Decision(tuple(texts), end, error)

    def _run_attempt(self, inputs: Inputs, texts: list[bytes]) -> Ending | None:
        """The end, if it reaches one; log lines and requests go to `texts`."""
        situation = self.with_(inputs)
        journal: Journal = ()
        left = [*range(len(self.asked))]
        while True:
            found = advance(situation, journal, self._live, _KEY)
            texts += [each.message.encode() for each in found.lines]
            if found.asks is None:
                return found.end
            texts.append(encode(found.asks))
            entry = self._journal_entry(found.asks, texts[-1], inputs, left)
            if entry is None or len(journal) >= ANSWERS_MAX:
                return None
            journal = (*journal, entry)

    def _journal_entry(
        self, effect: Effect, text: bytes, inputs: Inputs, left: list[int]
    ) -> JournalEntry | None:
        """The answer to an effect: the original one, or a likely one."""
        wall = self.situation.now.wall + inputs.later
        number = next((each for each in left if self._known[each] == text), None)
        if number is None:
            outcome = self._answers.get(text) or _likely_outcome(effect)
        else:
            left.remove(number)
            asked = self.asked[number]
            outcome = _outcome_with_value(asked, inputs.answers[number])
            wall = asked.wall + inputs.later
        return (
            None if outcome is None else JournalEntry(digest_of(effect), outcome, wall)
        )


_KEY = ("again",)


class _Endless(BaseException):
    """A decision takes too long: with these inputs it may never end."""


class _Patience:
    """Ends a decision that takes too long, by an alarm on processor time.

    Python delivers alarms only to the main thread: other threads are not stopped.
    Python reports and drops exceptions in a destructor, or in a callback of the garbage
    collector. The alarm's next ring then ends the decision.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._clock = ProcessClock()

    def begin(self) -> None:
        self._began = self._clock.busy()

    def end(self) -> None:
        self._began = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        began = self._began
        if began is not None and self._clock.busy() - began >= SECONDS_MAX:
            raise _Endless

    @contextmanager
    def alarmed(self) -> Iterator[None]:
        """Let the alarm ring again and again."""
        if current_thread() is not main_thread() or not hasattr(signal, "setitimer"):
            yield
            return
        before = signal.signal(signal.SIGVTALRM, self)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_MAX, SECONDS_MAX)
        reported = sys.unraisablehook

        def report(dropped: sys.UnraisableHookArgs) -> None:
            if dropped.exc_type is not _Endless:
                reported(dropped)

        sys.unraisablehook = report
        try:
            yield
        finally:
            sys.unraisablehook = reported
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)


_PATIENCE = _Patience()


@contextmanager
def quietly() -> Iterator[None]:
    """Keep the author's code from acting or printing: it is called very often."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with (
            Guard(refuses=True),
            redirect_stdout(_NOWHERE),
            redirect_stderr(_NOWHERE),
            _PATIENCE.alarmed(),
        ):
            yield
    finally:
        logging.disable(before)


class _Nowhere(io.TextIOBase):
    """A file that keeps nothing."""

    def write(self, text: str) -> int:
        """Drop the text."""
        return len(text)


_NOWHERE = _Nowhere()


def code_of(function: Any) -> CodeType | None:
    """The code of an author's function; None for other callables."""
    return getattr(function, "__code__", None)


def _value_of(outcome: Outcome) -> Any:
    match outcome:
        case Applied(object=found) | Answer(value=found):
            return found
        case _:
            return None


def _outcome_with_value(asked: Asked, value: Any) -> Outcome:
    """The outcome with another value, if it has one."""
    outcome = asked.outcome
    match outcome:
        case Applied() if isinstance(asked.effect, Get) and value is None:
            return Missing("it is not there")
        case Applied(object=found) if found is not None:
            return Applied(value)
        case Missing() if isinstance(asked.effect, Get) and value is not None:
            return Applied(value)
        case Answer():
            return Answer(value)
        case _:
            return outcome


def _likely_outcome(effect: Effect) -> Outcome | None:
    """A likely answer to a request that no attempt has made."""
    match effect:
        case Get():
            return Missing("it is not there")
        case List():
            return Answer([])
        case Create(manifest=made) | Apply(manifest=made) | Adopt(child=made):
            return Applied(made)
        case _:
            return None
