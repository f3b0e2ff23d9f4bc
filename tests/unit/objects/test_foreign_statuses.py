"""What fnop tells in a status keeps no author from writing theirs."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.registry import Registry
from tests.foreign_statuses import STATUSES, definition_with
from tests.simulations import Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def by_levels(registry: Registry, status: dict[str, Any]) -> None:
    @fnop.reconcile(KIND, registry=registry, owns=["configmaps"])
    def serve(name: str, **_: Any) -> Any:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        return fnop.desired([child], status={"phase": "Ready", **status})


def by_levels_that_fail(registry: Registry, status: dict[str, Any]) -> None:
    @fnop.reconcile(KIND, registry=registry)
    def serve(patch: fnop.Patch, **_: Any) -> Any:
        patch.status.update({"phase": "Ready", **status})
        raise fnop.PermanentError("no way")


def by_causes(registry: Registry, status: dict[str, Any]) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(patch: fnop.Patch, **_: Any) -> None:
        patch.status.update({"phase": "Ready", **status})

    @fnop.on.update(KIND, registry=registry)
    def update(patch: fnop.Patch, **_: Any) -> None:
        raise fnop.PermanentError("no way")


def by_failing(registry: Registry, status: dict[str, Any]) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(patch: fnop.Patch, **_: Any) -> None:
        patch.status.update({"phase": "Ready", **status})
        raise fnop.PermanentError("no way")


def by_timers(registry: Registry, status: dict[str, Any]) -> None:
    @fnop.timer(KIND, interval=3600, registry=registry)
    def tick(patch: fnop.Patch, **_: Any) -> None:
        patch.status.update({"phase": "Ready", **status})


_NONE = ("no conditions", "conditions as a map", "a required phase")
_REFUSED = tuple(each for each in STATUSES if each not in _NONE)
# Where it is said that a schema has no place for conditions of fnop's.
TOLD = {
    by_levels: _REFUSED,
    by_levels_that_fail: _REFUSED,
    by_failing: _REFUSED,
}
STYLES = [by_levels, by_levels_that_fail, by_causes, by_failing, by_timers]


@pytest.mark.parametrize("name", STATUSES)
@pytest.mark.parametrize("declare", STYLES)
def test_the_authors_status_is_written(
    registry: Registry, declare: Any, name: str
) -> None:
    status = STATUSES[name][2]
    declare(registry, status)
    run = Scenario(registry, [definition_with(name)])
    run.apply(example("one", size=1))
    run.settle(seconds=200)
    found = run.get(KIND, "one") or {}
    wanted = {"phase": "Ready", **status}
    told = found.get("status", {})
    given = {key: told.get(key) for key in wanted}
    if isinstance(wanted.get("conditions"), list):
        ours = ("Synced", "fnop.dev/default")
        given["conditions"] = [
            each
            for each in given["conditions"] or ()
            if not (isinstance(each, dict) and each.get("type") in ours)
        ]
    assert given == wanted, run.lines
    said = [line for line in run.lines if "takes no condition of fnop's" in line]
    assert len(said) == (name in TOLD.get(declare, ())), run.lines
    # A second object costs no request that is refused, and a change ends as well.
    before = len(run.writes)
    run.apply(example("two", size=1))
    run.settle(seconds=200)
    assert (run.get(KIND, "two") or {})["status"]["phase"] == "Ready"
    run.edit(KIND, "two", spec={"size": 2})
    assert run.settle(seconds=120), run.lines
    assert len(run.writes) - before <= 8, run.writes[before:]
