"""`fnop check` of operators that hear of changes of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.adapters.testing.cases import cases_of, subjects_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.testing import create, explore, outage, upgrade

MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "version", "namespace": "default"},
    "data": {"seen": "yes"},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "one", "namespace": "default"},
}


def telling(*, at_startup: bool) -> Registry:
    registry = Registry()

    @fnop.on.cluster.upgraded(registry=registry, id="upgraded")
    @fnop.on.cluster.reached(registry=registry, id="reached")
    def told(**_: Any) -> fnop.Effect:
        return fnop.apply(MAP)

    if at_startup:

        @fnop.on.startup(registry=registry)
        def started(**_: Any) -> fnop.Effect:
            return fnop.apply(MAP)

    @fnop.on.create("secrets", registry=registry)
    def made(patch: fnop.Patch, **_: Any) -> None:
        patch.metadata.labels["seen"] = "yes"

    return registry


@pytest.mark.parametrize("change", [upgrade("1.37"), outage(60)], ids=str)
def test_a_crash_loses_a_change_and_a_startup_handler_makes_up_for_it(
    change: Any,
) -> None:
    lost = explore(telling(at_startup=False), create(SECRET), change)
    with pytest.raises(AssertionError, match="configmaps/version is missing"):
        lost.must("same_end")
    explore(telling(at_startup=True), create(SECRET), change).must("same_end")


def test_an_operator_of_nothing_but_the_cluster_is_checked_without_objects() -> None:
    registry = Registry()

    @fnop.on.cluster.upgraded(registry=registry)
    def told(**_: Any) -> fnop.Effect:
        return fnop.apply(MAP)

    program = Program(registry.handlers, Settings())
    (case,) = cases_of(program, subjects_of(program, []))
    assert [type(each).__name__ for each in case.script] == ["Upgrade", "Outage"]
