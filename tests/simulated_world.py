"""A simulated cluster with an operator in it, and a user, as scenarios want them.

The real one: tests/cluster/real_world.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.example_scenarios import Expectation, unmet
from tests.simulations import Scenario

__all__ = ["SimulatedWorld"]

STOP_SECONDS, PATIENCE_SECONDS, QUIET_SECONDS = 120, 60, 5


class SimulatedWorld:
    """The actions of users and scenarios; time passes when they wait alone."""

    namespace = "default"

    def __init__(
        self,
        handlers: Iterable[Handler] = (),
        manifests: Iterable[dict[str, Any]] = (),
        **options: Any,
    ) -> None:
        self.run = Scenario(handlers, manifests, **options)

    # ------------------------------------------------------------------ the user

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> tuple[int, Any]:
        found = self.run.request(ApiRequest(method, path, (), body, content_type))
        return found.status, found.body

    def get(
        self, kind: str, name: str, namespace: str | None = None
    ) -> dict[str, Any] | None:
        return self.run.get(kind, name, namespace)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return self.run.objects(kind)

    def create(self, manifest: dict[str, Any]) -> None:
        self.run.apply(manifest)

    def edit(self, kind: str, name: str, change: dict[str, Any]) -> None:
        self.run.edit(kind, name, **change)

    def delete(self, kind: str, name: str) -> None:
        self.run.delete(kind, name)

    # -------------------------------------------------------------- the operator

    @property
    def lines(self) -> list[str]:
        return self.run.lines

    def start(
        self, handlers: Iterable[Handler] | None = None, *, name: str = "default"
    ) -> None:
        """Start the operator again, with other handlers if they are given."""
        other = None
        if handlers is not None:
            other = Program(tuple(handlers), Settings(operator=name))
        self.run.crash(other)

    def stop(self) -> None:
        self.run.stop()
        self.run.settle(seconds=STOP_SECONDS)
        assert self.run.exit is not None, self.run.unsettled

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill it at its present state; the next process begins."""
        self.start()

    # ------------------------------------------------------------------- waiting

    def until(self, what: Callable[[], bool]) -> None:
        for _ in range(PATIENCE_SECONDS):
            self.run.wait(1)
            if what():
                return
        raise AssertionError("\n".join(self.lines[-30:]))

    def calm(self) -> None:
        self.run.wait(QUIET_SECONDS)

    def settle(self) -> None:
        """Wait until nothing is left to do."""
        assert self.run.settle(), self.run.unsettled

    def expect(self, expectations: tuple[Expectation, ...]) -> None:
        self.settle()
        assert unmet(expectations, self) == [], self.lines
