"""A Kopf operator for `fnop replay`, which calls no handler of objects.

The answers of handlers are those of the recording. Startup handlers run: they choose
the storages and the finalizer. So do filters and index functions, which only decide.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct

from fnop.adapters.common.endings import EXIT_USAGE, fail
from fnop.adapters.common.loading import authors_place
from fnop.adapters.kopf.checking.programs import Signals, signals_noted
from fnop.adapters.kopf.commands.finder import install
from fnop.adapters.kopf.commands.loading import loaded, refuse_empty
from fnop.adapters.kopf.commands.planning import author_loop
from fnop.adapters.kopf.commands.program import run_program
from fnop.adapters.kopf.declaring.registry import OperatorRegistry, get_default_registry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.deciding import Deciding
from fnop.adapters.kopf.running.embedding import Options, Serving
from fnop.adapters.kopf.running.handlers import handlers_of
from fnop.adapters.kopf.running.logins import DEFAULT_LOGINS
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.startup import ActivityError, program_of, start
from fnop.adapters.kopf.running.translation import Unsupported
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import text_of
from fnop.interpreters.runtime.machine import Machine

__all__ = ["KopfReplay", "replayed_operator"]

# The longest time in which a program starts an operator, and the next one after it.
_START_SECONDS, _NEXT_SECONDS = 20.0, 2.0
# The longest time in which a program ends after its operator.
_END_SECONDS = 1.0


class _Parts(Struct, frozen=True):
    """The parts of an operator; its coroutines run on the `loop`."""

    registry: OperatorRegistry
    settings: OperatorSettings
    memo: Any
    lifecycle: Any
    loop: asyncio.AbstractEventLoop

    def operator(self) -> Operator:
        """A new process of the operator."""
        return Operator(self.registry, self.settings, self.memo, self.loop)

    @property
    def handlers(self) -> set[str]:
        """The ids of its handlers, without default logins."""
        found = handlers_of(self.operator())
        if self.registry is get_default_registry():
            found = (*found, *default_registry.handlers)
        return {each.id for each in found}


class KopfReplay:
    """An operator whose recorded decisions are made again."""

    def __init__(
        self,
        parts: _Parts,
        namespaces: Sequence[str] | None,
        handlers: Sequence[str],
    ) -> None:
        self._parts, self._namespaces = parts, namespaces or ()
        self._handlers = handlers
        self.program = self._program_of(parts.operator())

    def _program_of(self, mine: Operator) -> Program:
        return program_of(
            mine,
            self._namespaces,
            lifecycle=self._parts.lifecycle,
            recorded=self._handlers,
        )

    def begin(self, recorded: Settings) -> Machine:
        """The machine of a new process, with the recorded settings.

        The operator has no values of an earlier process, such as indices.
        """
        mine = self._parts.operator()
        program = self._program_of(mine)
        settings = program.settings.replace(
            **{name: getattr(recorded, name) for name in _RECORDED}
        )
        machine = Machine(Program(program.handlers, settings))
        mine.serves(Deciding(machine), self._parts.loop)
        return machine


# The settings that a run has from its command line and its place.
_RECORDED = (
    "namespaces",
    "peering",
    "explain",
    "traces",
    "wait_for_kinds",
    "guard",
)


@contextmanager
def replayed_operator(
    paths: Sequence[str],
    modules: Sequence[str],
    *,
    is_program: bool,
    handlers: Sequence[str],
    namespaces: Sequence[str] | None,
) -> Iterator[KopfReplay]:
    """The operator of some files: its startup handlers have run.

    If it `is_program`, the first file or module starts the operator itself. `handlers`
    are the ids of the recorded ones: a program may start several operators. The command
    ends if there is no operator, or if it does not start.
    """
    with _parts(paths, modules, is_program=is_program, handlers=handlers) as parts:
        # The recorded peers are those of the recording.
        parts.settings.peering.standalone = True
        try:
            work = start(parts.operator(), _give_up)
            asyncio.run_coroutine_threadsafe(work, parts.loop).result()
            found = KopfReplay(parts, namespaces, handlers)
        except (ActivityError, Unsupported) as problem:
            fail(str(problem), EXIT_USAGE)
        try:
            yield found
        finally:
            parts.settings.execution.executor.shutdown(wait=False)


async def _give_up(seconds: float) -> None:
    """Stands for the pause after a startup handler that has failed."""
    raise ActivityError(
        "a startup handler fails, and a replay needs the settings that it chooses; run "
        "the replay where it succeeds"
    )


@contextmanager
def _parts(
    paths: Sequence[str],
    modules: Sequence[str],
    *,
    is_program: bool,
    handlers: Sequence[str],
) -> Iterator[_Parts]:
    if is_program:
        logins = {each.__name__ for each in DEFAULT_LOGINS}
        with _started(paths, modules, {*handlers} - logins) as parts:
            yield parts
        return
    with _by_command(loaded(paths, modules, broken=EXIT_USAGE)) as parts:
        yield parts


@contextmanager
def _by_command(registry: OperatorRegistry) -> Iterator[_Parts]:
    """The parts of an operator that a command runs: no program gives it any."""
    with author_loop() as loop:
        yield _Parts(registry, OperatorSettings(), None, None, loop)


# ---------------------------------------------------------------------- programs


class _Started(Serving):
    """Stands for an operator that a program starts: it serves nothing, and waits."""

    def __init__(self, started: SimpleQueue[Any], options: Options) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about namespaces
            super().__init__(options)
        self._started = started

    async def run(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._started.put(self)
        await self._over.wait()

    def parts(self) -> _Parts:
        """The parts that the program has given."""
        options = self._options
        return _Parts(
            self._registry,
            self._settings,
            options.get("memo"),
            options.get("lifecycle"),
            self._loop,
        )

    def end(self) -> None:
        """Let `run` end; from any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._over.set)


@contextmanager
def _started(
    paths: Sequence[str], modules: Sequence[str], handlers: set[str]
) -> Iterator[_Parts]:
    """The parts of an operator that a program starts, and that runs with the block.

    The command ends if it starts none, and declares no handlers either.
    """
    install()
    given = [paths[0]] if paths else ["-m", modules[0]]
    started: SimpleQueue[Any] = SimpleQueue()
    signals, argv, found = Signals(), sys.argv, list[_Started]()
    play = threading.Thread(
        target=_play, args=(given, started), name="author", daemon=True
    )
    with signals_noted(lambda: signals):
        Serving.present = partial(_Started, started)
        try:
            with redirect_stdout(sys.stderr):  # the result alone is printed there
                play.start()
                problem = _collect(started, handlers, found)
            if found:
                yield min(
                    (each.parts() for each in found),
                    key=lambda each: len(each.handlers ^ handlers),
                )
            else:
                with _declared(given[-1], problem) as parts:
                    yield parts
        finally:
            Serving.present = Serving
            for each in found:
                each.end()
            signals.end()
            play.join(_END_SECONDS)
            sys.argv = argv


def _play(given: Sequence[str], started: SimpleQueue[Any]) -> None:
    """Run the program, and note its end."""
    problem: BaseException | None = None
    try:
        run_program(given)
    except BaseException as found:
        problem = found
    started.put(problem)


def _collect(
    started: SimpleQueue[Any], handlers: set[str], found: list[_Started]
) -> BaseException | None:
    """Collect the operators that a program starts; return the problem that ends it.

    The one that has the recorded handlers is the last.
    """
    with suppress(Empty):
        while True:
            news = started.get(timeout=_NEXT_SECONDS if found else _START_SECONDS)
            if not isinstance(news, _Started):
                return news  # type: ignore[no-any-return]  # a problem, or None
            found.append(news)
            if news.parts().handlers == handlers:
                break
    return None


@contextmanager
def _declared(name: str, problem: BaseException | None) -> Iterator[_Parts]:
    """The operator of a program that has started none: another one runs it."""
    if problem is not None:
        place = authors_place(problem) or name
        fail(
            f"{place}: {type(problem).__name__}: {text_of(problem)}; a replay starts "
            f"{name} without arguments: set the variables that it needs",
            EXIT_USAGE,
        )
    registry = get_default_registry()
    refuse_empty(registry, (name,))
    with _by_command(registry) as parts:
        yield parts
