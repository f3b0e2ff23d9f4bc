"""Memos: dicts with attributes, one for each object."""

from __future__ import annotations

import copy
import dataclasses
import doctest
from typing import Any

import pytest

from fnop.adapters.kopf.arguments import memos
from fnop.adapters.kopf.arguments.memos import Memo, Memos

theirs = pytest.importorskip("kopf")


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(memos)
    assert found.attempted
    assert found.failed == 0


@pytest.mark.parametrize("cls", [Memo, theirs.Memo], ids=["fnop", "kopf"])
def test_keys_are_attributes(cls: Any) -> None:
    memo = cls(a=1)
    memo.b = 2
    memo["c"] = 3
    assert (memo.a, memo["b"], memo.c) == (1, 2, 3)
    del memo.b
    assert memo == {"a": 1, "c": 3}
    assert not hasattr(memo, "b")
    with pytest.raises(AttributeError, match="b"):
        del memo.b
    with pytest.raises(AttributeError, match="b"):
        _ = memo.b
    assert copy.copy(memo) == memo


def test_each_object_has_a_copy_of_the_operators_memo() -> None:
    memos = Memos(Memo(shared=[], own="operator"))
    first, second = memos.of("1"), memos.of("2")
    first.own = "first"
    first.shared.append(1)
    assert memos.of("1") is first
    assert (second.own, memos.own.own) == ("operator", "operator")
    assert second.shared == memos.own.shared == [1]


def test_a_later_object_gets_the_operators_memo_as_it_is_then() -> None:
    memos = Memos(Memo())
    memos.of("1")
    memos.own.late = 1
    assert "late" not in memos.of("1")
    assert memos.of("2").late == 1


def test_a_memo_ends_with_its_object() -> None:
    memos = Memos(Memo())
    memos.of("1").seen = True
    memos.forget("1")
    memos.forget("unknown")
    assert memos.of("1") == {}


def test_a_memo_may_be_for_one_use() -> None:
    memos = Memos(Memo(own=1))
    memos.of("1", keep=False).seen = True
    assert memos.of("1", keep=False) == {"own": 1}
    memos.of("1").seen = True
    assert memos.of("1", keep=False).seen


def test_a_memo_may_be_of_any_type() -> None:
    @dataclasses.dataclass
    class Own:
        count: int = 0

    memos = Memos(Own(3))
    memos.of("1").count += 1
    assert (memos.of("1").count, memos.own.count) == (4, 3)
    assert isinstance(memos.of("1"), Own)
