"""The start of a Kopf operator: its startup handlers, and then its program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fnop.adapters.kopf.declaring.lifecycles import get_default_lifecycle
from fnop.adapters.kopf.declaring.registry import Entry, get_default_registry
from fnop.adapters.kopf.running.calls import CLOCK
from fnop.adapters.kopf.running.handlers import handlers_of, run_activity
from fnop.adapters.kopf.running.logins import default_logins
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.translation import settings_of
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.invocation import failure_of
from fnop.core.memory.progress import Progress, judge_failure

__all__ = ["ActivityError", "program_of", "start"]


class ActivityError(Exception):
    """Raised if a startup handler has failed for good; the text names it."""


async def start(mine: Operator) -> None:
    """Run the startup handlers, one after the other; retry those that fail.

    They may change the settings. Raises `ActivityError`.
    """
    for entry in mine.registry.entries:
        if entry.role is Role.STARTUP:
            await _begin(mine, entry)


async def _begin(mine: Operator, entry: Entry) -> None:
    options, progress = entry.options, Progress("startup", started=CLOCK.now().wall)
    while True:
        try:
            await run_activity(
                mine, entry, progress.retries, progress.started or CLOCK.now().wall
            )
            return
        except Exception as problem:
            now = CLOCK.now()
            default = mine.settings.execution.default_backoff
            judgement = judge_failure(
                progress,
                failure_of(problem),
                now,
                errors=mine.errors_of(entry),
                timeout=options.get("timeout"),
                retries=options.get("retries"),
                backoff=options.get("backoff", default),
            )
            progress = judgement.progress
            if progress.has_succeeded:
                return
            if judgement.was_last:
                raise ActivityError(
                    f"the startup handler {entry.id} has failed: {problem}"
                ) from problem
            await asyncio.sleep(max(0.0, progress.due_at(now) - now.mono))


def program_of(
    mine: Operator,
    namespaces: Sequence[Any],
    *,
    lifecycle: Any = None,
    identity: str = "",
    traces: bool = False,
) -> Program:
    """The program of an operator, with its settings as they are now.

    With Kopf's default registry it has fnop's handlers, too: an operator may have both.
    Raises `Unsupported` for what fnop cannot do in their place.
    """
    handlers = handlers_of(mine, default_logins(mine.registry))
    if mine.registry is get_default_registry():
        handlers = (*handlers, *default_registry.handlers)
    mine.states.know(handlers)
    mine.lifecycle = lifecycle or get_default_lifecycle()
    settings = settings_of(
        mine.settings, namespaces, mine.lifecycle, mine.states, identity
    )
    return Program(handlers, settings.replace(traces=traces))
