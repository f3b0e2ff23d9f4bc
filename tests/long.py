"""Parameters of tests: `make test` takes some and `make long` the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import pytest

__all__ = ["parameters"]

T = TypeVar("T")


def parameters(
    values: Iterable[T], at_once: Collection[str], named: Callable[[T], str] = str
) -> list[object]:
    """The values by their names; those that are not tried `at_once` are marked long.

    Raises `AssertionError` for a name of none.
    """
    found = {named(each): each for each in values}
    assert found.keys() >= {*at_once}, f"none of these: {[*found]}"
    return [
        pytest.param(each, id=name, marks=() if name in at_once else pytest.mark.long)
        for name, each in found.items()
    ]
