"""Liveness and readiness over HTTP, and the probes of the operator's author.

Probes run next to the operator: all at once, each with its own timeout, and at most
once per interval. An answer waits only a moment for them, and then reports what is
known. A probe that hangs makes the answer "no" after its timeout, but never delays it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson
from msgspec import Struct

from fnop.adapters.kubernetes.login_and_probes import Overdue, Surroundings, perform
from fnop.adapters.serving.endpoints import Endpoint, HttpAnswer, PageFunction
from fnop.core.handlers.declare.handler import Handler
from fnop.core.operator.health import Health
from fnop.effects.values import freeze_json

__all__ = ["READY_PATH", "Probes", "pages_of"]

READY_PATH = "/readyz"
# The seconds for which a result is valid (Kopf's figure).
FRESH_SECONDS = 10.0
# The longest duration of a probe without a `timeout`.
PROBE_SECONDS = 5.0
# The longest wait of an answer for its probes: half of a kubelet's timeout.
PATIENCE_SECONDS = 0.5


class Result(Struct, frozen=True):
    """The answer of a probe, or the reason of its failure, at a monotonic time."""

    at: float
    value: Any = None
    problem: str = ""


class Probes:
    """The probe handlers of an operator, with their last answers."""

    def __init__(self, handlers: tuple[Handler, ...], around: Surroundings) -> None:
        self._handlers = handlers
        self._around = around
        self._results: dict[str, Result] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def results(self) -> tuple[dict[str, Any], list[str]]:
        """The answers by handler id, except for None; and the failed probes."""
        for handler in self._handlers:
            if handler.id not in self._running and not self._is_fresh(handler):
                task = asyncio.create_task(self._run(handler))
                self._running[handler.id] = task
                task.add_done_callback(partial(self._ended, handler.id))
        if self._running:
            await asyncio.wait([*self._running.values()], timeout=PATIENCE_SECONDS)
        known = {
            each.id: self._results[each.id]
            for each in self._handlers
            if each.id in self._results
        }
        values = {
            id: result.value for id, result in known.items() if result.value is not None
        }
        return values, [each.problem for each in known.values() if each.problem]

    def _ended(self, id: str, task: asyncio.Task[None]) -> None:
        del self._running[id]

    def _is_fresh(self, handler: Handler) -> bool:
        last = self._results.get(handler.id)
        now = self._around.clock.now().mono
        return last is not None and now - last.at < FRESH_SECONDS

    async def _run(self, handler: Handler) -> None:
        limit = PROBE_SECONDS if handler.timeout is None else handler.timeout
        value, problem = None, ""
        try:
            found = await perform(handler, self._around, timeout=limit)
            value = freeze_json(found, f"the answer of the probe {handler.id}")
        except Overdue:
            problem = f"the probe {handler.id} has not answered within {limit:g} s"
        except Exception as raised:
            why = f"{type(raised).__name__}: {raised}".rstrip(": ")
            problem = f"the probe {handler.id} failed: {why}"
        now = self._around.clock.now().mono
        self._results[handler.id] = Result(now, value, problem)

    async def close(self) -> None:
        """Stop probing."""
        tasks = [*self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pages_of(
    endpoint: Endpoint, health: Callable[[], Health], probes: Probes
) -> dict[Endpoint, PageFunction]:
    """Liveness at the endpoint, and readiness next to it.

    Alive is 200 with the answers of the probes by their ids, as in Kopf; not alive is
    503 with the reasons. With `?verbose`, each page shows everything known.
    """

    async def live(query: Mapping[str, str], headers: Mapping[str, str]) -> HttpAnswer:
        values, failed = await probes.results()
        found = health()
        return _answer(found, [*found.stuck, *failed], values, "verbose" in query)

    async def ready(query: Mapping[str, str], headers: Mapping[str, str]) -> HttpAnswer:
        found = health()
        return _answer(found, [*found.problems], {}, "verbose" in query)

    pages: dict[Endpoint, PageFunction] = {endpoint.at(READY_PATH): ready}
    pages[endpoint] = live
    return pages


def _answer(
    health: Health, problems: list[str], values: dict[str, Any], is_verbose: bool
) -> HttpAnswer:
    body: dict[str, Any] = values
    if problems or is_verbose:
        body = {"problems": problems, "probes": values}
    if is_verbose:
        body["operator"] = health.summary()
    return HttpAnswer(503 if problems else 200, orjson.dumps(body))
