"""A Kopf operator as a program for `fnop plan`, which calls no handler of objects.

Startup handlers run: they choose the storages and the finalizer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fnop.adapters.common.endings import fail, warn
from fnop.adapters.kopf.commands.loading import loaded
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.declaring.storages import PREFIX
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.startup import ActivityError, program_of, start
from fnop.adapters.kopf.running.translation import Unsupported
from fnop.core.handlers.program.program import Program
from fnop.core.memory.takeover import Predecessor

__all__ = ["author_loop", "planned_operator"]


@contextmanager
def planned_operator(
    paths: Sequence[str], modules: Sequence[str], namespaces: Sequence[str]
) -> Iterator[tuple[Program, Predecessor]]:
    """The program, and the marks that the operator has left on handled objects.

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
            program = program_of(mine, namespaces)
        except (ActivityError, Unsupported) as problem:
            fail(str(problem))
        if registry.indices:
            warn("filters that look into indices find them empty in a plan")
        try:
            yield program, _marks(settings)
        finally:
            settings.execution.executor.shutdown(wait=False)


def _marks(settings: OperatorSettings) -> Predecessor:
    """The finalizer, the annotations and the status field of the operator."""
    storages = settings.persistence
    prefix = getattr(storages.progress_storage, "prefix", PREFIX)
    return Predecessor(prefix, storages.finalizer)


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
