"""A few pairs of faults that are likely are tried by default, after all single ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

import fnop
from bench.bugs.crds import crd, custom
from fnop.adapters.testing.models import models_for
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.campaign import (
    FIRSTS_MIN,
    PAIRS_SHARE,
    Campaign,
    Options,
)
from fnop.interpreters.check.campaign.explore import LIKELY_MAX, Case
from fnop.interpreters.check.campaign.reports import Pairs, Report, Result
from fnop.interpreters.simulation.actions import apply
from fnop.testing import PostService


def find_servers(owner: str) -> list[dict[str, Any]]:
    raise NotImplementedError


def create_server(owner: str) -> str:
    raise NotImplementedError


def delete_server(server: str) -> None:
    raise NotImplementedError


class Cloud(PostService):
    def find_servers(self, owner: str) -> list[dict[str, Any]]:
        return self.find(owner=owner)

    def create_server(self, owner: str) -> str:
        return str(self.create({}, tags={"owner": owner})["id"])

    def delete_server(self, server: str) -> None:
        self.delete(server)


def cloud() -> Mapping[str, Any]:
    service = Cloud("srv")
    methods = (service.find_servers, service.create_server, service.delete_server)
    return models_for({each.__name__: each for each in methods})


def rents_one(*, swallows: bool) -> Program:
    """Rents a server for a new object, unless the cloud has one of its tag."""
    with default_registry.set_aside():

        @fnop.on.create("xs.example.com")
        async def rent(uid: str, patch: Any, **_: Any) -> None:
            try:
                found = await fnop.call(find_servers, owner=uid)
            except fnop.CallFailed:
                if not swallows:
                    raise
                found = []
            if found:
                patch.status["server"] = found[0]["id"]
            else:
                patch.status["server"] = await fnop.call(create_server, owner=uid)

        @fnop.on.delete("xs.example.com")
        async def give_back(uid: str, **_: Any) -> None:
            for each in await fnop.call(find_servers, owner=uid):
                await fnop.call(delete_server, server=each["id"])

        return Program(default_registry.handlers)


def takes_away(*, swallows: bool) -> Program:
    """Delete its claim when it resumes, and the settings are missing."""
    with default_registry.set_aside():

        @fnop.on.create("xs.example.com")
        async def make(name: str, **_: Any) -> None:
            await fnop.adopt(settings(f"{name}-settings"))
            await fnop.adopt(claim(name))

        @fnop.on.resume("xs.example.com")
        async def look(name: str, **_: Any) -> None:
            try:
                found = await fnop.get("configmaps", name=f"{name}-settings")
            except fnop.Refused:
                if not swallows:
                    raise
                found = None
            if found is None:
                await fnop.delete("persistentvolumeclaims", name=name)

        return Program(default_registry.handlers)


def prunes(*, swallows: bool) -> Program:
    """Takes its claim away if its second read shows no quota."""
    with default_registry.set_aside():

        @fnop.on.create("xs.example.com")
        async def make(name: str, **_: Any) -> None:
            await fnop.adopt(settings(f"{name}-settings"))
            await fnop.adopt(quota(name))
            await fnop.adopt(claim(name))

        @fnop.on.resume("xs.example.com")
        async def prune(name: str, **_: Any) -> None:
            if await fnop.get("configmaps", name=f"{name}-settings") is None:
                return
            try:
                quotas = await fnop.list("resourcequotas")
            except fnop.Refused:
                if not swallows:
                    raise
                quotas = []
            if not any(each.name == name for each in quotas):
                await fnop.delete("persistentvolumeclaims", name=name)

        return Program(default_registry.handlers)


def settings(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def quota(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}}


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


OPERATORS = {"rents one": rents_one, "takes away": takes_away}


def case_of(program: Program) -> Case:
    return Case(program, (crd(),), (apply(custom(size=1)),), calls=cloud())


@cache
def results(name: str, swallows: bool) -> tuple[Report, list[Result]]:
    program = OPERATORS[name](swallows=swallows)
    tried = Campaign([case_of(program)], Options(depth=None))
    tasks = tried.tasks()
    found = tried.run(tasks)
    return tried.report(found, tasks), found


@pytest.mark.parametrize(
    ("name", "violated"),
    [("rents one", "creates_once"), ("takes away", "keeps_data")],
)
def test_a_failing_read_after_a_crash_is_tried_by_default(
    name: str, violated: str
) -> None:
    report, _ = results(name, True)
    found = {(e.violation.property, len(e.schedule)) for e, _ in report.failures}
    assert (violated, 2) in found
    assert {number for _, number in found} == {2}  # no single fault shows it


@pytest.mark.parametrize("name", OPERATORS)
def test_one_who_lets_the_read_fail_is_not_alarmed(name: str) -> None:
    report, _ = results(name, False)
    assert not report.failures


@pytest.mark.parametrize("name", OPERATORS)
def test_likely_pairs_are_few_and_come_last(name: str) -> None:
    _, found = results(name, False)
    pairs = [each for each in found if each.task.pairs is Pairs.LIKELY]
    singles, last = found[: -len(pairs)], found[-len(pairs) :]
    assert last == pairs
    number = sum(len(each.verdicts) for each in pairs)
    most = max(FIRSTS_MIN * LIKELY_MAX, len(singles) // PAIRS_SHARE)
    assert 0 < number <= most
    for verdict in (verdict for each in pairs for verdict in each.verdicts):
        first, second = verdict.schedule
        assert second.kind.name in dict(first.kind.likely_next)
        assert verdict.struck


@pytest.mark.parametrize("swallows", [True, False])
def test_the_second_read_after_a_crash_is_refused_as_well(swallows: bool) -> None:
    campaign = Campaign([case_of(prunes(swallows=swallows))], Options(depth=None))
    pairs = [each for each in campaign.tasks() if each.pairs is Pairs.LIKELY]
    verdicts = [verdict for each in campaign.run(pairs) for verdict in each.verdicts]
    reads = {each.schedule[1].site.target.partition("/")[0] for each in verdicts}
    assert {"configmaps", "resourcequotas"} <= reads
    violated = {e.property for each in verdicts for e in each.violations}
    assert ("keeps_data" in violated) is swallows
    assert swallows or not violated


def test_depth_1_tries_single_faults_alone() -> None:
    tasks = Campaign([case_of(prunes(swallows=False))], Options(depth=1)).tasks()
    assert all(each.pairs is Pairs.NONE for each in tasks)


def test_first_faults_strike_one_script_before_they_strike_others() -> None:
    case = case_of(takes_away(swallows=False))
    tasks = Campaign([case] * 3, Options(depth=None)).tasks()
    firsts = [each.schedule for each in tasks if each.pairs is Pairs.LIKELY]
    number = len({*firsts})
    assert len(firsts) > number  # there is room for some in other scripts
    assert len({*firsts[:number]}) == number
