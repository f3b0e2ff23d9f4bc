"""Plans of operators, for clusters that are simulated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.effects.values import thaw_json
from fnop.interpreters.cluster import Cluster, answer
from fnop.interpreters.plan.changes import is_planned
from fnop.interpreters.plan.facts import Plan, Write
from fnop.interpreters.plan.masking import Masking
from fnop.interpreters.plan.planner import Planner
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse

__all__ = [
    "Served",
    "due_of",
    "labels",
    "planned",
    "planner_of",
    "sent_as_planned",
]


class Served:
    """A simulated cluster behind the protocol, which records its requests.

    `refuses` returns whether a request is forbidden. `meanwhile` is called once, after
    this number of requests.
    """

    def __init__(
        self,
        cluster: Cluster,
        wall: float,
        refuses: Callable[[ApiRequest], bool] = lambda request: False,
    ) -> None:
        self.cluster = cluster
        self.requests: list[ApiRequest] = []
        self.meanwhile: dict[int, Callable[[Served], None]] = {}
        self._wall = wall
        self._refuses = refuses

    async def send(self, request: ApiRequest) -> ApiResponse:
        self.requests.append(request)
        if self._refuses(request):
            status = {"kind": "Status", "message": "you may not", "reason": "Forbidden"}
            return ApiResponse(403, status)
        response = self.request(request)
        change = self.meanwhile.pop(len(self.requests), None)
        if change is not None:
            change(self)
        return response

    def request(self, request: ApiRequest) -> ApiResponse:
        """Answer a request."""
        self.cluster, response, _ = answer(self.cluster, request, self._wall)
        return response


def planner_of(
    handlers: Registry | Iterable[Handler],
    served: Served,
    wall: float,
    settings: Settings | None = None,
    *,
    masking: Masking | None = None,
) -> Planner:
    """A planner that waits for nothing."""
    if isinstance(handlers, Registry):
        handlers = handlers.handlers
    program = Program(tuple(handlers), settings or Settings())

    async def pause(seconds: float) -> None:
        pass

    return Planner(program, served, wall=wall, pause=pause, masking=masking)


def planned(planner: Planner, rounds: int = 1, **options: bool) -> Plan:
    """The plan, made to its end."""
    return asyncio.run(planner.plan(rounds, **options))


def labels(plan: Plan, *, own: bool = False) -> dict[str, str]:
    """The actions by the names of the objects; with `own` also of mere notes."""
    return {
        each.place.label: "+".join(each.actions)
        for each in plan.changes
        if own or not each.is_own
    }


def due_of(plan: Plan) -> set[tuple[str, str, str, str]]:
    """The calls of a takeover: why, the reason, the handler, the object."""
    return {
        (each.why, each.reason, each.source.handler, place.name)
        for each in plan.due or ()
        for place in each.places
    }


def sent_as_planned(planner: Planner, sent: Iterable[ApiRequest]) -> list[str]:
    """The differences between the planned writes of round 1 and the sent ones.

    Requests about different objects may come in another order. Events are skipped:
    their names and times depend on the process.
    """
    assert planner.first is not None
    assert planner.second is not None
    twins = {each.identity: each for each in planner.second.seen.writes}
    rest = [each for each in sent if each.method != "GET" and not _is_event(each)]
    problems = []
    for write in planner.first.seen.writes:
        if write.round > 1 or write.is_event:
            continue
        twin = twins.get(write.identity)
        found = next((e for e in rest if is_planned(write, twin, _facts(e))), None)
        if found is None:
            problems.append(f"not sent: {_told(write)}")
        else:
            rest.remove(found)
    problems += [f"not planned: {e.method} {e.path} {e.body}" for e in rest]
    return problems


def _facts(request: ApiRequest) -> dict[str, Any]:
    return {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "content_type": request.content_type,
        "body": thaw_json(request.body),
    }


def _is_event(request: ApiRequest) -> bool:
    return "/events" in request.path


def _told(write: Write) -> str:
    return f"{write.method} {write.path} {write.body}"
