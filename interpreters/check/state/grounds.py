"""The world at one moment of a run, for trying writes without consequences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.core.admission.decisions import Decision, Denial
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import State
from fnop.core.seam.commands import Perform
from fnop.effects.structs import replace
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.cluster.access.reviews import ADMIN
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.protocol import (
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    User,
)
from fnop.interpreters.simulation.director import Director
from fnop.interpreters.simulation.externals import forked
from fnop.interpreters.simulation.simulation import SimulatedRun
from fnop.interpreters.simulation.watches import Delivery

__all__ = [
    "STRICT",
    "Asked",
    "Ground",
    "Objects",
    "Stored",
    "Tried",
    "fresh",
    "named",
    "placed",
]

# The server refuses a field that the kind does not have.
STRICT = (("fieldValidation", "Strict"),)

# The objects of a cluster, each with the group and the plural of its kind.
Objects = Iterator[tuple[tuple[str, str], dict[str, Any]]]


class Tried(Struct, frozen=True):
    """A write that was tried: the response, and the decisions about it.

    `reads` are the effects with which the handlers have read the world.
    """

    response: ApiResponse
    decisions: tuple[Decision, ...]
    cluster: Cluster
    reads: tuple[Perform, ...] = ()

    @property
    def denials(self) -> list[Denial]:
        """All denials."""
        return [each for one in self.decisions for each in one.denials]

    @property
    def is_denied(self) -> bool:
        """Whether one of the operator's handlers denied it."""
        return any(not each.allowed for each in self.decisions)


class Ground(Struct, frozen=True):
    """A cluster, the operator's state and its models at one moment."""

    program: Program
    wall: float
    cluster: Cluster
    state: State
    calls: Mapping[str, Any]

    def tried(self, request: ApiRequest, *, is_reviewed: bool = True) -> Tried:
        """The result of a write here; handlers are asked only if it is reviewed."""
        run = self.run()
        run.admission.is_registered = is_reviewed
        listener = _Listener()
        run.director, run.listener = listener, listener.hears
        response = run.request(request)
        found, reads = tuple(listener.decisions), tuple(listener.asked)
        return Tried(response, found, run.cluster, reads)

    def after(self, *requests: ApiRequest) -> Ground | None:
        """The ground after writes without reviews; None if one is refused."""
        ground = self
        for each in requests:
            found = ground.tried(each, is_reviewed=False)
            if found.response.status >= 300:
                return None
            ground = replace(ground, cluster=found.cluster)
        return ground

    def decision(self, request: Request, asks: Collection[str] = ()) -> Decision:
        """The decision of handlers about a write; `asks` are their ids, or all."""
        run = self.run()  # its reviews do not keep it alive
        return run.admission.decide(request, asks)

    def run(self) -> SimulatedRun:
        """An operator that answers here, and does nothing else."""
        clock = VirtualClock(self.wall)
        calls = forked(self.calls)
        run = SimulatedRun(self.program, self.cluster, clock=clock, calls=calls)
        run.machine.state = self.state
        run.ready = True
        return run

    def objects(self) -> Objects:
        """All objects that are stored here."""
        for resource, shelf in sorted(self.cluster.shelves.items()):
            for _, found in sorted(shelf.items()):
                yield resource, found


class Asked(Struct, frozen=True):
    """A decision, and its world."""

    decision: Decision
    ground: Ground


class Stored(Struct, frozen=True):
    """A stored object, its world, and its path there.

    It `is_new` as long as it is unchanged since it was created, or given.
    """

    found: dict[str, Any]
    ground: Ground
    path: str
    name: str
    is_given: bool
    is_new: bool

    def sends(
        self, method: str, body: Any = None, user: User = ADMIN, sub: str = ""
    ) -> ApiRequest:
        """A request about it."""
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        return ApiRequest(
            method, f"{self.path}{sub}", (), body, content_type=kind, user=user
        )

    def asked(self, request: ApiRequest) -> list[Asked]:
        """The decisions about a request."""
        found = self.ground.tried(request).decisions
        return [Asked(each, self.ground) for each in found]


_OF_SERVERS = frozenset(
    (
        *("uid", "resourceVersion", "generation", "creationTimestamp"),
        *("managedFields", "selfLink", "deletionTimestamp"),
    )
)


def fresh(found: Mapping[str, Any]) -> dict[str, Any]:
    """The object in the form in which a user creates it."""
    meta = {k: each for k, each in found["metadata"].items() if k not in _OF_SERVERS}
    body = {key: each for key, each in found.items() if key != "status"}
    return {**body, "metadata": meta}


def named(denial: Denial) -> str:
    """The handler of a denial, with its place."""
    return f"{denial.handler} ({denial.place})" if denial.place else denial.handler


def placed(handler: Handler) -> str:
    return f"{handler.id} ({handler.place})" if handler.place else handler.id


class _Listener(Director):
    """A director that notes the handlers' decisions, and the effects behind them."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.asked: list[Perform] = []

    def hears(self, command: Any) -> None:
        if isinstance(command, Perform):
            self.asked.append(command)

    def choose(self, inbox: Sequence[Delivery]) -> int | None:
        return None

    def reviews(
        self, request: Request, asks: frozenset[str], decide: Callable[[], Decision]
    ) -> Decision | None:
        found = decide()
        self.decisions.append(found)
        return found
