"""The only loop: inputs in, `step`, commands out, for any `Api`.

It makes no decisions. Each request is a task whose answer comes back as an input; each
stream is a task that turns lines into inputs.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from fnop.core.admission.configurations import asked_by, groups_of
from fnop.core.admission.deadlines import crowded, late
from fnop.core.admission.decisions import Decision, denied_writes
from fnop.core.api.reviews import request_in
from fnop.core.handlers.declare.webhook import TIMEOUT_SECONDS
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import State
from fnop.core.seam.commands import (
    Alarm,
    Command,
    Exit,
    Interrupt,
    Perform,
    Ready,
    Refresh,
    Say,
)
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    EventPosted,
    Started,
    StopRequested,
)
from fnop.core.seam.traces import Trace
from fnop.core.state.lifecycle import REPEAT_SECONDS
from fnop.core.values.errors import described
from fnop.effects import Answer, Call, Log, Outcome, Random, outcomes
from fnop.effects.structs import replace
from fnop.interpreters.runtime.clock import Clock, SystemClock
from fnop.interpreters.runtime.inbox import Inbox, Tasks
from fnop.interpreters.runtime.machine import Machine, Observer
from fnop.interpreters.runtime.outside import OutsideCalls, end_calls, stop_calls
from fnop.interpreters.runtime.protocol import (
    Api,
)
from fnop.interpreters.runtime.reads import Reads, ask
from fnop.interpreters.runtime.requests import (
    request_for,
)
from fnop.interpreters.runtime.watchdog import (
    AWAIT,
    OUTSIDE,
    SLOW_STEP_SECONDS,
    Watchdog,
    slow_step,
)

__all__ = ["Companion", "Runner"]

# The most inputs that are taken before the transport gets a turn.
_BATCH = 32


class Companion(Protocol):
    """A part that needs the runner until its own end."""

    async def end(self) -> None:
        """End; the runner still answers meanwhile."""
        ...


class Runner:
    """One operator on one API, until it exits."""

    def __init__(
        self,
        program: Program,
        api: Api,
        *,
        seed: str,
        resolve: Callable[[str], Callable[..., Any]],
        random: Callable[[int], bytes],
        clock: Clock | None = None,
        observers: Iterable[Observer] = (),
        on_say: Callable[[Say], None] | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._machine = Machine(program, observers, refuses=False)
        self._api = api
        self._seed = seed
        self._random = random
        self._clock = clock or SystemClock()
        self._on_say = on_say or (lambda say: None)
        self._inbox = Inbox()
        self._tasks = Tasks()
        self._reads = Reads(api, program, self._clock, self._inbox, self._tasks)
        self._alarm: asyncio.TimerHandle | None = None
        calls = partial(
            OutsideCalls,
            resolve,
            self._log_line,
            self._turn,
            lambda: self._machine.settings.call_threads,
            executor,
        )
        self._calls = calls()
        # Reviews have a deadline, so they do not wait for calls of handlers.
        self._review_calls = calls()
        self._watchdog: Watchdog | None = None
        self._exit: Exit | None = None
        self.ready = asyncio.Event()
        # The user that the operator writes as, if known.
        self.account = ""
        # Ends before the runner does.
        self.companion: Companion | None = None
        self._groups = groups_of(program.handlers)
        # The number of the last call for a review.
        self._reviews = 0
        # The time (monotonic) of the first request to end; `_hurry` is set by a
        # repeated one.
        self._asked: float | None = None
        self._hurry = asyncio.Event()

    @property
    def state(self) -> State:
        """Everything that the operator knows at this moment."""
        return self._machine.state

    def stop(self, reason: str) -> None:
        """Ask the operator to end, gracefully; asked again, it ends at once."""
        now = self._clock.now().mono
        if self._asked is None:
            self._asked = now
        elif now >= self._asked + REPEAT_SECONDS:
            self._hurry.set()
        self._inbox.put(StopRequested(reason))

    def post(self, handler: str, manifest: Mapping[str, Any]) -> None:
        """Create an Event for the code of a handler that runs outside.

        `manifest` is as in `fnop.core.seam.inputs.EventPosted`.
        """
        self._inbox.put(EventPosted(handler, manifest))

    async def run(self) -> Exit:
        """Run until the operator ends; return the reason."""
        self._inbox.put(Started(self._seed))
        watchdog = self._watchdog = Watchdog(self._log_warning)
        try:
            while self._exit is None:
                await self._inbox.wait()
                await self._drain(watchdog)
        finally:
            try:
                await self._end_companion()
                await self._close()
            finally:
                watchdog.close()
        return self._exit

    async def _end_companion(self) -> None:
        """Let the companion end; after a repeated stop request, do not wait for it."""
        if self.companion is None:
            return
        both = (
            asyncio.create_task(self.companion.end()),
            asyncio.create_task(self._hurry.wait()),
        )
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
            await asyncio.wait(both)

    async def review(
        self,
        body: Any,
        *,
        webhook: str | None = None,
        headers: Mapping[str, str] | None = None,
        sslpeer: Mapping[str, Any] | None = None,
        seconds: float = TIMEOUT_SECONDS,
    ) -> Decision:
        """Decide about the write in an AdmissionReview, next to the work under way.

        `webhook` is the name of a group of handlers, or the id of one; without it all
        are asked. What a handler still waits for after `seconds` is given up: then its
        failure policy decides. Raises `MalformedReview`, and `UnknownWebhook` for a
        webhook that does not exist.
        """
        request = request_in(body, headers or {}, sslpeer or {})
        asks = asked_by(self._groups, webhook) if webhook is not None else frozenset()
        end = self._clock.now().mono + seconds
        conversation = self._machine.review(
            self._clock.now(), request, asks, self.account
        )
        who = f"the review of {request.plural} {request.label}"
        try:
            with self._watch_turn(who, OUTSIDE):
                command = next(conversation)
            while True:
                outcome = await self._outcome_in_time(command, end, seconds)
                with self._watch_turn(who, OUTSIDE):
                    command = conversation.send((self._clock.now(), outcome))
        except StopIteration as stop:
            decision: Decision = stop.value
        for line in decision.lines:
            self._on_say(line)
        for denied in denied_writes(decision, self._machine.settings):
            self._inbox.put(denied)
        return decision

    async def _outcome_in_time(
        self, command: Perform, end: float, seconds: float
    ) -> Outcome:
        """The outcome of a command, which is given up after the `end`."""
        left = end - self._clock.now().mono
        too_late = outcomes.Unreachable(late(command.handler, seconds))
        if left <= 0:
            return too_late
        effect, outside = command.effect, None
        if isinstance(effect, Call):
            # Numbers below zero do not belong to a step.
            self._reviews -= 1
            command = replace(command, id=self._reviews)
            outside = self._review_calls.expect(command.id, effect)
        try:
            async with asyncio.timeout(left):
                return await self._answer(command, self._review_calls)
        except TimeoutError:
            if outside is None or outside.has_begun:
                return too_late
            busy = self._review_calls.threads.busy
            return outcomes.Unreachable(crowded(command.handler, seconds, busy))
        finally:
            if outside is not None:
                self._review_calls.forget(command.id)
                outside.cancel()

    async def _drain(self, watchdog: Watchdog) -> None:
        taken = 0
        while self._inbox and self._exit is None:
            now = self._clock.now()
            watchdog.begin()
            commands = self._machine.feed(now, self._inbox.take())
            took = watchdog.end(SLOW_STEP_SECONDS)
            for act in self._machine.acts():
                self._on_say(Say("warning", act.warning, handler=act.handler))
            if took > SLOW_STEP_SECONDS:
                self._log_warning(slow_step(took, commands))
            for command in commands:
                self._perform(command)
            taken += 1
            if taken % _BATCH == 0 or took > SLOW_STEP_SECONDS:
                await asyncio.sleep(0)

    @contextmanager
    def _turn(self, command: Perform) -> Iterator[None]:
        """Run one turn of an author's coroutine; other coroutines wait meanwhile."""
        about = "" if command.subject is None else f" of {command.subject.label}"
        with self._watch_turn(f"{command.handler}{about}"):
            yield

    @contextmanager
    def _watch_turn(self, who: str, remedy: str = AWAIT) -> Iterator[None]:
        """Run a turn of the author's code, and name it if it blocks the operator."""
        watchdog = self._watchdog
        if watchdog is None:  # a test takes its steps one by one, without a loop
            yield
            return
        watchdog.begin(who)
        try:
            yield
        finally:
            took = watchdog.end(SLOW_STEP_SECONDS)
            if took > SLOW_STEP_SECONDS:
                self._log_warning(
                    f"{who} blocked the operator for {took:.1f} s; {remedy}"
                )

    def _log_warning(self, text: str) -> None:
        self._on_say(Say("warning", text))

    def _perform(self, command: Command) -> None:
        match command:
            case Perform(id, effect):
                if isinstance(effect, Call):
                    self._calls.expect(id, effect)
                self._tasks.spawn(self._perform_effect(command))
            case Interrupt() | Refresh():
                self._calls.tell(command)
            case Say():
                self._on_say(command)
            case Alarm(at):
                self._set_alarm(at)
            case Ready():
                self.ready.set()
            case Exit():
                self._exit = command
            case Trace():
                pass  # for recorders
            case read:
                self._reads.execute(read)

    def _set_alarm(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        delay = at - self._clock.now().mono
        if delay <= 0:
            self._inbox.put(AlarmRang())
        else:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(delay, self._inbox.put, AlarmRang())

    # --------------------------------------------------------------- effects

    async def _perform_effect(self, command: Perform) -> None:
        try:
            outcome = await self._answer(command, self._calls)
        finally:
            self._calls.forget(command.id)
        self._inbox.put(Answered(command.id, outcome))

    async def _answer(self, command: Perform, calls: OutsideCalls) -> Outcome:
        """Return exactly one outcome for each effect, whatever happens on the way."""
        effect = command.effect
        try:
            match effect:
                case Call():
                    before = command.before
                    if before is not None and self._clock.now().mono >= before:
                        return outcomes.Unreachable("not begun: the lease has ended")
                    return await calls.outcome(command, effect)
                case Random(size=size):
                    return Answer(self._random(size).hex())
                case _:
                    manager = self._machine.settings.marker
                    request = request_for(command, manager)
                    before, urgent = command.before, command.urgent
                    if before is not None or urgent:
                        request = replace(request, before=before, urgent=urgent)
                    return await ask(self._api, request, effect)
        except Exception as problem:
            return outcomes.Unknown(described(problem))

    def _log_line(self, command: Perform, line: Log) -> None:
        """Show a log line of an impure handler at once."""
        say = Say(line.level, line.message, command.subject, command.handler)
        self._on_say(replace(say, exception=line.exception))

    async def _close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        under_way = (*self._calls.under_way, *self._review_calls.under_way)
        stop_calls(under_way)
        await self._tasks.cancel()
        await end_calls(under_way, self._hurry, self._log_warning)
        self._calls.threads.close()
        self._review_calls.threads.close()
        self._machine.close()
