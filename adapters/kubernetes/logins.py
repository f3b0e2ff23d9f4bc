"""Login handlers: sources of credentials that no kubeconfig has.

fnop calls them before anything else. It calls them again whenever the server rejects
their credentials, and when these have expired.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem, Logins
from fnop.adapters.kubernetes.login_and_probes import Surroundings, perform
from fnop.core.handlers.declare.connection import ConnectionInfo, chosen
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.run.invocation import failure_of
from fnop.core.memory.progress import Progress, judge_failure
from fnop.core.seam.commands import Say
from fnop.core.values.errors import PermanentError

__all__ = ["HandledLogins"]

# The longest attempt without an explicit `timeout`.
ATTEMPT_SECONDS = 60.0


class HandledLogins:
    """Logs in by handlers (`fnop.adapters.kubernetes.kubeconfig.Logins`).

    `fallback` finds the kubeconfig or the pod's account if no handler has an answer.
    """

    def __init__(
        self,
        handlers: tuple[Handler, ...],
        around: Surroundings,
        fallback: Callable[[], Logins],
    ) -> None:
        self._handlers = handlers
        self._around = around
        self._fallback = fallback
        self._current: ConnectionInfo | None = None
        self._found: Logins | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the kubeconfig, if no handler has had an answer."""
        return () if self._found is None else self._found.files

    async def login(self) -> ConnectionInfo:
        """Call all handlers, and use the best answer, if possible not the last one.

        Raises `ConfigurationProblem`.
        """
        found, problems = [], []
        for handler in self._handlers:
            try:
                info = await self._ask(handler)
            except _Failed as problem:
                problems.append(str(problem))
                continue
            if info is not None:
                found.append(info)
        wall = self._around.clock.now().wall
        best = chosen(found, self._current, wall)
        if best is None and (found or problems):
            expired = "what the login handlers have answered has expired"
            raise ConfigurationProblem("; ".join(problems) or expired)
        self._current, before = best, self._found
        if best is not None:
            self._found = None
            return best
        self._found = before or self._fallback()
        return await self._found.login()

    async def _ask(self, handler: Handler) -> ConnectionInfo | None:
        """Call a handler until it has an answer. Raises `_Failed` if it never will."""
        around = self._around
        progress = Progress("login", started=around.clock.now().wall)
        while True:
            try:
                return await self._attempt(handler, progress)
            except Exception as problem:
                failure = failure_of(problem)
            judgement = judge_failure(
                progress,
                failure,
                around.clock.now(),
                errors=handler.errors,
                timeout=handler.timeout,
                retries=handler.retries,
                backoff=handler.backoff_or(around.settings.default_backoff),
            )
            progress = judgement.progress
            line = f"login handler {handler.id} {judgement.line}"
            exception = None if failure.is_expected else failure.exception
            around.say(
                Say(
                    judgement.level,
                    line,
                    handler=handler.id,
                    error=str(failure),
                    exception=exception,
                )
            )
            if progress.has_succeeded:  # its errors are ignored
                return None
            if judgement.was_last:  # waiting for its deadline would gain nothing
                raise _Failed(line)
            now = around.clock.now()
            await asyncio.sleep(progress.due_at(now) - now.mono)

    async def _attempt(
        self, handler: Handler, progress: Progress
    ) -> ConnectionInfo | None:
        limit = ATTEMPT_SECONDS if handler.timeout is None else handler.timeout
        found = await perform(
            handler,
            self._around,
            timeout=limit,
            retry=progress.retries,
            started=progress.started,
        )
        if found is None or isinstance(found, ConnectionInfo):
            return found
        raise PermanentError(
            f"it answers {type(found).__name__}, and not fnop.ConnectionInfo or None"
        )


class _Failed(Exception):
    """A login handler has failed for good; the text is its line."""
