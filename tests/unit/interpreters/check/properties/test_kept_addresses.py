"""An address that the API server has assigned is none of the operator's past."""

from __future__ import annotations

from typing import Any

import fnop
from fnop import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import apply, edit

HEADLESS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "x", "namespace": "default"},
    "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
}


def test_a_service_keeps_its_cluster_ip() -> None:
    """The server ignores the edit, and assigns an address to a new Service."""
    registry = Registry()

    @fnop.on.create("services", registry=registry)
    def seen(**_: Any) -> fnop.Effect:
        return fnop.patch(annotations={"seen": "yes"})

    script = apply(HEADLESS), edit("services/x", spec={"clusterIP": None})
    explorer = Explorer(Case(Program(registry.handlers), (), script))
    created = explorer.reference.benign.created
    assert created is not None
    assert b'"clusterIP":"None"' not in created.world["services/x"]
    assert b'"clusterIP":"None"' in explorer.reference.benign.seen.world["services/x"]
    assert explorer.benign.violations == ()
