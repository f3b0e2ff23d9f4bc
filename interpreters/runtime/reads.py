"""An operator's lists, watches, logs and documents of discovery, by an `Api`.

Each stream is a task that turns lines into inputs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any

from fnop.core.api.discovery import trimmed
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import (
    CloseStream,
    Fetch,
    FollowLog,
    ListPage,
    MoreLines,
    Watch,
)
from fnop.core.seam.inputs import Answered, ListDone, StreamEnded
from fnop.core.streams.log_reader import LogReader
from fnop.core.values.errors import described, text_of
from fnop.effects import Effect, Outcome, outcomes
from fnop.interpreters.runtime.answers import outcome_of, page_inputs, watch_input
from fnop.interpreters.runtime.clock import Clock
from fnop.interpreters.runtime.inbox import Inbox, Tasks
from fnop.interpreters.runtime.log_readers import (
    MARK_SECONDS,
    QUIET_SECONDS,
    last_inputs,
    lines_input,
    mark_input,
    reader_of,
)
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
    watch_request,
)

__all__ = ["Read", "Reads", "ask"]

Read = Fetch | ListPage | Watch | FollowLog | MoreLines | CloseStream


async def ask(api: Api, request: ApiRequest, effect: Effect | None) -> Outcome:
    """The outcome of a request, `Unknown` if it may have arrived."""
    try:
        response = await api.send(request)
    except Unreachable as problem:
        if problem.sent:
            return outcomes.Unknown(text_of(problem))
        return outcomes.Unreachable(text_of(problem))
    return outcome_of(effect, response)


class Reads:
    """The open reads of one operator; its inbox gets what they read."""

    def __init__(
        self, api: Api, program: Program, clock: Clock, inbox: Inbox, tasks: Tasks
    ) -> None:
        self._api = api
        self._program = program
        self._clock = clock
        self._inbox = inbox
        self._tasks = tasks
        self._streams: dict[int, asyncio.Task[None]] = {}
        # Set when the delivered lines of a log are taken in.
        self._more: dict[int, asyncio.Event] = {}

    def execute(self, command: Read) -> None:
        """Begin, continue or end a read."""
        match command:
            case Fetch():
                self._tasks.spawn(self._fetch(command))
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
        task = self._streams[stream] = self._tasks.spawn(work)
        task.add_done_callback(lambda _: self._streams.pop(stream, None))

    async def _fetch(self, command: Fetch) -> None:
        try:
            outcome = await ask(self._api, fetch_request(command), None)
            if isinstance(outcome, outcomes.Applied):
                read = trimmed(command.path, outcome.object)
                outcome = outcomes.Applied(read)
        except Exception as problem:
            outcome = outcomes.Unreachable(described(problem))
        self._inbox.put(Answered(command.id, outcome))

    async def _list(self, command: ListPage) -> None:
        stream = command.stream
        try:
            await self._list_page(stream, command)
        except Exception as problem:
            text = text_of(problem)
            if not isinstance(problem, Unreachable):
                text = described(problem)
            self._inbox.put(StreamEnded(stream, "unreachable", None, text))

    async def _list_page(self, stream: int, command: ListPage) -> None:
        response = await self._api.send(list_request(command))
        for each in page_inputs(command, response, as_bytes=True):
            self._inbox.put(each)

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
                    self._inbox.put(seen)
                    await self._inbox.has_room()
        except Exception as problem:
            end = _stream_end(stream, problem)
        self._inbox.put(end)

    async def _read_log(self, command: FollowLog) -> None:
        stream, reader = command.stream, reader_of(command, self._program)
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
            self._inbox.put(each)

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
                self._inbox.put(mark_input(stream, reader))
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
            self._inbox.put(lines_input(stream, batch))
            await more.wait()


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
