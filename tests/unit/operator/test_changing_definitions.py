"""Definitions that change in the simulated cluster: scenarios of real servers, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.definition_scenarios import OPERATOR, SCENARIOS, World
from tests.simulated_world import SimulatedWorld
from tests.simulations import handlers_in


class DefinitionsWorld(SimulatedWorld):
    """A cluster without the kinds; the operator begins when it is asked to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._patch = monkeypatch

    def begin(self, *names: str, calls: str = "changes") -> None:
        self._patch.setenv("PROBES", ",".join(names))
        self._patch.setenv("CALLS", calls)
        self.start(handlers_in(OPERATOR))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_definitions_change(
    scenario: Callable[[World], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario(DefinitionsWorld(monkeypatch))
