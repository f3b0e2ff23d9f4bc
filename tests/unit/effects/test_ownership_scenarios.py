"""Owner references in the simulated cluster: scenarios that real servers share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.ownership_scenarios import OPERATOR, SCENARIOS, World
from tests.simulated_world import SimulatedWorld
from tests.simulations import handlers_in

FAR = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}}


class OwnersWorld(SimulatedWorld):
    """A cluster of two namespaces; the operator begins when it is asked to."""

    far = "far"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(manifests=[FAR])
        self._patch = monkeypatch

    def begin(self, *, handler: str = "keep", name: str = "default") -> None:
        self._patch.setenv("HANDLER_ID", handler)
        self.start(handlers_in(OPERATOR), name=name)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_children_have_their_owners(
    scenario: Callable[[World], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario(OwnersWorld(monkeypatch))
