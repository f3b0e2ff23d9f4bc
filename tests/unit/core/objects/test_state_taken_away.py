"""A controller removes the state from the object, as the EndpointSlice one does.

About a second after each change it writes only the annotations that it knows.
"""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.pace import LOOP_CHANGES
from tests.simulations import Scenario

CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "labels": {"mine": "yes"}},
    "data": {"n": "0"},
}
HOUR = 3600


@pytest.mark.parametrize("seconds", [0.1, 1.0, 5.0, 30.0])
def test_it_is_written_ever_less(seconds: float) -> None:
    registry, called = Registry(), list[str]()

    @fnop.on.create("configmaps", labels={"mine": "yes"}, registry=registry)
    def create(**_: Any) -> None:
        called.append("create")

    @fnop.on.update("configmaps", labels={"mine": "yes"}, registry=registry)
    def update(**_: Any) -> None:
        called.append("update")

    run = Scenario(registry)
    run.apply(CONFIG)
    run.settle(seconds=60)
    began, end = len(run.writes), run.clock.elapsed + HOUR
    while run.clock.elapsed < end:
        if annotations_of(run):
            run.wait(seconds)
            run.edit("configmaps", "one", metadata={"annotations": None})
        run.wait(2.0)
    # One in a minute, after those at once and the growing pauses before.
    assert len(run.writes) - began <= LOOP_CHANGES + 7 + HOUR / 60
    assert called == ["create"], "this process knows what it has done"
    (told,) = [line for line in run.lines if "undone this operator's change" in line]
    assert "its state on the object 11 times in a row" in told
    run.edit("configmaps", "one", data={"n": "1"})
    run.wait(130.0)
    assert called == ["create", "update"], "others' changes are handled as before"
    assert annotations_of(run)


def annotations_of(run: Scenario) -> dict[str, str]:
    found = run.get("configmaps", "one")
    assert found is not None
    return found["metadata"].get("annotations") or {}
