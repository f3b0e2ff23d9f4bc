"""Whose child an object is, on a real API server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import Operator, User, eventually
from tests.ownership_scenarios import OPERATOR, SCENARIOS, World

QUIET_SECONDS = 1.0


class RealWorld:
    """Two namespaces of a real API server."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.api, self._folder = api, folder
        self.namespace, self.far = api.namespace(), api.namespace()
        self.operator: Operator | None = None
        User(api, self.namespace).define()

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> tuple[int, Any]:
        return self.api.raw(method, path, body, content_type)

    def begin(self, *, handler: str = "keep", name: str = "default") -> None:
        options = ("--standalone", "--name", name, "-n", self.far)
        where = self.api.kubeconfig, self.namespace, self._folder
        self.operator = Operator(OPERATOR, *where, options)
        self.operator.variables["HANDLER_ID"] = handler
        self.operator.start()

    def stop(self) -> None:
        assert self.operator is not None
        assert self.operator.stop() == 0, self.operator.lines

    def until(self, what: Callable[[], bool]) -> None:
        eventually(what, otherwise=lambda: "\n".join(self._lines[-30:]))

    @property
    def _lines(self) -> list[str]:
        return self.operator.lines if self.operator else []

    def calm(self) -> None:
        """Wait until the log has said nothing for a while."""
        seen = -1
        while seen != (seen := len(self._lines)):
            time.sleep(QUIET_SECONDS)

    def close(self) -> None:
        if self.operator is not None:
            self.operator.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_children_have_their_owners(
    scenario: Callable[[World], None], apiserver: ApiServer, tmp_path: Path
) -> None:
    world = RealWorld(apiserver, tmp_path)
    try:
        scenario(world)
    finally:
        world.close()
