"""fnop's own words in a status never keep authors from writing theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.api.statuses import DEFINITIONS
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
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


# If reconcile handlers do not notice by trial that conditions are dropped.
UNNOTICED = ("no conditions", "conditions as a map", "a required phase")
# Who says that a schema has no place for conditions of fnop's.
TELLING = (by_levels, by_levels_that_fail, by_failing)
STYLES = [by_levels, by_levels_that_fail, by_causes, by_failing, by_timers]


class Server:
    """The simulated API server, as an operator sees it that may read schemas or not."""

    def __init__(
        self, request: Callable[[ApiRequest], ApiResponse], shown: str
    ) -> None:
        self.request = request
        self.hidden = HIDDEN[shown]
        self.refused: list[str] = []

    def __call__(self, request: ApiRequest) -> ApiResponse:
        if request.path.startswith(self.hidden):
            return ApiResponse(404, {"kind": "Status", "status": "Failure"})
        response = self.request(request)
        if response.status in (400, 422):
            self.refused.append(f"{request.method} {request.path}")
        return response


# Paths that an older server lacks, or that no user may read.
HIDDEN: dict[str, tuple[str, ...]] = {
    "OpenAPI": (),
    "definitions": ("/openapi/v3",),
    "nothing": ("/openapi/v3", DEFINITIONS),
}


@pytest.mark.parametrize("shown", HIDDEN)
@pytest.mark.parametrize("name", STATUSES)
@pytest.mark.parametrize("declare", STYLES)
def test_the_authors_status_is_written(
    registry: Registry,
    declare: Any,
    name: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status = STATUSES[name][2]
    declare(registry, status)
    run = Scenario(registry, [definition_with(name)])
    server = Server(run.request, shown)
    monkeypatch.setattr(run, "request", server)
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
    is_unnoticed = shown == "nothing" and name in UNNOTICED
    is_told = declare in TELLING and (declare is by_failing or not is_unnoticed)
    assert len(said) == is_told, run.lines
    if shown != "nothing":
        assert not server.refused, "nothing is tried where the schema is known"
    # A second object costs no request that is refused, and a change ends as well.
    before = len(run.writes)
    run.apply(example("two", size=1))
    run.settle(seconds=200)
    assert (run.get(KIND, "two") or {})["status"]["phase"] == "Ready"
    run.edit(KIND, "two", spec={"size": 2})
    assert run.settle(seconds=120), run.lines
    assert len(run.writes) - before <= 8, run.writes[before:]
