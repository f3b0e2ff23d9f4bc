"""Scripts that begin alike share their trials, and the verdicts are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from fnop.interpreters.check.campaign.explore import (
    Explorer,
    digest_of,
    explorers_of,
)
from fnop.interpreters.check.properties.evidence import seen_by
from fnop.interpreters.check.state.kinds import Schedule
from tests.unit.interpreters.check.made_up import NUMBER, TEXT, cases, definition, x

CHANGES = """
@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def serve(name, body, spec, patch, **_):
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
             "data": {"size": str(spec["size"])}}
    await fnop.apply(fnop.owned(child, body))
    patch.status["token"] = (await fnop.random(4)).hex()

@fnop.on.delete("xs.example.com")
async def end(name, **_):
    pass
"""

LEVELS = """
@fnop.reconcile("xs.example.com", owns=["configmaps", "secrets"])
def serve(name, spec, **_):
    return fnop.desired([
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        for kind in ("ConfigMap", "Secret")[: spec["size"]]
    ])
"""

Told = tuple[str, list[str], bool]


def verdict(explorer: Explorer, schedule: Schedule) -> Told:
    """The digest of a trial, the properties that it violates, and if it was struck."""
    trial = explorer.played(schedule)
    found = explorer.verdict_of(trial, schedule)
    names = [each.property for each in found.violations]
    return digest_of(seen_by(trial)), names, found.struck


@pytest.mark.parametrize("code", [CHANGES, LEVELS], ids=["changes", "levels"])
def test_what_is_shared_ends_as_what_is_not(code: str, tmp_path: Path) -> None:
    crd = definition(("size",), size=NUMBER, image=TEXT)
    several, _ = cases(tmp_path, code, x(size=1), crd)
    struck = [each for each in several if not each.calm][:4]
    shared = 0
    for explorer in explorers_of(struck):
        alone = Explorer(explorer.case, watched=False)
        for schedule in explorer.singles()[::5]:
            found = verdict(explorer, schedule)
            assert found == verdict(alone, schedule), (explorer.case.name, schedule)
            shared += 1
    assert shared > 20


def test_others_come_and_go_after_one_script_that_is_made_up(tmp_path: Path) -> None:
    crd = definition(("size",), size=NUMBER, image=TEXT)
    several, _ = cases(tmp_path, LEVELS, x(size=1), crd)
    left = [each for each in several if not each.calm and each.name != "delete"]
    assert all(each.made_up for each in left)
    for made_up, last in ((True, 1), (False, 3)):
        scripts = [each._replace(made_up=made_up) for each in left]
        found = [each.reference.benign.followed for each in explorers_of(scripts)]
        assert [len(each) for each in found] == [3, *(last for _ in left[1:])]
        assert all(each[-1].follow_up.ends for each in found)
