"""A namespace of a real API server with an operator in it, and a user.

The simulated one: tests/simulated_world.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import Operator, User
from tests.example_scenarios import Expectation, unmet
from tests.patience import eventually, patience

__all__ = ["RealWorld"]

# The seconds without a line after which a log is complete.
QUIET_SECONDS = patience(0.2)


class RealWorld(User):
    """The actions of users and scenarios; with `is_recorded` processes are recorded."""

    def __init__(
        self,
        api: ApiServer,
        namespace: str,
        operator: Operator,
        *,
        is_recorded: bool = False,
    ) -> None:
        super().__init__(api, namespace)
        self.operator, self._is_recorded = operator, is_recorded
        self._said_before = 0

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> tuple[int, Any]:
        return self.api.raw(method, path, body, content_type)

    # -------------------------------------------------------------- the operator

    @property
    def lines(self) -> list[str]:
        return self.operator.lines

    @property
    def is_serving(self) -> bool:
        """Whether the present process is at work."""
        words = self.operator.program.is_at_work
        return any(words in line for line in self.lines[self._said_before :])

    def start(self) -> None:
        self._said_before = len(self.lines)
        self.operator.start(record=self._is_recorded)

    def stop(self) -> None:
        assert self.operator.stop() == 0, self.lines

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill it at its present state; the next process begins."""
        self.operator.kill()
        self.start()

    # ------------------------------------------------------------------- waiting

    def until(self, what: Callable[[], bool]) -> None:
        eventually(what, otherwise=lambda: "\n".join(self.lines[-30:]))

    def calm(self) -> None:
        """Wait until the log has said nothing for a while."""
        seen = -1
        while seen != (seen := len(self.lines)):
            time.sleep(QUIET_SECONDS)

    def expect(self, expectations: tuple[Expectation, ...]) -> None:
        def otherwise() -> str:
            return "\n".join(["not so:", *unmet(expectations, self), *self.lines])

        eventually(lambda: not unmet(expectations, self), otherwise=otherwise)
