"""A Kopf operator as a program for `fnop plan`, which calls no handler of objects.

Startup handlers run: they choose the storages and the finalizer. Functions of indices
and filters run, too.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from fnop.adapters.common.endings import fail
from fnop.adapters.kopf.commands.loading import loaded
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.deciding import Deciding
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.startup import ActivityError, program_of, start
from fnop.adapters.kopf.running.translation import Unsupported
from fnop.core.handlers.declare.lifecycles import all_at_once
from fnop.core.handlers.program.program import Program
from fnop.interpreters.runtime.machine import Machine

__all__ = ["author_loop", "planned_by", "planned_operator"]

Planned: TypeAlias = "tuple[Program, Callable[[Machine], None]]"


@contextmanager
def planned_operator(
    paths: Sequence[str], modules: Sequence[str], namespaces: Sequence[str]
) -> Iterator[Planned]:
    """The program, and a function to call with the machine of each rehearsal.

    The command ends if the operator cannot be loaded, or does not start.
    """
    registry = loaded(paths, modules)
    settings = OperatorSettings()
    # Where the whole cluster is planned, peers are of no interest.
    settings.peering.standalone = True
    with author_loop() as loop:
        mine = Operator(registry, settings, None, loop)
        try:
            asyncio.run_coroutine_threadsafe(start(mine), loop).result()
            found = planned_by(mine, namespaces)
        except (ActivityError, Unsupported) as problem:
            fail(str(problem))
        try:
            yield found
        finally:
            settings.execution.executor.shutdown(wait=False)


def planned_by(mine: Operator, namespaces: Sequence[str]) -> Planned:
    """The program of an operator that has started, and the function for its rehearsals.

    All handlers of a change are called at once: in a plan no call ends, and the next
    one must not wait for that. Raises `Unsupported`, as a run does.
    """
    program = program_of(mine, namespaces)
    settings = program.settings.replace(lifecycle=all_at_once)

    def begins(machine: Machine) -> None:
        mine.running = Deciding(machine)

    return Program(program.handlers, settings), begins


@contextmanager
def author_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread, for the operator's own coroutines."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="author", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
