"""Which tests run in one process, one after the other, and which of them begin first.

The processes of pytest-xdist take whole groups (`--dist loadgroup`).  A test file is a
group, so that what its tests share is made once.  Tests of a real API server are dealt
to a few groups, each of which starts servers once and mostly waits for them: these
begin first, next to those that compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import pytest

__all__ = ["distribute"]

HERE = Path(__file__).parent
CONFORMANCE = "servers of conformance cases"
# Each has an API server of its own.
CLUSTERS = ("server 1", "server 2")
# The folders that take longest, longest first: the last to begin should be short.
FIRST = ("clients", "unit/check", "conformance", "property", "replays")


def distribute(items: list[pytest.Item]) -> None:
    """Mark each item with its group, and sort the groups."""
    dealt = dict(zip(_files("cluster", items), cycle(CLUSTERS), strict=False))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group_of(item, dealt)))
    items.sort(key=_rank)


def _files(folder: str, items: Sequence[pytest.Item]) -> list[str]:
    names = (_name(each) for each in items)
    return [*dict.fromkeys(each for each in names if each.startswith(folder))]


def _name(item: pytest.Item) -> str:
    return item.path.relative_to(HERE).as_posix()


def _group_of(item: pytest.Item, dealt: dict[str, str]) -> str:
    """The group of a test: a real API server, or else its file."""
    if "real" in getattr(item, "fixturenames", ()):
        return CONFORMANCE
    name = _name(item)
    return dealt.get(name, name.removesuffix(".py").replace("/test_", "/"))


def _rank(item: pytest.Item) -> int:
    (mark,) = item.iter_markers("xdist_group")
    group = mark.args[0]
    if group in (*CLUSTERS, CONFORMANCE):
        return 0
    names = (number for number, each in enumerate(FIRST, 1) if group.startswith(each))
    return next(names, len(FIRST) + 1)
