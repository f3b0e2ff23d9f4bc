"""Whose child an object is, in the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fnop.core.handlers.program import Program
from fnop.core.handlers.settings import Settings
from fnop.interpreters.protocol import ApiRequest
from tests.ownership_scenarios import OPERATOR, SCENARIOS, World
from tests.simulations import Scenario, handlers_in

FAR = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}}


class SimulatedWorld:
    """A simulated cluster; the operator begins when it is asked to."""

    namespace, far = "default", "far"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.run = Scenario([])
        self.raw("POST", "/api/v1/namespaces", FAR)

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> tuple[int, Any]:
        found = self.run.request(ApiRequest(method, path, (), body, content_type))
        return found.status, found.body

    def begin(self, *, handler: str = "keep", name: str = "default") -> None:
        self._patch.setenv("HANDLER_ID", handler)
        handlers = tuple(handlers_in(OPERATOR))
        self.run.crash(Program(handlers, Settings(operator=name)))

    def stop(self) -> None:
        self.run.stop()
        self.run.settle(seconds=120)
        assert self.run.exit is not None

    def until(self, what: Callable[[], bool]) -> None:
        for _ in range(60):
            self.run.wait(1)
            if what():
                return
        raise AssertionError("\n".join(self.run.lines[-30:]))

    def calm(self) -> None:
        self.run.wait(5)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_children_have_their_owners(
    scenario: Callable[[World], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario(SimulatedWorld(monkeypatch))
