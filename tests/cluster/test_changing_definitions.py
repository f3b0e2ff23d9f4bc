"""Definitions that change under an operator, on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import Operator
from tests.cluster.real_world import RealWorld
from tests.definition_scenarios import (
    KIND_SCENARIOS,
    OPERATOR,
    SCENARIOS,
    World,
    remove,
)
from tests.long import parameters


class DefinitionsWorld(RealWorld):
    """A server without the kinds; the operator begins when it is asked to."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        namespace = api.namespace()
        options = ("--standalone", "-A")
        operator = Operator(OPERATOR, api.kubeconfig, namespace, folder, options)
        super().__init__(api, namespace, operator)

    def begin(self, *names: str, calls: str = "changes") -> None:
        self.operator.variables |= {"PROBES": ",".join(names), "CALLS": calls}
        self.start()
        self.until(lambda: self.is_serving)


ALL = (*SCENARIOS, *KIND_SCENARIOS)
AT_ONCE = (
    "kinds_are_told",
    "the_preferred_version_goes",
    "a_kind_that_the_preferred_version_lacks",
)


@pytest.mark.parametrize(
    "scenario", parameters(ALL, AT_ONCE, lambda each: each.__name__)
)
def test_definitions_change(
    scenario: Callable[[World], None], apiserver: ApiServer, tmp_path: Path
) -> None:
    world = DefinitionsWorld(apiserver, tmp_path)
    try:
        scenario(world)
    finally:
        for plural in ("probes", "others"):
            remove(world, plural)
        world.operator.close()
