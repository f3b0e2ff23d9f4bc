"""The types of Kopf that are for annotations, and `Diff`."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from fnop.adapters.kopf.arguments import types
from fnop.adapters.kopf.arguments.types import Diff, DiffItem
from fnop.core.values.diff import DiffOperation
from fnop.effects.values import read_only

theirs = pytest.importorskip("kopf")

ITEMS: list[tuple[Any, ...]] = [
    ("add", ("spec", "size"), None, 1),
    ("change", ("spec",), {}, {"size": 1}),
]


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(types)
    assert found.attempted
    assert found.failed == 0


def test_a_diff_is_a_sequence_of_its_items() -> None:
    diff = Diff(ITEMS)
    assert len(diff) == 2
    assert [tuple(each) for each in diff] == ITEMS
    assert isinstance(diff[0], DiffItem)
    assert diff[1].operation == DiffOperation.CHANGE
    assert diff == tuple(Diff(diff))
    assert not Diff()


def test_a_diff_looks_like_tuples_and_equals_lists() -> None:
    frozen = [("change", ("spec",), read_only({}), read_only({"size": 1}))]
    diff, wanted = Diff(frozen), ITEMS[1:]
    assert repr(diff) == repr(tuple(wanted))
    assert diff == wanted == [*diff]
    assert diff[0] == [*wanted[0]]
    assert type(diff[0].new) is dict
    assert diff != []
    assert diff[0] != "change"
    assert hash(Diff()) == hash(())


def test_a_diff_has_the_attributes_of_kopf() -> None:
    for ours, kopf in zip(
        Diff(ITEMS), (theirs.DiffItem(*each) for each in ITEMS), strict=True
    ):
        for name in ("op", "operation", "field", "old", "new"):
            assert str(getattr(ours, name)) == str(getattr(kopf, name)), name


def test_dicts_of_the_api_are_dicts() -> None:
    event: types.RawEvent = {"type": None, "object": {"kind": "Pod"}}
    assert event == {"type": None, "object": {"kind": "Pod"}}
    assert types.RawBody(kind="Pod") == {"kind": "Pod"}
    assert types.HandlerId("a") == "a"
