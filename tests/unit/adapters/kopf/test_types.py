"""The types of Kopf that are for annotations, and `Diff`."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from fnop.adapters.kopf.arguments import types
from fnop.adapters.kopf.arguments.types import Diff, DiffItem
from fnop.core.values.diff import DiffOperation, diff
from fnop.effects.values import read_only

theirs = pytest.importorskip("kopf")
kopf_diff = pytest.importorskip("kopf._cogs.structs.diffs").diff

ITEMS: list[tuple[Any, ...]] = [
    ("add", ("spec", "size"), None, 1),
    ("change", ("spec",), {}, {"size": 1}),
]


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(types)
    assert found.attempted
    assert found.failed == 0


def test_a_diff_is_a_sequence_of_its_items() -> None:
    found = Diff(ITEMS)
    assert len(found) == 2
    assert [tuple(each) for each in found] == ITEMS
    assert isinstance(found[0], DiffItem)
    assert found[1].operation == DiffOperation.CHANGE
    assert found == tuple(Diff(found))
    assert not Diff()


def test_a_diff_looks_like_tuples_and_equals_lists() -> None:
    frozen = [("change", ("spec",), read_only({}), read_only({"size": 1}))]
    found, wanted = Diff(frozen), ITEMS[1:]
    assert repr(found) == repr(tuple(wanted))
    assert found == wanted == [*found]
    assert found[0] == [*wanted[0]]
    assert type(found[0].new) is dict
    assert found != []
    assert found[0] != "change"
    assert hash(Diff()) == hash(())


def test_a_diff_has_the_attributes_of_kopf() -> None:
    for ours, kopf in zip(
        Diff(ITEMS), (theirs.DiffItem(*each) for each in ITEMS), strict=True
    ):
        for name in ("op", "operation", "field", "old", "new"):
            assert str(getattr(ours, name)) == str(getattr(kopf, name)), name


def test_a_diff_has_the_order_of_kopf() -> None:
    before = {"a": {"x": 1, "y": 1}, "b": {"same": 1, "c": {"z": 1}}}
    after = {"a": {"w": 2, "x": 2}, "b": {"same": 1, "c": {"z": 2, "new": 2}}, "d": 2}
    kopf = [tuple(item) for item in kopf_diff(before, after)]
    items = [tuple(item) for item in Diff.of(diff(before, after))]
    assert sorted(items, key=repr) == sorted(kopf, key=repr)
    # The order of mappings, such as `a` and `b`, is random in Kopf.
    for name in ("a", "b", "d"):
        found, wanted = ([e for e in each if e[1][0] == name] for each in (items, kopf))
        assert found == wanted
    assert items[0] == kopf[0] == ("add", ("d",), None, 2)
    assert Diff.of([("change", (), 1, 2)]) == [("change", (), 1, 2)]


def test_dicts_of_the_api_are_dicts() -> None:
    event: types.RawEvent = {"type": None, "object": {"kind": "Pod"}}
    assert event == {"type": None, "object": {"kind": "Pod"}}
    assert types.RawBody(kind="Pod") == {"kind": "Pod"}
    assert types.HandlerId("a") == "a"
