"""The owners of children, on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import Operator
from tests.cluster.real_world import RealWorld
from tests.long import parameters
from tests.ownership_scenarios import OPERATOR, SCENARIOS, World


class OwnersWorld(RealWorld):
    """Two namespaces; the operator begins when it is asked to."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        namespace, self.far = api.namespace(), api.namespace()
        self._place = api.kubeconfig, namespace, folder
        super().__init__(api, namespace, self._operator("default"))
        self.define()

    def _operator(self, name: str) -> Operator:
        options = ("--standalone", "--name", name, "-n", self.far)
        return Operator(OPERATOR, *self._place, options)

    def begin(self, *, handler: str = "keep", name: str = "default") -> None:
        self.operator = self._operator(name)
        self.operator.variables["HANDLER_ID"] = handler
        self.start()


# The part of the API server and its garbage collector; in the simulated cluster all are
# tried at once (unit/effects/test_ownership_scenarios.py).
AT_ONCE = (
    "a_child_that_is_handled_keeps_its_finalizer_and_its_state",
    "a_child_elsewhere_that_names_no_owner_goes_with_it",
    "what_is_desired_no_more_goes_whoever_made_the_mapping",
    "a_copy_is_nobody_s",
    "orphans_stay_and_are_nobody_s",
    "a_lost_owner_reference_comes_back",
    "a_renamed_handler_clears_what_it_has_made",
)


@pytest.mark.parametrize(
    "scenario", parameters(SCENARIOS, AT_ONCE, lambda each: each.__name__)
)
def test_children_have_their_owners(
    scenario: Callable[[World], None], apiserver: ApiServer, tmp_path: Path
) -> None:
    world = OwnersWorld(apiserver, tmp_path)
    try:
        scenario(world)
    finally:
        world.operator.close()
