"""The tests that run in one process, in order, and the ones that begin first.

The processes of pytest-xdist take whole groups (`--dist loadgroup`). A test file is a
group, so that the tests' shared objects are made once. Tests of a real API server are
dealt to a few groups, each of which starts servers once and mostly waits for them:
these begin first, next to those that compute.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

__all__ = ["GroupScheduling", "in_order"]

HERE = Path(__file__).parent
# Each has an API server of its own.
CLUSTERS = ("server 1", "server 2")
# Their cases share a server of each version.
CONFORMANCE = "servers of conformance cases"
REAL = ("differential", "field_faults", "real", "redefining", "typed_kinds")
# The groups that take longest, longest first: the last to begin should be short.
FIRST = (
    *CLUSTERS,
    CONFORMANCE,
    "clients/",
    "unit/interpreters/check/",
    "unit/adapters/",
    "property/",
    "unit/interpreters/recording/",
    "unit/core/children/",
)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives whole groups to the processes.

    The marks of pytest-xdist's own groups do not reach it with pytest 9.2.
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0])


def in_order(items: list[pytest.Item]) -> None:
    """Sort the tests: the groups that take longest come first."""
    items.sort(key=lambda item: _rank(group_of(item.nodeid.partition("::")[0])))


@cache
def group_of(file: str) -> str:
    """The group of a test file: a real API server, or else the file itself.

    >>> group_of("tests/unit/core/values/test_paths.py")
    'unit/values/paths'
    """
    folder, _, name = file.removeprefix("tests/").rpartition("/")
    name = name.removeprefix("test_").removesuffix(".py")
    if folder == "conformance" and name in REAL:
        return CONFORMANCE
    if folder == "cluster":
        return CLUSTERS[_cluster_files().index(name) % len(CLUSTERS)]
    return f"{folder}/{name}"


@cache
def _cluster_files() -> list[str]:
    found = sorted((HERE / "cluster").glob("test_*.py"))
    return [each.stem.removeprefix("test_") for each in found]


def _rank(group: str) -> int:
    found = (number for number, each in enumerate(FIRST) if group.startswith(each))
    return next(found, len(FIRST))
