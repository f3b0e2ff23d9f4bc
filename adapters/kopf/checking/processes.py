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
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import packages_distributions
from types import ModuleType
from typing import Any

from fnop.adapters.common.loading import is_authors_module
from fnop.adapters.kopf.arguments.stopping import DaemonStopped
from fnop.adapters.kopf.checking.door import PATIENCE_SECONDS, Door
from fnop.adapters.kopf.checking.front import Front
from fnop.adapters.kopf.checking.strands import (
    STRAND,
    Strand,
    Strands,
    VirtualStopped,
)
from fnop.adapters.kopf.checking.values import simulate_values
from fnop.adapters.kopf.commands.loading import loaded
from fnop.adapters.kopf.declaring.registry import (
    OperatorRegistry,
    set_default_registry,
)
from fnop.adapters.kopf.declaring.settings import OperatorSettings
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
from fnop.core.values.now import Now
from fnop.interpreters.runtime.clock import Clock
from fnop.interpreters.runtime.machine import Observer
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["Process", "Processes", "checked_operator"]

Json = dict[str, Any]

_LOG = logging.getLogger()
# The pauses between attempts of startup handlers that a check waits for, in virtual
# seconds.
_STARTUP_SECONDS = 3600.0
# The time that a thread may keep others waiting; with it a check takes two thirds.
_SWITCH_SECONDS = 0.0003
# The longest time in which the tasks of a process end with it, in real seconds.
_END_SECONDS = 1.0


@contextmanager
def checked_operator(
    paths: Sequence[str], modules: Sequence[str] = ()
) -> Iterator[Processes]:
    """The files and modules of an operator that is checked within the block."""
    found, chance = Processes(paths, modules), random.getstate()
    # The simulator and the handlers wait for each other all the time.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    silent = logging.NullHandler()
    _LOG.addHandler(silent)  # otherwise Python itself prints warnings and errors
    try:
        yield found
    finally:
        found.close()
        sys.setswitchinterval(interval)
        gc.collect()  # asyncio logs tasks that have ignored their cancellation
        _LOG.removeHandler(silent)
        random.setstate(chance)


class Processes:
    """The files and modules of an operator, and the one process that lives now."""

    def __init__(self, paths: Sequence[str], modules: Sequence[str] = ()) -> None:
        self._paths, self._modules = paths, modules
        # All other modules of its author are loaded again.
        self._before = frozenset(sys.modules)
        own = {each.partition(".")[0] for each in modules}
        self._installed = packages_distributions().keys() - own
        self._registry = OperatorRegistry.default
        self._present: Process | None = None
        self.has_webhooks = False
        # Some clients read where it is while they are imported.
        self._front = Front()

    def load(self) -> OperatorRegistry:
        """Load the operator again; return what it declares.

        The command ends if it cannot be loaded, or declares nothing.
        """
        self._forget()
        set_default_registry(OperatorRegistry())
        return loaded(self._paths, self._modules)

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
        registry = self.load()
        mutating = [e.id for e in registry.entries if ROLES[e.role].mutates]
        if mutating:
            raise CheckProblem(
                f"the admission handler {mutating[0]} changes objects, and a check "
                "calls no admission handlers: the operator cannot be checked"
            )
        self.has_webhooks = registry.has_webhooks
        mine = Operator(registry, OperatorSettings(), None, asyncio.new_event_loop())
        mine.loop.close()
        return _program_of(mine)

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


def _program_of(mine: Operator) -> Program:
    """The program of an operator, without its admission handlers and its peers."""
    try:
        program = program_of(mine, ())
    except Unsupported as problem:
        raise CheckProblem(str(problem)) from problem
    handlers = tuple(e for e in program.handlers if e.role not in ADMISSION)
    return Program(handlers, program.settings.replace(peering=None))


class _Checked(Operator):
    """An operator whose handlers wait in virtual time."""

    def __init__(self, process: Process, *given: Any) -> None:
        super().__init__(*given)
        self._process = process
        # The calls about each object that wait for their turn.
        self._queues: defaultdict[str, deque[Strand]] = defaultdict(deque)

    def stop_flag(self, loop: asyncio.AbstractEventLoop | None) -> DaemonStopped:
        return VirtualStopped(loop)

    async def in_turn(self, uid: str, work: Callable[[], Awaitable[Any]]) -> Any:
        strand, queue = STRAND.get(), self._queues[uid]
        while self.is_in_turn(uid):  # another call of the object sleeps
            queue.append(strand)
            try:
                await strand.asleep(None)
            finally:
                if strand in queue:
                    queue.remove(strand)
        try:
            return await super().in_turn(uid, work)
        finally:
            if queue:
                queue.popleft().comes_due()

    def to_its_end(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._process.finish(work, "an index function")


class _Ahead:
    """The clock of startup handlers: their pauses take no time of the world."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._seconds = clock, 0.0

    def now(self) -> Now:
        wall, mono = self._clock.now()
        return Now(wall + self._seconds, mono + self._seconds)

    async def sleep(self, seconds: float) -> None:
        self._seconds += max(seconds, 0.001)
        if self._seconds > _STARTUP_SECONDS:
            raise ActivityError("the startup handlers fail again and again")
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
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_Threads())
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="author", daemon=True
        )
        self.threads = Strands(run.clock, self._loop, self._door)
        self.program = run.machine.program
        self.functions: Mapping[str, Callable[..., Any]] = {}
        self.observers: tuple[Observer, ...] = ()
        self.is_over = False
        self._mine: Operator | None = None

    def start(self) -> None:
        """Load the operator, and run its startup handlers and its logins.

        Raises `CheckProblem` if that fails.
        """
        self._thread.start()
        run = self._run
        self._front.serve(self._door, run.request)
        random.seed(run.draws.seed)
        registry = self._all.load()
        modules = self._all.own_modules.values()
        simulate_values(modules, run.clock, run.draws.draw)
        settings = OperatorSettings()
        settings.peering.standalone = True
        settings.execution.executor = _Threads()
        clock = _Ahead(run.clock)
        mine = _Checked(self, registry, settings, None, self._loop, clock)
        try:
            self.finish(start(mine, clock.sleep), "its startup")
        except ActivityError as problem:
            raise CheckProblem(str(problem)) from problem
        mine.clock = run.clock
        settings.execution.executor = _Threads()  # whatever its startup has chosen
        self._log_in(mine)
        self.program = _program_of(mine)
        own = [e for e in self.program.handlers if e.function.startswith("kopf:")]
        self.functions = {each.function: each.fn for each in own}
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
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        running.add_done_callback(lambda _: self._door.ask(lambda: None))
        if not self._door.serve(running.done):
            raise CheckProblem(
                f"{what} has not ended within {PATIENCE_SECONDS:g} s: it waits for "
                "something outside of the simulated cluster, and cannot be checked"
            )
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
        self.threads.close()
        with suppress(TimeoutError):  # the author's code may keep the loop
            for ends in (_cancel_all, self._clean_up):
                ending = asyncio.run_coroutine_threadsafe(ends(), self._loop)
                ending.result(_END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    async def _clean_up(self) -> None:
        """Let cleanup handlers close servers, sessions and threads of the process.

        A crash ends these without any handler. Handlers cannot reach the cluster here.
        """
        for entry in [] if self._mine is None else self._mine.registry.entries:
            if self._mine is not None and entry.role is Role.CLEANUP:
                with suppress(Exception):
                    await run_activity(self._mine, entry, 0, 0.0)


async def _cancel_all() -> None:
    """Cancel all tasks of this loop, and wait for them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
