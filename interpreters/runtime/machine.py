"""The operator as a machine that takes inputs: the only place that calls `step`."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Collection, Iterable
from contextlib import nullcontext
from threading import get_ident
from types import FrameType, TracebackType
from typing import Any, Protocol, runtime_checkable

from fnop.core.admission.decisions import Decision
from fnop.core.admission.reviewing import Review, review, reviewer_of
from fnop.core.admission.wire import decision_to_wire, review_to_wire
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Journal, LiveCache
from fnop.core.operator.step import NEW, State, step
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input, ListItem, WatchEvent
from fnop.core.state.turn import settings_of
from fnop.core.values.body import Key, keep_parsed
from fnop.core.values.now import Now
from fnop.effects import Outcome
from fnop.interpreters.runtime.guard import GUARDED, Act, Guard
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.runtime.packings import PLAIN_MAX, Packings
from fnop.interpreters.runtime.unawaited import watch_coroutines

__all__ = ["Eye", "Machine", "Observer", "Onlooker"]

Json = dict[str, Any]


class Observer(Protocol):
    """Observes every step: a recorder, a log, a meter. It changes nothing."""

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Observe a step that was taken; its commands are not performed yet."""
        ...


@runtime_checkable
class Onlooker(Protocol):
    """An observer that also sees reviews, which happen outside the steps.

    A review is `behind` by the steps that were taken since it began.
    """

    def reviewed(self, now: Now, review: Json, decision: Json) -> None:
        """Observe a decided review; both are JSON (`fnop.core.admission.wire`)."""
        ...


class Eye(Protocol):
    """Watches the actions of the author's code within steps, in the step's thread."""

    def open(self) -> None:
        """Note that a step begins."""
        ...

    def shut(self) -> None:
        """Note that the step has ended."""
        ...

    def acted(self, deed: str, frame: FrameType | None) -> None:
        """Note an action that the guard has noticed and may refuse."""
        ...

    def drove(self, situation: Situation, journal: Journal) -> None:
        """Note that a handler is driven to the end of its journal."""
        ...


class Machine:
    """A program with its present state.

    `refuses` forbids the author's code to act on the world within a step; otherwise
    fnop only notices it. If the settings turn the guard off, it does neither. An `eye`
    watches the code in other respects, as `fnop check` does
    (`fnop.interpreters.check.inputs.purity`); it can be set between two steps.
    """

    def __init__(
        self,
        program: Program,
        observers: Iterable[Observer] = (),
        *,
        refuses: bool = True,
        eye: Eye | None = None,
    ) -> None:
        watch_coroutines()
        self.program = program
        self.state: State = NEW
        # Conversations that wait for an answer: a cache, not a part of the state.
        self.live = LiveCache()
        self._observers = tuple(observers)
        self._steps = 0
        self._packings = Packings()
        self.eye = eye
        self._guard: Guard | None = None
        if program.settings.guard:
            self._guard = _guard_of(self, refuses=refuses)

    def fork(self) -> Machine:
        """A second machine in the same state, without observers and without an eye.

        Conversations that continue are driven again from their journals.
        """
        twin = Machine.__new__(Machine)
        twin.program, twin.state = self.program, self.state
        twin.live, twin._observers, twin.eye = LiveCache(), (), None
        twin._steps, twin._packings = self._steps, Packings()
        twin._guard = None
        if self._guard is not None:
            twin._guard = _guard_of(twin, refuses=self._guard.refuses)
        return twin

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return settings_of(self.program, self.state.lifecycle)

    def feed(self, now: Now, input: Input) -> tuple[Command, ...]:
        """Take one input; return the commands to perform.

        Handlers run with no event loop visible, so that starting a task in one fails
        the same way everywhere.
        """
        eye = self.eye
        self._steps += 1
        self.live.hears = None if eye is None else eye.drove
        with _Turn(self):
            self.state, commands = step(self.program, self.state, now, input, self.live)
        for observer in self._observers:
            observer.observe(now, input, commands)
        objects = self.state.objects
        if isinstance(input, (ListItem, WatchEvent)):
            self._forget_parsed(input)
        if len(objects.records) > PLAIN_MAX:
            self._packings.pack_rested(objects, now.mono)
        return commands

    def _forget_parsed(self, input: ListItem | WatchEvent) -> None:
        """Keep only the text of an object, once all immediate readers are done.

        A changed object is read again soon, for example with the answer to a write.
        """
        body, stream = input.body, self.state.streams.numbers.get(input.stream)
        length = body.text_length
        if len(self.state.objects.records) > PLAIN_MAX and stream and length:
            key = Key(stream[0], body.namespace or "", body.name)
            self._packings.enqueue(key)
        if isinstance(input, WatchEvent) and length:
            keep_parsed(body, length)
        else:
            body.forget()

    def reviews(self, request: Request) -> bool:
        """Whether an admission handler covers the kind of a request."""
        reviewer = reviewer_of(self.program, self.state)
        return any(
            reviewer.is_about(each, request)
            for each in self.program.handlers
            if each.role in ADMISSION
        )

    def review(
        self, now: Now, request: Request, asks: Collection[str] = (), account: str = ""
    ) -> Review:
        """Decide about a write, outside all steps, from the present state.

        This is a conversation, like `fnop.core.admission.reviewing.review`.
        """
        reviewer = reviewer_of(self.program, self.state, account)
        conversation = review(reviewer, request, now, asks)
        outcome: tuple[Now, Outcome] | None = None
        answers: list[tuple[Now, Outcome]] = []
        begun = self._steps
        while True:
            try:
                with _Turn(self):
                    asked = (
                        next(conversation)
                        if outcome is None
                        else conversation.send(outcome)
                    )
            except StopIteration as stop:
                decision: Decision = stop.value
                for each in self._observers:
                    if isinstance(each, Onlooker):
                        wire = review_to_wire(request, asks, account, answers)
                        wire["behind"] = self._steps - begun
                        each.reviewed(now, wire, decision_to_wire(decision))
                return decision
            outcome = yield asked
            answers.append(outcome)

    def acts(self) -> list[Act]:
        """The actions of the author's code on the world since the last call."""
        guard = self._guard
        return guard.news() if guard is not None and guard.acts else []

    def close(self) -> None:
        """Close the conversations that are still open."""
        if not self.live.drives:
            return
        eye = self.eye
        with interruptible(), self._guard or nullcontext():
            if eye is not None:
                eye.open()
            try:
                self.live.clear()
            finally:
                if eye is not None:
                    eye.shut()


class _Turn:
    """A turn of the author's code: hide the event loop, notice actions."""

    __slots__ = ("_eye", "_guard", "_interruptible", "_loop", "_outer", "_thread")

    def __init__(self, machine: Machine) -> None:
        self._eye, self._guard = machine.eye, machine._guard
        self._interruptible = interruptible()

    def __enter__(self) -> None:
        self._loop, self._thread = asyncio._get_running_loop(), get_ident()
        asyncio._set_running_loop(None)
        self._outer = GUARDED.get(self._thread)
        if self._guard is not None:
            GUARDED[self._thread] = self._guard
        if self._eye is not None:
            self._eye.open()
        self._interruptible.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        steps: TracebackType | None,
    ) -> None:
        try:
            self._interruptible.__exit__(kind, problem, steps)
        finally:
            if self._eye is not None:
                self._eye.shut()
            GUARDED.pop(self._thread, None)
            if self._outer is not None:
                GUARDED[self._thread] = self._outer
            asyncio._set_running_loop(self._loop)


def _guard_of(machine: Machine, *, refuses: bool) -> Guard:
    """The guard of a machine: on as long as the settings in force want one.

    It keeps no reference to the machine, so that an unused machine is freed at once,
    with all its states.
    """
    found = weakref.ref(machine)

    def is_on() -> bool:
        machine = found()
        return machine is None or machine.settings.guard

    def tell(deed: str, frame: FrameType | None) -> None:
        machine = found()
        if machine is not None and machine.eye is not None:
            machine.eye.acted(deed, frame)

    return Guard(refuses=refuses, is_on=is_on, tells=tell)
