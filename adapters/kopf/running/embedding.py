"""Operators with Kopf's API as programs, and within other programs.

`operator` is for a program with an event loop, whose loop then runs the handlers. `run`
makes one. fnop itself runs in a thread of its own until the operator has ended.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import secrets
import signal
import threading
import warnings
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack

from fnop.adapters.common.endings import warn
from fnop.adapters.kopf.declaring.registry import (
    OperatorRegistry,
    get_default_registry,
)
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.events import LinePoster
from fnop.adapters.kopf.running.extras import (
    CLUSTER,
    claimed_metrics,
    claimed_path,
    extra,
)
from fnop.adapters.kopf.running.logs import write
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.startup import ActivityError, program_of, start
from fnop.adapters.running.embedding import (
    ConfigurationProblem,
    Place,
    Running,
    serving,
)
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.interpreters.runtime.machine import Observer

if TYPE_CHECKING:
    from fnop.adapters.recordings.recording_files import Background

__all__ = ["Options", "Serving", "operator", "run", "run_tasks", "spawn_tasks"]

_LOG = logging.getLogger("kopf.running")
_LOGIN = logging.getLogger("kopf.activities.authentication")
# Tasks that handlers have left get this long to end with their operator, as in Kopf.
_GRACE_SECONDS = 5.0
# The polling interval for flags of threads, which cannot wake an event loop.
_LOOK_SECONDS = 0.1


class Options(TypedDict, total=False):
    """The arguments of `operator`, `run` and `spawn_tasks`, as Kopf has them."""

    lifecycle: Any
    indexers: Any
    registry: OperatorRegistry | None
    settings: OperatorSettings | None
    memories: Any
    insights: Any
    identity: Any
    standalone: bool | None
    priority: int | None
    peering_name: str | None
    liveness_endpoint: str | None
    clusterwide: bool
    namespaces: Sequence[Any]
    namespace: Any
    stop_flag: Any
    ready_flag: Any
    vault: Any
    memo: Any
    _command: Any
    # More than Kopf has.
    record: str | None
    metrics: str | None
    kubeconfig: str | None
    context: str | None
    # Whether fnop has loaded the operator's files, and no program starts it.
    _loaded: bool


# Parts of Kopf's own machinery, which fnop does not have.
_FOREIGN = ("indexers", "memories", "insights", "vault", "_command")


def run(
    *, loop: asyncio.AbstractEventLoop | None = None, **options: Unpack[Options]
) -> None:
    """Run an operator until it ends, or until a signal (SIGINT, SIGTERM) ends it.

    `options` are those of `operator`; `loop` runs the handlers.
    """
    work = operator(**options)
    with suppress(asyncio.CancelledError):
        if loop is None:
            asyncio.run(work)
        else:
            loop.run_until_complete(work)


async def operator(**options: Unpack[Options]) -> None:
    """Run an operator on this event loop until it ends.

    Raises `TypeError` for wrong arguments, and the error that has ended the operator.
    """
    before = asyncio.all_tasks()
    await run_tasks(await spawn_tasks(**options), ignored=before)


async def spawn_tasks(**options: Unpack[Options]) -> Collection[asyncio.Task[None]]:
    """Start an operator as tasks of this event loop, for `run_tasks`."""
    serve = Serving.present(options)
    return [asyncio.create_task(serve.run(), name="operator")]


async def run_tasks(
    root_tasks: Collection[asyncio.Task[Any]],
    *,
    ignored: Collection[asyncio.Task[Any]] = frozenset(),
) -> None:
    """Wait until the first task ends, and end the others.

    All other tasks of this event loop are taken for tasks that handlers have left. They
    get some seconds to end by themselves, unless this call is cancelled.
    `ignored` tasks neither end the operator nor are ended. Raises the error of a task.
    """
    waited = {each for each in root_tasks if each not in ignored}
    left: set[asyncio.Task[Any]] = set()
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        await _end(waited)
        left = asyncio.all_tasks() - {asyncio.current_task(), *waited, *ignored}
        if left:
            await asyncio.wait(left, timeout=_GRACE_SECONDS)
    finally:
        await _end(waited)
        left |= asyncio.all_tasks() - {asyncio.current_task(), *waited, *ignored}
        await _end(left)
    for each in (*waited, *left):
        if not each.cancelled() and each.exception() is not None:
            raise each.exception()  # type: ignore[misc]  # it is not None


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    for each in tasks:
        each.cancel()
    if tasks:
        await asyncio.wait(tasks)


class Serving:
    """One run of an operator."""

    # Makes the object that serves; `fnop check` serves in a simulated world.
    present: ClassVar[Callable[[Options], Serving]]

    def __init__(self, options: Options) -> None:
        for name in _FOREIGN:
            if options.get(name) is not None:
                raise TypeError(f"{name}= is a part of Kopf itself, and not of fnop")
        namespaces = [*options.get("namespaces", ())]
        legacy = options.get("namespace")
        clusterwide = bool(options.get("clusterwide"))
        if legacy is not None and namespaces:
            raise TypeError("give either namespaces= or namespace=")
        if legacy is not None:
            warnings.warn(
                "namespace= is deprecated; use namespaces=[...]",
                DeprecationWarning,
                stacklevel=4,
            )
            namespaces = [legacy]
        if clusterwide and namespaces:
            raise TypeError("give either namespaces= or clusterwide=True")
        if not clusterwide and not namespaces:
            warnings.warn(
                "neither namespaces nor the clusterwide mode is chosen; the whole "
                "cluster is served",
                FutureWarning,
                stacklevel=4,
            )
        self._namespaces: Sequence[Any] = namespaces
        self._options = options
        self._registry = options.get("registry") or get_default_registry()
        self._settings = options.get("settings") or OperatorSettings()
        self._set_peering(clusterwide or not namespaces)
        self._stop = threading.Event()
        # The same for this event loop, which cannot wait for an event of threads.
        self._stopping = asyncio.Event()
        # A second signal: the operator ends at once.
        self._hurry = threading.Event()

    def _set_peering(self, clusterwide: bool) -> None:
        peering, options = self._settings.peering, self._options
        peering.clusterwide = clusterwide
        name, priority = options.get("peering_name"), options.get("priority")
        if name is not None:
            peering.name, peering.mandatory = name, True
        if priority is not None:
            peering.priority = priority
        if options.get("standalone") is not None:
            peering.standalone = bool(options.get("standalone"))

    async def run(self) -> None:
        """Run the startup handlers, serve, and run the cleanup handlers."""
        loop = asyncio.get_running_loop()
        mine = Operator(
            *(self._registry, self._settings, self._options.get("memo"), loop),
            cluster=self._cluster(),
        )
        mine.ask_to_stop = partial(loop.call_soon_threadsafe, self._ask_to_stop)
        poster = LinePoster(self._settings, mine.post)
        objects = logging.getLogger("kopf.objects")
        undo = self._heed_signals(loop)
        watching = asyncio.create_task(self._watch_flag())
        objects.addHandler(poster)
        try:
            if await self._starts(mine):
                self._tell_ready()
                await self._serve(mine)
        except ActivityError:
            if mine.exit is None:
                raise
        finally:
            objects.removeHandler(poster)
            watching.cancel()
            undo()
        if mine.exit is not None:
            raise mine.exit

    def _cluster(self) -> Mapping[str, str]:
        """The kubeconfig and the context that the user has chosen, as far as given."""
        found = {name: extra(self._options, name) for name in CLUSTER}
        return {name: given for name, given in found.items() if given is not None}

    # ------------------------------------------------------------------ startup

    async def _starts(self, mine: Operator) -> bool:
        """Run the startup handlers; False if a signal or the stop flag came before."""
        starting = asyncio.create_task(start(mine))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait(
                {starting, stopping}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            await _end({starting, stopping})
        if not starting.cancelled():
            starting.result()
            return True
        _LOG.warning("Startup activity is only partially executed due to cancellation.")
        return False

    # ------------------------------------------------------------------ serving

    async def _serve(self, mine: Operator) -> None:
        """Serve in a thread, until the operator ends, or this task is cancelled."""
        record, metrics = (extra(self._options, name) for name in ("record", "metrics"))
        program = program_of(
            mine,
            self._namespaces,
            lifecycle=self._options.get("lifecycle"),
            identity=str(self._options.get("identity") or ""),
            traces=record is not None,
        )
        place = Place(
            liveness=self._options.get("liveness_endpoint"),
            metrics=metrics,
            kubeconfig=mine.cluster.get("kubeconfig"),
            context=mine.cluster.get("context"),
        )
        flags = (self._stop, self._hurry)
        with claimed_metrics(metrics), self._recorded(record, program) as recorders:
            observers: tuple[Observer, ...] = (mine, *recorders)
            await self._serve_in_thread(_served(program, place, mine, observers, flags))

    @contextmanager
    def _recorded(
        self, record: str | None, program: Program
    ) -> Iterator[tuple[Background, ...]]:
        """The writer of the recording, if there is to be one.

        Raises `ConfigurationProblem` for a file that cannot be written.
        """
        if record is None:
            yield ()
            return
        start = "files" if self._options.get("_loaded") else "program"
        with claimed_path(record) as path:
            try:
                recorder = _recorder(path, program, start)
            except OSError as problem:
                raise ConfigurationProblem(
                    f"cannot write the recording: {problem}"
                ) from problem
            try:
                yield (recorder,)
            finally:
                recorder.close()

    async def _serve_in_thread(self, work: Coroutine[Any, Any, None]) -> None:
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        thread = threading.Thread(
            target=_in_thread,
            args=(work, ended),
            name="fnop",
            daemon=True,
        )
        _LOGIN.info("Initial authentication has been initiated.")
        thread.start()
        waiting = asyncio.wrap_future(ended)
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._stop.set()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({waiting})
            raise

    def _tell_ready(self) -> None:
        """Raise the flag of those who wait: as in Kopf, after the startup handlers."""
        flag = self._options.get("ready_flag")
        if flag is None:
            return
        if isinstance(flag, (asyncio.Event, threading.Event)):
            flag.set()
        elif isinstance(flag, asyncio.Future):
            flag.get_loop().call_soon_threadsafe(_fulfil, flag)
        else:
            _fulfil(flag)

    def _stop_by_signal(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            self._hurry.set()
        _LOG.info(f"Signal {number.name} is received. Operator is stopping.")
        self._ask_to_stop()

    # -------------------------------------------------------------------- flags

    async def _watch_flag(self) -> None:
        flag = self._options.get("stop_flag")
        if flag is None:
            return
        if isinstance(flag, asyncio.Event):
            await flag.wait()
        elif isinstance(flag, asyncio.Future):
            await asyncio.wait({flag})
        elif isinstance(flag, threading.Event):
            while not flag.is_set():
                await asyncio.sleep(_LOOK_SECONDS)
        else:
            while not flag.done():
                await asyncio.sleep(_LOOK_SECONDS)
        value = True if not hasattr(flag, "result") else flag.result()
        is_raised = "raised" if value is None else f"set to {value!r}"
        _LOG.info(f"Stop-flag is {is_raised}. Operator is stopping.")
        self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        self._stop.set()
        self._stopping.set()

    def _heed_signals(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Let SIGINT and SIGTERM end the operator, in the main thread alone."""
        if threading.current_thread() is not threading.main_thread():
            _LOG.warning("OS signals are ignored: running not in the main thread.")
            return lambda: None
        heard = []
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, self._stop_by_signal, number)
                heard.append(number)

        def undo() -> None:
            for number in heard:
                loop.remove_signal_handler(number)

        return undo


Serving.present = Serving


def _recorder(path: Path, program: Program, start: str) -> Background:
    """The writer of a recording. Raises `OSError`."""
    from fnop.adapters.recordings.recording_files import Background, recorder_to
    from fnop.interpreters.recording.redaction import Redaction

    redaction = Redaction(secrets.token_bytes(16), program, ())
    more = {"kopf": start}
    return Background(recorder_to(path, program, redaction, warn, more), warn)


def _fulfil(flag: Any) -> None:
    if not flag.done():
        flag.set_result(None)


def _in_thread(work: Any, ended: concurrent.futures.Future[None]) -> None:
    """Run fnop's own event loop until the operator has ended."""
    try:
        asyncio.run(work)
    except BaseException as problem:
        ended.set_exception(problem)
    else:
        ended.set_result(None)


async def _served(
    program: Program,
    place: Place,
    mine: Operator,
    observers: Iterable[Observer],
    flags: tuple[threading.Event, threading.Event],
) -> None:
    """Serve on this loop, which is fnop's, until it is to stop."""

    say = sayer(program, mine.settings)
    async with serving(program, place, observers=observers, say=say) as running:
        mine.serves(running, asyncio.get_running_loop())
        _LOGIN.info("Initial authentication has finished.")
        watching = asyncio.create_task(_watch(running, flags))
        try:
            await running.ended()
        finally:
            watching.cancel()


def sayer(program: Program, settings: Any) -> Callable[[Say], None]:
    """The function that writes the lines of an operator to Kopf's loggers.

    Kopf's handlers log the ends of their attempts themselves; fnop's handlers do not.
    """
    given = {each.id for each in default_registry.handlers}
    ours = given.intersection(each.id for each in program.handlers)
    logins = {e.id for e in program.handlers if e.role is Role.LOGIN} - given

    def is_of_fnop(handler: str | None) -> bool:
        parts = (handler or "").split("/")
        return any("/".join(parts[:end]) in ours for end in range(1, len(parts) + 1))

    def say(line: Say) -> None:
        own = bool(ours) and is_of_fnop(line.handler)
        is_login = line.handler in logins and line.error is not None
        if own or not (is_login or _is_told(line)):
            write(line, settings, is_of_fnop=own)

    return say


def _is_told(line: Say) -> bool:
    """Whether Kopf's own sentence about the end of an attempt has been logged.

    An attempt whose patch the API server rejects has succeeded until then.
    """
    if line.ended is not None:
        has_sentence = line.ended.result in ("success", "error")
        return has_sentence and not line.ended.rejected
    return getattr(line.exception, "is_told", False)


async def _watch(
    running: Running, flags: tuple[threading.Event, threading.Event]
) -> None:
    """End the operator in order after the first flag, and at once after the second."""
    for flag in flags:
        while not flag.is_set():
            await asyncio.sleep(_LOOK_SECONDS)
        running.stop("it is told to stop")
