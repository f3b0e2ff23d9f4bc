"""The processes of a Kopf operator in `fnop check`: each loads the operator again.

A process has new modules, a new registry, and new memos, indices and clients. Only the
newest one lives: when another begins, the one before has crashed, or its run is over.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
import threading
import warnings
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import packages_distributions
from socketserver import BaseServer
from types import ModuleType
from typing import Any

from fnop.adapters.common.loading import authors_place, is_authors_module
from fnop.adapters.kopf.arguments.stopping import DaemonStopped
from fnop.adapters.kopf.checking.door import PATIENCE_SECONDS, Door
from fnop.adapters.kopf.checking.front import Front
from fnop.adapters.kopf.checking.programs import (
    Signals,
    Start,
    signals_noted,
    start_of,
)
from fnop.adapters.kopf.checking.strands import (
    HASTE,
    STRAND,
    Haste,
    Line,
    Strand,
    Strands,
    VirtualStopped,
)
from fnop.adapters.kopf.checking.values import simulate_values
from fnop.adapters.kopf.commands.loading import load_modules, refuse_empty
from fnop.adapters.kopf.declaring.lifecycles import set_default_lifecycle
from fnop.adapters.kopf.declaring.registry import (
    OperatorRegistry,
    get_default_registry,
    set_default_registry,
)
from fnop.adapters.kopf.running.embedding import Options, Serving, operator
from fnop.adapters.kopf.running.handlers import run_activity
from fnop.adapters.kopf.running.logins import default_logins
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.startup import ActivityError, program_of, start
from fnop.adapters.kopf.running.translation import Unsupported
from fnop.adapters.testing.cases import CheckProblem
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.roles import ADMISSION, ROLES, Role
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import State
from fnop.core.seam.inputs import EventPosted
from fnop.core.values.errors import text_of
from fnop.core.values.now import Now
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.clock import Clock
from fnop.interpreters.runtime.machine import Observer
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["Process", "Processes", "checked_operator"]

Json = dict[str, Any]

_LOG = logging.getLogger()
# The pauses between attempts of startup handlers that a check waits for, and the sleeps
# in them, in virtual seconds.
_STARTUP_SECONDS = 3600.0
# The time that a thread may keep others waiting; with it a check takes two thirds.
_SWITCH_SECONDS = 0.0003
# The interval at which an operator's server checks for its end. Python's own one is
# half a second, and would be the most of a process that has a server.
_SERVER_SECONDS = 0.01
# The longest time in which the program of a process ends with it, in real seconds; and
# that of later processes if the first one did not.
_END_SECONDS, _LEAST_END_SECONDS = 1.0, 0.05


@contextmanager
def checked_operator(
    paths: Sequence[str], modules: Sequence[str] = ()
) -> Iterator[Processes]:
    """The files and modules of an operator that is checked within the block."""
    found, chance = Processes(paths, modules), random.getstate()
    # The simulator and the handlers wait for each other all the time.
    interval, argv = sys.getswitchinterval(), sys.argv
    sys.setswitchinterval(_SWITCH_SECONDS)
    sys.argv = [*paths, *modules][:1]
    hook, threading.excepthook = threading.excepthook, lambda _: None
    serves: Any = BaseServer.serve_forever
    defaults, serves.__defaults__ = serves.__defaults__, (_SERVER_SECONDS,)
    try:
        with _silence(), signals_noted(found.signals):
            Serving.present = found.serving
            try:
                yield found
            finally:
                found.close()
    finally:
        Serving.present = Serving
        serves.__defaults__ = defaults
        threading.excepthook = hook
        sys.argv = argv
        sys.setswitchinterval(interval)
        random.setstate(chance)


@contextmanager
def _silence() -> Iterator[None]:
    """Log nothing: neither the handlers' lines, nor asyncio's about ended tasks."""
    former, level, handlers = _LOG.manager.disable, _LOG.level, [*_LOG.handlers]
    logging.disable()
    try:
        yield
    finally:
        gc.collect()  # asyncio logs tasks that have ignored their cancellation
        logging.disable(former)
        _LOG.setLevel(level)
        _LOG.handlers[:] = handlers


class Processes:
    """The files and modules of an operator, and the one process that lives now."""

    def __init__(self, paths: Sequence[str], modules: Sequence[str] = ()) -> None:
        self._paths, self._modules = paths, modules
        # All other modules of its author are loaded again.
        self._before = frozenset(sys.modules)
        # The block that starts the operator, as soon as it has been looked for.
        self._start: tuple[Start | None] | None = None
        own = {each.partition(".")[0] for each in modules}
        self._installed = packages_distributions().keys() - own
        self._registry = OperatorRegistry.default
        self._present: Process | None = None
        self.has_webhooks = False
        self.end_seconds = _END_SECONDS
        # The lines at which daemons wait (`Strands`).
        self.resting: set[tuple[str, Line]] = set()
        # Some clients read where it is while they are imported.
        self._front = Front()

    def play(self, process: Process) -> None:
        """Load the operator again, and run its program until the operator ends.

        It runs in the thread of the process. The program is that of the operator, or
        as `kopf run`. The command ends if the operator cannot be loaded, or declares
        nothing. Raises `CheckProblem`, and whatever the program raises.
        """
        self._forget()
        set_default_registry(OperatorRegistry())
        set_default_lifecycle(None)
        given = load_modules(self._paths, self._modules)
        process.simulate_values()
        if self._start is None:
            self._start = (start_of(given, self.own_modules.values()),)
        (start,) = self._start
        if start is None:
            refuse_empty(get_default_registry(), (*self._paths, *self._modules))
            asyncio.run(operator(clusterwide=True))
        else:
            process.place = start.place
            start.run(sys.modules)

    def serving(self, options: Options) -> Serving:
        """Make the object that serves an operator with these options."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about namespaces
            return _Serving(self._present, options)

    @property
    def own_modules(self) -> Mapping[str, ModuleType]:
        """The loaded modules of the operator, by their names."""
        return {
            name: module
            for name, module in [*sys.modules.items()]
            if name not in self._before
            and name.partition(".")[0] not in self._installed
            and is_authors_module(module)
        }

    def _forget(self) -> None:
        for name in self.own_modules:
            del sys.modules[name]
            default_registry.forget(name)

    def declared(self) -> Program:
        """The program as it is declared, before any startup handler runs.

        It serves only to look at the handlers. Raises `CheckProblem` for handlers that
        change objects on their way into the cluster: no check calls them, so the others
        would see objects that they never see.
        """
        run = SimulatedRun(Program(()), empty_cluster())
        process = self._present = Process(self, run, self._front)
        try:
            serving = process.launch()
            registry = serving.registry
            refuse_empty(registry, (*self._paths, *self._modules))
            mutating = [e.id for e in registry.entries if ROLES[e.role].mutates]
            if mutating:
                raise CheckProblem(
                    f"the admission handler {mutating[0]} changes objects, and a check "
                    "calls no admission handlers: the operator cannot be checked"
                )
            self.has_webhooks = registry.has_webhooks
            mine = Operator(registry, serving.settings, None, serving.loop)
            return serving.program_of(mine)
        finally:
            self.end()

    def begin(self, run: SimulatedRun) -> Process:
        """Begin the next process of the operator in a simulated world."""
        self.end()
        self._present = Process(self, run, self._front)
        self._present.start()
        return self._present

    def end(self) -> None:
        """End the present process."""
        if self._present is not None:
            self._present.close()
            self._present = None

    def close(self) -> None:
        """End the present process, and the server."""
        self.end()
        self._front.close()
        self._forget()
        OperatorRegistry.default = self._registry

    def signals(self) -> Signals:
        """The signals that the present process handles."""
        return Signals() if self._present is None else self._present.signals


class _Serving(Serving):
    """Serves an operator in the simulated world of a process, until the process ends.

    It runs on the event loop of the operator's program.
    """

    def __init__(self, process: Process | None, options: Options) -> None:
        super().__init__(options)
        self._process = process
        self.registry, self.settings = self._registry, self._settings
        self.memo = options.get("memo")

    async def run(self) -> None:
        """Let the process use this event loop, until it ends; then clean up."""
        self.loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        before = asyncio.all_tasks()
        if self._process is None or not self._process.serves(self):
            return
        self.loop.set_default_executor(_Threads())
        await self._over.wait()
        tasks = asyncio.all_tasks() - before - {asyncio.current_task()}
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._process.clean_up()
        self._tell_ready()  # the rest of the program may end, and do nothing before

    def end(self) -> None:
        """Let `run` end; from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._over.set)

    def program_of(self, mine: Operator) -> Program:
        """The program of an operator, without admission handlers and peers."""
        options = self._options
        try:
            program = program_of(
                mine,
                self._namespaces,
                lifecycle=options.get("lifecycle"),
                identity=str(options.get("identity") or ""),
            )
        except Unsupported as problem:
            raise CheckProblem(str(problem)) from problem
        handlers = tuple(e for e in program.handlers if e.role not in ADMISSION)
        return Program(handlers, program.settings.replace(peering=None))


class _Checked(Operator):
    """An operator whose handlers wait in virtual time."""

    def __init__(self, process: Process, *given: Any) -> None:
        super().__init__(*given)
        self._process = process
        # The calls that wait for their turn, by the kinds of their objects.
        self._queues: defaultdict[str, deque[Strand]] = defaultdict(deque)

    def stop_flag(self, loop: asyncio.AbstractEventLoop | None) -> DaemonStopped:
        return VirtualStopped(loop)

    async def in_turn(
        self, uid: str, kind: str, work: Callable[[], Awaitable[Any]]
    ) -> Any:
        strand, queue = STRAND.get(), self._queues[kind]
        while not self.has_turn(uid, kind):  # another call sleeps
            queue.append(strand)
            try:
                await strand.asleep(None)
            finally:
                if strand in queue:
                    queue.remove(strand)
        try:
            return await super().in_turn(uid, kind, work)
        finally:
            for each in queue:
                each.comes_due()

    def to_its_end(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._process.finish(work, "an index function")


class _Ahead:
    """The clock of startup handlers: their pauses take no time of the world.

    `sleep` raises `TimeoutError` if they take too long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._seconds = clock, 0.0

    def now(self) -> Now:
        wall, mono = self._clock.now()
        return Now(wall + self._seconds, mono + self._seconds)

    async def sleep(self, seconds: float) -> None:
        self._seconds += max(seconds, 0.001)
        if self._seconds > _STARTUP_SECONDS:
            raise TimeoutError
        await asyncio.sleep(0)  # other tasks may run


class _Threads(ThreadPoolExecutor):
    """A thread for each function: one that does not end does not keep the command.

    Python waits at its end for the threads of a usual pool.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function in a new thread."""
        found: Future[Any] = Future()

        def work() -> None:
            try:
                found.set_result(fn(*args, **kwargs))
            except BaseException as problem:
                found.set_exception(problem)

        threading.Thread(target=work, name="kopf handler", daemon=True).start()
        return found


class Process:
    """One process of an operator in a simulated world (`Life`)."""

    def __init__(self, all: Processes, run: SimulatedRun, front: Front) -> None:
        self._all, self._run, self._front = all, run, front
        self._door = Door()
        self._thread = threading.Thread(target=self._play, name="author", daemon=True)
        self._serving: _Serving | None = None
        self._problem: BaseException | None = None
        self._has_ended = False
        self.signals = Signals()
        # The line at which the operator's program begins, or "".
        self.place = ""
        self.program = run.machine.program
        self.functions: Mapping[str, Callable[..., Any]] = {}
        self.observers: tuple[Observer, ...] = ()
        self._ids: Mapping[str, str] = {}
        self.threads: Strands
        self.is_over = False
        self._mine: Operator | None = None

    # ---------------------------------------------------------------- the program

    def _play(self) -> None:
        """Run the operator's program, in a thread of its own."""
        try:
            self._all.play(self)
        except BaseException as problem:
            self._problem = problem
        self._door.ask(self._note_end)

    def _note_end(self) -> None:
        self._has_ended = True

    def serves(self, serving: _Serving) -> bool:
        """Use what the program has begun to serve with; False if it is too late.

        Raises `TypeError` for a second operator.
        """
        if self._serving is not None:
            self._problem = TypeError("a check knows one operator in each process")
            raise self._problem
        if self.is_over:
            return False
        self._serving = serving
        self._door.ask(lambda: None)
        return True

    def _answer(self, request: ApiRequest) -> ApiResponse:
        """The response to a client of the operator's. Raises `Crashed`."""
        present = self.threads.present if self._mine is not None else None
        if present is None:  # no handler runs
            return self._run.request(request)
        handler = self._ids.get(present, "")
        return self._run.director.asks(handler, request, self._run.request)

    def launch(self) -> _Serving:
        """Run the operator's program until it serves. Raises `CheckProblem`."""
        self._front.serve(self._door, self._answer)
        random.seed(self._run.draws.seed)
        self._thread.start()
        is_open = self._door.serve(lambda: bool(self._serving) or self._has_ended)
        if self._serving is not None:
            return self._serving
        raise self._unfit() if is_open else self._refusal("its program")

    def _unfit(self) -> BaseException:
        """The problem of a program that has ended too early, or has failed."""
        problem, place = self._problem, self.place
        if isinstance(problem, CheckProblem) or not place:
            return problem or CheckProblem("the operator ends at once")
        what = "it ends without a call of kopf.run or the like"
        if self._serving is not None:
            what = "it ends at once after its operator has begun"
        if problem is not None:
            place = authors_place(problem) or place
            what = f"{type(problem).__name__}: {text_of(problem)}"
        return CheckProblem(
            f"{place}: {what}; a check starts the operator at {self.place}, as Python "
            "does without arguments: set the variables that it needs, or give a file "
            "that starts it and does nothing else before"
        )

    def _refusal(self, what: str) -> CheckProblem:
        return CheckProblem(
            f"{what} has not ended within {PATIENCE_SECONDS:g} s: it waits for "
            "something outside of the simulated cluster, and cannot be checked"
        )

    def simulate_values(self) -> None:
        """Let the operator's modules have the clock and the chance of the world."""
        run = self._run
        simulate_values(self._all.own_modules.values(), run.clock, run.draws.draw)

    def start(self) -> None:
        """Start the operator, and run its startup handlers and its logins.

        Raises `CheckProblem` if that fails.
        """
        run, serving = self._run, self.launch()
        self.threads = Strands(run.clock, serving.loop, self._door, self._all.resting)
        self.simulate_values()
        settings = serving.settings
        settings.peering.standalone = True
        settings.execution.executor = _Threads()
        clock = _Ahead(run.clock)
        given = serving.registry, settings, serving.memo, serving.loop
        mine = _Checked(self, *given, clock)
        try:
            self.finish(start(mine, clock.sleep), "its startup")
        except ActivityError as problem:
            raise CheckProblem(str(problem)) from problem
        mine.clock = run.clock
        settings.execution.executor = _Threads()  # whatever its startup has chosen
        self._log_in(mine)
        self.program = serving.program_of(mine)
        own = [e for e in self.program.handlers if e.function.startswith("kopf:")]
        self.functions = {each.function: each.fn for each in own}
        self._ids = {each.function: each.id for each in own}
        self.threads.lasting = {each.function for each in own if each.rule.lasts}
        self.observers = (mine,)
        mine.serves(self, self)
        self._mine = mine

    def _log_in(self, mine: Operator) -> None:
        """Let the operator's clients be configured, as at run time."""
        registry = mine.registry
        logins = [e for e in registry.entries if e.role is Role.LOGIN]
        for entry in [*logins, *default_logins(registry)]:
            now = self._run.clock.now().wall
            try:
                self.finish(run_activity(mine, entry, 0, now), "its login")
            except CheckProblem:
                raise
            except Exception:  # a login for another cluster is of no use here
                continue

    def finish(self, work: Coroutine[Any, Any, Any], what: str) -> Any:
        """Run a coroutine of the author, and serve its clients until it ends.

        Raises `CheckProblem` if it takes too long.
        """
        assert self._serving is not None, "it has been opened"
        haste = Haste(_STARTUP_SECONDS)

        async def hasty() -> Any:
            HASTE.set(haste)
            return await work

        hurrying = hasty()
        try:
            running = asyncio.run_coroutine_threadsafe(hurrying, self._serving.loop)
        except RuntimeError:  # the loop is closed
            hurrying.close()
            work.close()
            raise self._unfit() from None
        running.add_done_callback(lambda _: self._door.ask(lambda: None))
        is_done = self._door.serve(lambda: running.done() or self._has_ended)
        haste.end()
        if self._problem is not None or (is_done and not running.done()):
            raise self._unfit()
        if not is_done:
            raise self._refusal(what)
        return running.result()

    # ------------------------------------------------- as what runs an operator

    @property
    def state(self) -> State:
        """The operator's state."""
        return self._run.machine.state

    def post(self, handler: str, manifest: Json) -> None:
        """Post an Event."""
        self._run.inbox.add(EventPosted(handler, manifest))

    def is_closed(self) -> bool:
        """Whether nothing can be posted any longer."""
        return self.is_over

    def call_soon_threadsafe(self, work: Callable[..., None], *given: Any) -> None:
        """Do something in the simulator's thread."""
        self._door.ask(partial(work, *given))

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """End the process at once: whatever it still asks for is refused."""
        if self.is_over:
            return
        self.is_over = True
        self._front.shut()
        if self._serving is not None:
            if self._mine is not None:
                self.threads.close()
            self._serving.end()
        self.signals.end()
        self._thread.join(self._all.end_seconds)
        if self._thread.is_alive():  # the author's code keeps it
            self._all.end_seconds = _LEAST_END_SECONDS

    async def clean_up(self) -> None:
        """Let cleanup handlers close servers, sessions and threads of the process.

        A crash ends these without any handler. Handlers cannot reach the cluster here.
        """
        for entry in [] if self._mine is None else self._mine.registry.entries:
            if self._mine is not None and entry.role is Role.CLEANUP:
                with suppress(Exception):
                    await run_activity(self._mine, entry, 0, 0.0)
