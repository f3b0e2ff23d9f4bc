"""One operator with Kopf's API: everything that it keeps in its process.

The author's functions run on the event loop of the program that started it. fnop runs
on a loop of its own, in a thread: a function that blocks the author's loop stops no
watch and no renewal of a lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol

from fnop.adapters.kopf.arguments.bodies import Cell
from fnop.adapters.kopf.arguments.indices import Index
from fnop.adapters.kopf.arguments.memos import Memo, Memos
from fnop.adapters.kopf.arguments.stopping import (
    DaemonStopped,
    DaemonStoppingReason,
)
from fnop.adapters.kopf.declaring.registry import Entry, OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.calls import exit_in
from fnop.adapters.kopf.running.logs import (
    LocalObjectLogger,
    ObjectLogger,
    TerseObjectLogger,
    activity_logger,
)
from fnop.adapters.kopf.running.pauses import Pauses
from fnop.adapters.kopf.running.states import KopfStates
from fnop.adapters.kopf.running.turns import Turns
from fnop.core.handlers.declare.lifecycles import asap
from fnop.core.handlers.declare.roles import ROLES, Role
from fnop.core.operator.step import State
from fnop.core.seam.commands import Command, Perform, Watch
from fnop.core.seam.inputs import (
    Answered,
    EventPosted,
    Input,
    ListItem,
    WatchEvent,
)
from fnop.core.values.body import Key
from fnop.core.values.diff import Path
from fnop.core.values.errors import ErrorsMode
from fnop.core.values.now import Now
from fnop.effects.effects import Create
from fnop.effects.values import thaw_json
from fnop.interpreters.runtime.clock import Clock, SystemClock

__all__ = ["Operator", "activity_of"]

Json = dict[str, Any]


def activity_of(role: Role) -> str:
    """The name of an activity: of its logger, and the argument `activity`.

    >>> activity_of(Role.LOGIN), activity_of(Role.PROBE)
    ('authentication', 'probe')
    """
    return "authentication" if role is Role.LOGIN else role.value


async def _noted(work: Coroutine[Any, Any, Any], begun: list[asyncio.Task[Any]]) -> Any:
    """Await a coroutine, and note the task that does."""
    task = asyncio.current_task()
    assert task is not None, "only tasks run coroutines"
    begun.append(task)
    return await work


def _do_nothing() -> None:
    """Do not stop: no process of the operator's own can end."""


class Loop(Protocol):
    """The loop that fnop runs on, for other threads."""

    def is_closed(self) -> bool: ...
    def call_soon_threadsafe(self, work: Callable[..., None], *given: Any) -> Any: ...


class Serving(Protocol):
    """The interpreter that runs the operator."""

    @property
    def state(self) -> State: ...
    def post(self, handler: str, manifest: Json) -> None: ...


class Operator:
    """A registry with settings, memos and indices; it observes fnop's steps.

    `loop` is the author's event loop. `cluster` has the `kubeconfig` and the `context`
    that the user has chosen, if any: arguments of login handlers.
    """

    def __init__(
        self,
        registry: OperatorRegistry,
        settings: OperatorSettings,
        memo: Any,
        loop: asyncio.AbstractEventLoop,
        clock: Clock | None = None,
        cluster: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.registry = registry
        self.cluster = cluster
        self.settings = settings
        self.loop = loop
        self.clock = clock or SystemClock()
        self.memos = Memos(Memo() if memo is None else memo)
        self._turns = Turns(settings.queueing)
        self._pauses = Pauses()
        self.running: Serving | None = None
        self.lifecycle: Any = asap
        self.states = KopfStates(settings.persistence, self._fields_of)
        self._serving: Loop | None = None
        # The newest objects that daemons and timers look at, by their uids, with the
        # numbers of those that look. Only fnop's thread changes it.
        self._live: dict[str, tuple[int, Json]] = {}
        # Deleted objects, by their uids, whose last handlers may still be called.
        self._leaving: dict[str, Key] = {}
        self._indices = {name: self._index(name) for name in registry.indices}
        # Events that wait for the answer about the one before, and its number.
        self._posts: deque[tuple[str, Json]] = deque()
        # The wish of a handler to end the process, and the way to do so.
        self.exit: SystemExit | None = None
        self.ask_to_stop: Callable[[], object] = _do_nothing
        self._is_posting = False
        self._posted: int | None = None

    def serves(self, running: Serving, loop: Loop) -> None:
        """Note that it serves now, on a loop."""
        self.running, self._serving = running, loop

    # ------------------------------------------------------------ for handlers

    async def on_loop(
        self,
        work: Coroutine[Any, Any, Any],
        flag: DaemonStopped | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Await a coroutine that runs on the author's loop.

        If it is cancelled, this waits for its end, at most for `seconds`, and notes the
        stages of the end in the `flag`.
        """
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await self._ended(work, self.loop, flag, seconds)

    async def in_thread(
        self,
        work: Coroutine[Any, Any, Any],
        flag: DaemonStopped,
        seconds: float | None = None,
    ) -> Any:
        """Await a coroutine that has a thread for a daemon; it ends as on a loop."""
        return await self._ended(work, asyncio.get_running_loop(), flag, seconds)

    async def _ended(
        self,
        work: Coroutine[Any, Any, Any],
        loop: asyncio.AbstractEventLoop,
        flag: DaemonStopped | None,
        seconds: float | None,
    ) -> Any:
        begun: list[asyncio.Task[Any]] = []
        running = asyncio.run_coroutine_threadsafe(_noted(work, begun), loop)
        ended = asyncio.wrap_future(running)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            if not ended.done():
                asyncio.run_coroutine_threadsafe(self._end(begun, flag), loop)
                # A second cancellation gives it up.
                await asyncio.wait((ended,), timeout=seconds)
                if flag is not None and not ended.done():
                    flag.add(DaemonStoppingReason.DAEMON_ABANDONED)
            if ended.done() and not ended.cancelled():
                return ended.result()  # it has caught the cancellation
            raise

    async def _end(
        self, begun: list[asyncio.Task[Any]], flag: DaemonStopped | None
    ) -> None:
        """Cancel a task of the author, unless it ends by itself at once.

        Kopf asks a daemon to stop, and lets it end, before it cancels the daemon.
        """
        background = self.settings.background
        await asyncio.sleep(0)  # it has begun now
        (task,) = begun
        if background.instant_exit_timeout is not None:
            await asyncio.wait((task,), timeout=background.instant_exit_timeout)
        else:
            for _ in range(background.instant_exit_zero_time_cycles or 0):
                await asyncio.sleep(0)
        if flag is not None and not task.done():
            flag.add(DaemonStoppingReason.DAEMON_CANCELLED)
        task.cancel()

    async def in_turn(
        self, uid: str, kind: str, work: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Await a call about an object after those before; only on fnop's loop."""
        async with self._turns.of(uid, kind):
            return await work()

    def has_turn(self, uid: str, kind: str) -> bool:
        """Whether a call about an object would begin at once."""
        return self._turns.are_free(uid, kind)

    def to_its_end(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the author's loop, and block until it ends."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def stop_flag(self, loop: asyncio.AbstractEventLoop | None) -> DaemonStopped:
        """The argument `stopped` of a daemon: a coroutine on a `loop`, or a thread."""
        return DaemonStopped(loop)

    def heed_exit(self, problem: BaseException) -> None:
        """Let the operator end, with the status of a handler that has asked for it."""
        found = exit_in(problem)
        if found is not None and self.exit is None:
            self.exit = found
            self.ask_to_stop()

    def indices(self) -> Mapping[str, Index]:
        """The indices, by their names; their values are always the newest."""
        return self._indices

    def _index(self, name: str) -> Index:
        def look() -> Any:
            running = self.running
            if running is None:
                return None
            return running.state.objects.indices.get(name)

        return Index(look)

    def logger(self, body: Mapping[str, Any], *, posts: bool) -> ObjectLogger:
        """The logger of an object; its lines may become Events if it `posts`."""
        cls = ObjectLogger if posts else LocalObjectLogger
        return cls(body=body, settings=self.settings)

    def terse_logger(self, body: Mapping[str, Any]) -> ObjectLogger:
        """The logger of an object for index functions."""
        return TerseObjectLogger(body=body, settings=self.settings)

    def activity_logger(self, role: Role) -> Any:
        """The logger of an activity."""
        return activity_logger(activity_of(role))

    def _fields_of(self, api_version: str, kind: str) -> tuple[Path, ...] | None:
        """The fields that the handlers of a kind name; None if it is not served yet."""
        kinds = {} if self.running is None else self.running.state.survey.kinds
        for each in kinds.values():
            resource = each.resource
            if (resource.api_version, resource.kind) == (api_version, kind):
                handlers = (
                    *(*each.changes, *each.event_handlers),
                    *(*each.background, *each.indexers),
                )
                return tuple(dict.fromkeys(e.field for e in handlers if e.field))
        return None

    def errors_of(self, entry: Entry) -> ErrorsMode:
        """The meaning of arbitrary errors of a declared handler."""
        found: ErrorsMode = entry.options.get("errors") or ROLES[entry.role].errors
        return found

    def post(self, handler: str, manifest: Json) -> None:
        """Post an Event after those before it, as Kopf does; from any thread."""
        loop = self._serving
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._enqueue, handler, manifest)

    def _enqueue(self, handler: str, manifest: Json) -> None:
        self._posts.append((handler, manifest))
        if not self._is_posting:
            self._post_next()

    def _post_next(self) -> None:
        self._posted, self._is_posting = None, bool(self._posts)
        if self._posts and self.running is not None:
            self.running.post(*self._posts.popleft())

    def _follow_posts(self, input: Input, commands: tuple[Command, ...]) -> None:
        """Post the next Event when the server has answered the one before it."""
        match input:
            case EventPosted():
                requests = (each for each in commands if isinstance(each, Perform))
                creation = next(filter(_is_of_event, requests), None)
                self._posted = None if creation is None else creation.id
                if creation is None:
                    self._post_next()
            case Answered(number) if number == self._posted:
                self._post_next()
            case _:
                pass

    @contextmanager
    def live(self, cell: Cell) -> Iterator[None]:
        """Let the views of a cell show the newest object, for a daemon or a timer."""
        uid = (cell.data.get("metadata") or {}).get("uid") or ""

        def look() -> None:
            newest = self._live.get(uid)
            if newest is not None and newest[1] is not cell.data:
                cell.data = newest[1]

        count, _ = self._live.get(uid, (0, cell.data))
        self._live[uid] = count + 1, cell.data
        cell.look = look
        try:
            yield
        finally:
            count, data = self._live.get(uid, (1, cell.data))
            if count > 1:
                self._live[uid] = count - 1, data
            else:
                self._live.pop(uid, None)

    # ------------------------------------------------------------- an observer

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Keep the newest objects, and forget deleted ones."""
        for each in commands:
            if isinstance(each, Watch):
                _tell_stream(each)
        if self._is_posting:
            self._follow_posts(input, commands)
        if isinstance(input, (ListItem, WatchEvent)):
            self._see(input)
        if self._leaving:
            self._forget_deleted()
        peering = self.running and self.running.state.coordination.peering
        self._pauses.see(
            peering.verdict if peering else None,
            mandatory=self.settings.peering.mandatory,
        )

    def _see(self, input: ListItem | WatchEvent) -> None:
        body, uid = input.body, input.body.uid
        if isinstance(input, WatchEvent) and input.type == "DELETED":
            numbers = {} if self.running is None else self.running.state.streams.numbers
            resource = numbers[input.stream][0] if input.stream in numbers else ""
            self._leaving[uid] = Key(resource, body.namespace or "", body.name)
        if uid in self._live:
            self._live[uid] = self._live[uid][0], thaw_json(body.data)

    def _forget_deleted(self) -> None:
        """Forget the memos of deleted objects whose last handlers have ended."""
        records = {} if self.running is None else self.running.state.objects.records
        for uid, key in [*self._leaving.items()]:
            record = records.get(key)
            is_other = record is not None and record.body.uid != uid
            if record is None or (is_other and record.work is None):
                del self._leaving[uid]
                self.memos.forget(uid)


def _is_of_event(command: Perform) -> bool:
    effect = command.effect
    return isinstance(effect, Create) and effect.manifest.get("kind") == "Event"


def _tell_stream(watch: Watch) -> None:
    """Log a begun watch as Kopf does; programs wait for this line."""
    where = "cluster-wide"
    if watch.namespace is not None:
        where = f"in {watch.namespace!r}"
    kind = watch.resource.key.rstrip(".")
    _LOG.debug(f"Starting the watch-stream for {kind} {where}.")


_LOG = logging.getLogger("kopf.fnop")
