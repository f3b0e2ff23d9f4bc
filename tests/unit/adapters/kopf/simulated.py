"""Kopf operators in the simulated cluster, with an event loop for their handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fnop.adapters.kopf.commands.planning import author_loop
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running import handlers
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.translation import settings_of
from fnop.core.api.resources import path_of
from fnop.core.handlers.declare.lifecycles import asap
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.core.seam.inputs import EventPosted
from fnop.interpreters.cluster import Off, empty_cluster, paced
from fnop.interpreters.runtime.clock import EPOCH, VirtualClock
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.scenario import apply_manifests, catalogue_of
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.simulations import DEFINITION, example

__all__ = ["KIND", "Simulated", "author_loop", "example", "simulated"]

KIND = "fnopexamples"


class AtOnce:
    """Stands for fnop's loop: the steps wait while a handler posts an Event."""

    def is_closed(self) -> bool:
        return False

    def call_soon_threadsafe(self, fn: Callable[..., Any], *given: Any) -> None:
        fn(*given)


class Simulated:
    """One operator with Kopf's API, in a cluster of its own, on virtual time.

    It stands for the thread of fnop: the test's thread makes the steps, and waits for
    the handlers, which run on `loop`.
    """

    def __init__(
        self,
        registry: OperatorRegistry,
        loop: asyncio.AbstractEventLoop,
        *,
        settings: OperatorSettings | None = None,
        memo: Any = None,
        lifecycle: Any = asap,
        manifests: tuple[dict[str, Any], ...] = (DEFINITION,),
        cluster: Any = None,
    ) -> None:
        found = settings or OperatorSettings()
        clock = VirtualClock()
        self.operator = Operator(registry, found, memo, loop, clock)
        self.operator.lifecycle = lifecycle
        made = handlers.handlers_of(self.operator)
        self.operator.states.know(made)
        translated = settings_of(found, (), lifecycle, self.operator.states, EPOCH)
        self.said: list[Say] = []
        self.sim = SimulatedRun(
            Program(made, translated.replace(peering=None)),
            cluster or paced(empty_cluster(now=EPOCH), {"kubelet": Off()}),
            clock=clock,
            observers=(self.operator,),
            calls={each.function: each.fn for each in made if each.function},
            on_say=lambda say, wall: self.said.append(say),
        )
        self.operator.serves(self, AtOnce())
        if cluster is None:
            apply_manifests(self.sim, manifests, begins=True)

    # As of a running operator.

    @property
    def state(self) -> Any:
        return self.sim.machine.state

    def post(self, handler: str, manifest: dict[str, Any]) -> None:
        self.sim.inbox.add(EventPosted(handler, manifest))

    # As a user of the cluster.

    def settle(self, seconds: float | None = None) -> Simulated:
        self.sim.settle(seconds=seconds)
        return self

    def apply(self, *manifests: dict[str, Any]) -> Simulated:
        apply_manifests(self.sim, manifests)
        return self

    def path(self, name: str | None, kind: str = KIND) -> str:
        resource = catalogue_of(self.sim).lookup(kind)
        assert resource is not None, kind
        return path_of(resource, "default", name)

    def get(self, name: str = "example-1", kind: str = KIND) -> Any:
        """The object; None if it does not exist."""
        found = self.sim.request(ApiRequest("GET", self.path(name, kind)))
        return None if found.status == 404 else found.body

    def edit(
        self, name: str = "example-1", kind: str = KIND, **change: Any
    ) -> Simulated:
        """Patch an object as a user, and let the operator react."""
        path = self.path(name, kind)
        found = self.sim.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
        assert found.status == 200, found
        return self.settle()

    def delete(self, name: str = "example-1", kind: str = KIND) -> Simulated:
        found = self.sim.request(ApiRequest("DELETE", self.path(name, kind)))
        assert found.status == 200, found
        return self.settle()

    def status(self, name: str = "example-1") -> dict[str, Any]:
        """The status of an object."""
        found: dict[str, Any] = (self.get(name) or {}).get("status") or {}
        return found

    def events(self) -> list[dict[str, Any]]:
        """The Kubernetes Events in the cluster."""
        found = self.sim.request(ApiRequest("GET", self.path(None, "events")))
        return list(found.body["items"])

    def errors(self) -> list[str]:
        """The lines of fnop that report errors."""
        return [f"{e.message}: {e.error}" for e in self.said if e.level == "error"]


@contextmanager
def simulated(
    registry: OperatorRegistry, *objects: dict[str, Any], **options: Any
) -> Iterator[Simulated]:
    """An operator that has settled with these objects; its loop ends with the block."""
    settings = options.setdefault("settings", OperatorSettings())
    with author_loop() as loop:
        found = Simulated(registry, loop, **options)
        try:
            yield found.settle().apply(*objects).settle()
        finally:
            settings.execution.executor.shutdown()
