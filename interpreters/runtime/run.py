"""The only loop: inputs in, `step`, commands out, for any `Api`.

It makes no decisions. Each request is a task whose answer comes back as an input; each
stream is a task that turns lines into inputs.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from concurrent.futures import Executor
from contextlib import AbstractContextManager, aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from fnop.core.admission.configurations import asked_by, groups_of
from fnop.core.admission.deadlines import crowded, late
from fnop.core.admission.decisions import Decision, denied_writes
from fnop.core.api.discovery import trimmed
from fnop.core.api.reviews import request_in
from fnop.core.handlers.declare.webhook import TIMEOUT_SECONDS
from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import State
from fnop.core.seam.commands import (
    Alarm,
    CloseStream,
    Command,
    Exit,
    Fetch,
    FollowLog,
    Interrupt,
    ListPage,
    MoreLines,
    Perform,
    Ready,
    Refresh,
    Say,
    Watch,
)
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    Input,
    ListDone,
    Started,
    StopRequested,
    StreamEnded,
)
from fnop.core.seam.traces import Trace
from fnop.core.state.lifecycle import REPEAT_SECONDS
from fnop.core.streams.log_reader import LogReader
from fnop.core.values.errors import described, text_of
from fnop.effects import Answer, Call, Effect, Log, Outcome, Random, outcomes
from fnop.interpreters.runtime.answers import outcome_of, page_inputs, watch_input
from fnop.interpreters.runtime.calls import (
    CallThreads,
    LiveStopped,
    called,
    called_on_loop,
    raised,
)
from fnop.interpreters.runtime.clock import Clock, SystemClock
from fnop.interpreters.runtime.log_readers import (
    MARK_SECONDS,
    QUIET_SECONDS,
    last_inputs,
    lines_input,
    mark_input,
    reader_of,
)
from fnop.interpreters.runtime.machine import Machine, Observer
from fnop.interpreters.runtime.protocol import (
    Api,
    ApiRequest,
    Logs,
    StreamRefused,
    StreamSilent,
    StreamUndecodable,
    Unreachable,
)
from fnop.interpreters.runtime.requests import (
    fetch_request,
    list_request,
    log_request,
    request_for,
    watch_request,
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
# Watches are not read further once this number of inputs wait.
_INBOX_MAX = 256
# The seconds that coroutines cancelled at the end have to tidy up.
TIDY_SECONDS = 5.0
# The seconds within which given-up ones have to be gone.
_UNWINDING_SECONDS = 1.0


class _Outside:
    """A call under way, with its stop flag and a requested cancellation.

    It `has_begun` if it does not wait for a thread.
    """

    def __init__(self, name: str, threads: CallThreads) -> None:
        self.name = name
        self.threads = threads
        self.has_begun = False
        self.stopped = LiveStopped()
        self.running: asyncio.Future[Outcome] | None = None
        self.cancelled = False


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
        self._resolve = resolve
        self._random = random
        self._clock = clock or SystemClock()
        self._on_say = on_say or (lambda say: None)
        self._inbox: deque[Input] = deque()
        self._wake = asyncio.Event()
        # Set when watches may put more into the inbox.
        self._room = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: dict[int, asyncio.Task[None]] = {}
        # Set when the delivered lines of a log are taken in.
        self._more: dict[int, asyncio.Event] = {}
        # Calls that were requested and have not ended.
        self._outside: dict[int, _Outside] = {}
        # Called functions have threads of their own: slow ones stop nothing else.
        self._threads = CallThreads(executor)
        # Reviews have a deadline, so they do not wait for calls of handlers.
        self._review_threads = CallThreads(executor)
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
        self._put(StopRequested(reason))

    async def run(self) -> Exit:
        """Run until the operator ends; return the reason."""
        self._put(Started(self._seed))
        watchdog = self._watchdog = Watchdog(self._log_warning)
        try:
            while self._exit is None:
                await self._wake.wait()
                self._wake.clear()
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
            self._put(denied)
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
            outside = _Outside(effect.function, self._review_threads)
            self._outside[command.id] = outside
        try:
            async with asyncio.timeout(left):
                return await self._answer(command)
        except TimeoutError:
            if outside is None or outside.has_begun:
                return too_late
            busy = self._review_threads.busy
            return outcomes.Unreachable(crowded(command.handler, seconds, busy))
        finally:
            if outside is not None:
                del self._outside[command.id]
                if outside.running is not None:
                    outside.running.cancel()

    async def _drain(self, watchdog: Watchdog) -> None:
        taken = 0
        while self._inbox and self._exit is None:
            now = self._clock.now()
            watchdog.begin()
            commands = self._machine.feed(now, self._inbox.popleft())
            took = watchdog.end(SLOW_STEP_SECONDS)
            for act in self._machine.acts():
                self._on_say(Say("warning", act.warning, handler=act.handler))
            if took > SLOW_STEP_SECONDS:
                self._log_warning(slow_step(took, commands))
            for command in commands:
                self._perform(command)
            if len(self._inbox) < _INBOX_MAX:
                self._room.set()
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

    def _put(self, input: Input) -> None:
        self._inbox.append(input)
        self._wake.set()

    def _perform(self, command: Command) -> None:
        match command:
            case Perform(id, effect):
                if isinstance(effect, Call):
                    self._outside[id] = _Outside(effect.function, self._threads)
                self._spawn(self._perform_effect(command))
            case Interrupt() | Refresh():
                self._tell(command)
            case Say():
                self._on_say(command)
            case Alarm(at):
                self._set_alarm(at)
            case Fetch():
                self._spawn(self._fetch(command))
            case ListPage() | Watch() | FollowLog() | MoreLines() | CloseStream():
                self._follow(command)
            case Ready():
                self.ready.set()
            case Exit():
                self._exit = command
            case Trace():
                pass  # for recorders

    def _set_alarm(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        delay = at - self._clock.now().mono
        if delay <= 0:
            self._put(AlarmRang())
        else:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(delay, self._put, AlarmRang())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _follow(
        self, command: ListPage | Watch | FollowLog | MoreLines | CloseStream
    ) -> None:
        match command:
            case ListPage():
                self._start_stream(command.stream, self._list(command))
            case Watch():
                self._start_stream(command.stream, self._watch(command))
            case FollowLog(stream=stream):
                self._more[stream] = asyncio.Event()
                self._start_stream(stream, self._read_log(command))
            case MoreLines(stream):
                if stream in self._more:
                    self._more[stream].set()
            case CloseStream(stream):
                task = self._streams.pop(stream, None)
                if task is not None:
                    task.cancel()

    def _start_stream(self, stream: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._streams[stream] = self._spawn(work)
        task.add_done_callback(lambda _: self._streams.pop(stream, None))

    # --------------------------------------------------------------- effects

    async def _perform_effect(self, command: Perform) -> None:
        try:
            outcome = await self._answer(command)
        finally:
            self._outside.pop(command.id, None)
        self._put(Answered(command.id, outcome))

    async def _answer(self, command: Perform) -> Outcome:
        """Return exactly one outcome for each effect, whatever happens on the way."""
        effect = command.effect
        try:
            match effect:
                case Call():
                    before = command.before
                    if before is not None and self._clock.now().mono >= before:
                        return outcomes.Unreachable("not begun: the lease has ended")
                    return await self._call(command, effect)
                case Random(size=size):
                    return Answer(self._random(size).hex())
                case _:
                    manager = self._machine.settings.marker
                    request = request_for(command, manager)
                    before, urgent = command.before, command.urgent
                    if before is not None or urgent:
                        request = replace(request, before=before, urgent=urgent)
                    return await self._ask(request, effect)
        except Exception as problem:
            return outcomes.Unknown(described(problem))

    async def _ask(self, request: ApiRequest, effect: Effect | None) -> Outcome:
        try:
            response = await self._api.send(request)
        except Unreachable as problem:
            if problem.sent:
                return outcomes.Unknown(text_of(problem))
            return outcomes.Unreachable(text_of(problem))
        return outcome_of(effect, response)

    async def _fetch(self, command: Fetch) -> None:
        try:
            outcome = await self._ask(fetch_request(command), None)
            if isinstance(outcome, outcomes.Applied):
                read = trimmed(command.path, outcome.object)
                outcome = outcomes.Applied(read)
        except Exception as problem:
            outcome = outcomes.Unreachable(described(problem))
        self._put(Answered(command.id, outcome))

    async def _call(self, command: Perform, call: Call) -> Outcome:
        outside = self._outside[command.id]
        try:
            function = self._resolve(call.function)
        except Exception as problem:
            return raised(problem)
        say = partial(self._log_line, command)
        turn = partial(self._turn, command)
        running = self._begin_call(function, call, say, outside, turn)
        outside.running = running
        if outside.cancelled:
            running.cancel()
        # If awaited itself, a task that swallows its cancellation would keep this one,
        # too.
        await asyncio.wait((running,))
        if running.cancelled():
            return outcomes.Raised("Cancelled", "it was told to stop, and did not")
        return running.result()

    def _begin_call(
        self,
        function: Callable[..., Any],
        call: Call,
        say: Callable[[Log], None],
        outside: _Outside,
        turn: Callable[[], AbstractContextManager[None]],
    ) -> asyncio.Future[Outcome]:
        stopped = outside.stopped
        if inspect.iscoroutinefunction(function):
            outside.has_begun = True
            stopped.on_loop()
            work = called_on_loop(function, call, say, stopped, turn)
            return asyncio.create_task(work)

        def in_thread() -> Outcome:
            outside.has_begun = True
            return called(function, call, say, stopped)

        number = self._machine.settings.call_threads
        return outside.threads.begin(number, outside.name, in_thread)

    def _log_line(self, command: Perform, line: Log) -> None:
        """Show a log line of an impure handler at once."""
        say = Say(line.level, line.message, command.subject, command.handler)
        self._on_say(replace(say, exception=line.exception))

    def _tell(self, command: Interrupt | Refresh) -> None:
        """Pass a command on to a call that is under way, or about to begin."""
        outside = self._outside.get(command.id)
        if outside is None:
            return
        match command:
            case Refresh():
                outside.stopped.refresh(command.body.data, command.wall)
            case Interrupt():
                outside.stopped.set(command.reason)
                outside.cancelled = command.cancel
                if outside.running is not None and command.cancel:
                    outside.running.cancel()

    # --------------------------------------------------------------- streams

    async def _list(self, command: ListPage) -> None:
        stream = command.stream
        try:
            await self._list_page(stream, command)
        except Exception as problem:
            text = text_of(problem)
            if not isinstance(problem, Unreachable):
                text = described(problem)
            self._put(StreamEnded(stream, "unreachable", None, text))

    async def _list_page(self, stream: int, command: ListPage) -> None:
        response = await self._api.send(list_request(command))
        for each in page_inputs(command, response, as_bytes=True):
            self._put(each)

    async def _watch(self, command: Watch) -> None:
        stream = command.stream
        try:
            lines = self._api.watch(
                watch_request(command), silence_seconds=command.silence_seconds
            )
            end, initial = StreamEnded(stream, "eof"), not command.version
            async with aclosing(lines):
                async for line in lines:
                    seen = watch_input(
                        *(stream, line.type, line.object, line.raw, command.resource),
                        initial=initial,
                    )
                    if isinstance(seen, StreamEnded):
                        end = seen
                        break
                    initial = initial and not isinstance(seen, ListDone)
                    self._put(seen)
                    while len(self._inbox) >= _INBOX_MAX:
                        self._room.clear()
                        await self._room.wait()
        except Exception as problem:
            end = _stream_end(stream, problem)
        self._put(end)

    async def _read_log(self, command: FollowLog) -> None:
        stream, reader = command.stream, reader_of(command, self._machine.program)
        try:
            if not isinstance(self._api, Logs):
                raise StreamRefused(405, "this API shows no logs of pods")
            parts = self._api.follow(
                log_request(command), silence_seconds=command.silence_seconds
            )
            async with aclosing(parts):
                await self._read_parts(stream, reader, parts)
            end = StreamEnded(stream, "eof")
        except Exception as problem:
            end = _stream_end(stream, problem)
        finally:
            self._more.pop(stream, None)
        for each in last_inputs(end, reader, self._clock.now().mono):
            self._put(each)

    async def _read_parts(
        self, stream: int, reader: LogReader, parts: AsyncGenerator[bytes, None]
    ) -> None:
        """Read a log part by part, only as far as its lines are taken in."""
        told = self._clock.now().mono
        async for data in parts:
            reader.feed(data)
            await self._tell_lines(stream, reader)
            if self._clock.now().mono - told >= MARK_SECONDS:
                told = self._clock.now().mono
                self._put(mark_input(stream, reader))
            if reader.is_elsewhere:
                return
            while reader.holds_event:
                following = asyncio.create_task(_next_part(parts))
                try:
                    await asyncio.wait((following,), timeout=QUIET_SECONDS)
                    if not following.done():
                        await self._tell_lines(stream, reader, rests=True)
                    more = await following
                finally:
                    await _cancelled(following)
                if more is None:
                    return
                reader.feed(more)
                await self._tell_lines(stream, reader)

    async def _tell_lines(
        self, stream: int, reader: LogReader, *, rests: bool = False
    ) -> None:
        more = self._more[stream]
        while True:
            batch = reader.batch(self._clock.now().mono, rests=rests)
            if batch is None:
                return
            more.clear()
            self._put(lines_input(stream, batch))
            await more.wait()

    async def _close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        under_way = tuple(self._outside.values())
        for outside in under_way:
            outside.stopped.set(DaemonStoppingReason.OPERATOR_EXITING.value)
            if outside.running is not None:
                outside.running.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._end_cancelled(under_way)
        self._threads.close()
        self._review_threads.close()
        self._machine.close()

    async def _end_cancelled(self, under_way: Iterable[_Outside]) -> None:
        """Let cancelled coroutines tidy up, and give up those that do not end.

        A coroutine that swallows its cancellation would keep the process for ever.
        """
        running = {each.running: each for each in under_way if each.running is not None}
        left: set[asyncio.Future[Any]] = {each for each in running if not each.done()}
        hurry: asyncio.Future[Any] = asyncio.create_task(self._hurry.wait())
        try:
            until = asyncio.get_running_loop().time() + TIDY_SECONDS
            while left and not hurry.done():
                wait = max(0.0, until - asyncio.get_running_loop().time())
                done, _ = await asyncio.wait(
                    {*left, hurry}, timeout=wait, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    break
                left -= done
        finally:
            hurry.cancel()
            for each in left:
                self._give_up_call(running[each], each)
        await asyncio.wait({hurry, *left}, timeout=_UNWINDING_SECONDS)

    def _give_up_call(
        self, outside: _Outside, running: asyncio.Future[Outcome]
    ) -> None:
        self._log_warning(
            f"{outside.name} was cancelled and goes on; it is ended as it is"
        )
        outside.stopped.is_given_up = True
        running.cancel()


def _stream_end(stream: int, problem: Exception) -> StreamEnded:
    """The end of a stream that has failed."""
    match problem:
        case StreamSilent():
            return StreamEnded(stream, "silent", None, text_of(problem))
        case StreamUndecodable():
            return StreamEnded(stream, "undecodable", None, text_of(problem))
        case StreamRefused(status=status, retry_after_seconds=advice):
            return StreamEnded(stream, "refused", status, text_of(problem), advice)
        case Unreachable():
            return StreamEnded(stream, "unreachable", None, text_of(problem))
        case _:
            return StreamEnded(stream, "unreachable", None, described(problem))


async def _next_part(parts: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(parts, None)


async def _cancelled(task: asyncio.Future[Any]) -> None:
    """Cancel a task, unless it has ended, and wait until it has."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
