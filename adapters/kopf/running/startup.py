"""The start of a Kopf operator: its startup handlers, and then its program."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from fnop.adapters.kopf.declaring.lifecycles import get_default_lifecycle
from fnop.adapters.kopf.declaring.registry import Entry, get_default_registry
from fnop.adapters.kopf.running.handlers import handlers_of, run_activity
from fnop.adapters.kopf.running.logins import default_logins
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.translation import settings_of
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.invocation import failure_of
from fnop.core.memory.progress import Progress, judge_failure, succeeded

__all__ = ["ActivityError", "program_of", "start"]


class ActivityError(Exception):
    """Raised if a startup handler has failed for good; the text names it."""


async def start(
    mine: Operator, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Run the startup handlers in rounds, as Kopf does; retry those that fail.

    In a round, all that are due run one after the other. They may change the settings.
    Raises `ActivityError` when all have ended and one of them has failed, or if there
    is no time left to `sleep`, which raises `TimeoutError` then.
    """
    begun = mine.clock.now().wall
    waiting = [
        (entry, Progress("startup", started=begun))
        for entry in mine.registry.entries
        if entry.role is Role.STARTUP
    ]
    failure: ActivityError | None = None
    while waiting:
        left = []
        for entry, progress in waiting:
            now = mine.clock.now()
            if progress.due_at(now) > now.mono:
                left.append((entry, progress))
                continue
            try:
                after = await _attempted(mine, entry, progress)
            except ActivityError as problem:
                if mine.exit is not None:
                    raise
                failure = failure or problem
                continue
            if not after.has_succeeded:
                left.append((entry, after))
        waiting, now = left, mine.clock.now()
        if waiting:
            due = min(progress.due_at(now) for _, progress in waiting)
            try:
                await sleep(max(0.0, due - now.mono))
            except TimeoutError as problem:
                entry, progress = waiting[0]
                raise ActivityError(
                    f"the startup handler {entry.id} fails again and again: "
                    f"{progress.message}"
                ) from problem
    if failure is not None:
        raise failure


async def _attempted(mine: Operator, entry: Entry, progress: Progress) -> Progress:
    """The progress of a startup handler after one attempt.

    Raises `ActivityError` if it has failed for good.
    """
    options, started = entry.options, progress.started or 0.0
    try:
        await run_activity(mine, entry, progress.retries, started)
    except Exception as problem:
        if mine.exit is not None:
            raise ActivityError(
                f"the startup handler {entry.id} ends the operator: {problem}"
            ) from problem
        judgement = judge_failure(
            progress,
            failure_of(problem),
            mine.clock.now(),
            errors=mine.errors_of(entry),
            timeout=options.get("timeout"),
            retries=options.get("retries"),
            backoff=options.get("backoff", mine.settings.execution.default_backoff),
            as_kopf=True,
        )
        if judgement.was_last and not judgement.progress.has_succeeded:
            raise ActivityError(
                f"the startup handler {entry.id} has failed: {problem}"
            ) from problem
        return judgement.progress
    return succeeded(progress)


def program_of(
    mine: Operator,
    namespaces: Sequence[Any],
    *,
    lifecycle: Any = None,
    identity: str = "",
    traces: bool = False,
    recorded: Collection[str] | None = None,
) -> Program:
    """The program of an operator, with its settings as they are now.

    With Kopf's default registry it has fnop's handlers, too: an operator may have both.
    With the ids of `recorded` handlers, it has the default logins among them. Raises
    `Unsupported` for what fnop cannot do in their place.
    """
    handlers = handlers_of(mine, default_logins(mine.registry, recorded))
    if mine.registry is get_default_registry():
        handlers = (*handlers, *default_registry.handlers)
    mine.states.know(handlers)
    mine.lifecycle = lifecycle or get_default_lifecycle()
    settings = settings_of(
        *(mine.settings, namespaces, mine.lifecycle, mine.states),
        mine.clock.now().wall,
        identity,
    )
    return Program(handlers, settings.replace(traces=traces))
