"""Values that depend on the time of reading are not mistakes."""

from __future__ import annotations

import doctest
from pathlib import Path

from fnop.interpreters.check.campaign.explore import Explorer
from fnop.interpreters.check.properties import aging
from tests.unit.interpreters.check.made_up import NUMBER, Manifest, cases, definition, x

COUNTS = """
@fnop.timer("xs.example.com", interval=20)
def probe(status, patch, **_):
    patch.status["turns"] = status.get("turns", 0) + 1
"""

EXPIRES = """
from datetime import datetime, timezone

@fnop.on.create("xs.example.com")
def start(name, **_):
    return fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": f"{name}-task"}})

@fnop.timer("xs.example.com", interval=30)
async def expire(name, spec, now, **_):
    found = await fnop.get("configmaps", name=f"{name}-task")
    if found is not None:
        made = datetime.fromisoformat(found["metadata"]["creationTimestamp"])
        if (now - made.astimezone(timezone.utc)).total_seconds() > spec["seconds"]:
            await fnop.delete(found)
"""


def alarms(folder: Path, code: str, found: Manifest, crd: Manifest) -> set[str]:
    """The properties that are violated in any script, with and without some faults."""
    violated = set[str]()
    for case in cases(folder, code, found, crd)[0]:
        explorer = Explorer(case, watched=False)
        violated |= {each.property for each in explorer.confirmed(explorer.benign)}
        for schedule in explorer.singles()[::5]:
            verdict = explorer.tried(schedule)
            if verdict.violations:
                violated |= {each.property for each in explorer.confirmed(verdict)}
    return violated


def test_a_counter_of_turns_may_count_otherwise(tmp_path: Path) -> None:
    assert alarms(tmp_path, COUNTS, x(size=1), definition()) == set()


def test_what_expires_is_there_or_not(tmp_path: Path) -> None:
    crd = definition(("seconds",), seconds=NUMBER)
    assert alarms(tmp_path, EXPIRES, x(seconds=60), crd) == set()


FORGETS = (
    EXPIRES
    + """
@fnop.on.create("xs.example.com")
@fnop.on.resume("xs.example.com")
async def certify(name, **_):
    if await fnop.get("configmaps", name=f"{name}-a") is None:
        for each in "ab":
            await fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap",
                              "metadata": {"name": f"{name}-{each}"}})
"""
)


def test_what_is_not_of_the_clock_is_compared_beside_it(tmp_path: Path) -> None:
    crd = definition(("seconds",), seconds=NUMBER)
    assert "same_end" in alarms(tmp_path, FORGETS, x(seconds=60), crd)


def test_the_examples_hold() -> None:
    assert doctest.testmod(aging).failed == 0
