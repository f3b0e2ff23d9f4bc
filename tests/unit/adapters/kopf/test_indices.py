"""Indices: the newest values, each of any type, in stores by their keys."""

from __future__ import annotations

import copy
import doctest
from typing import Any

import pytest

from fnop.adapters.kopf.arguments import indices as module
from fnop.adapters.kopf.arguments.indices import Index, Kept, Store, kept


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0


def test_an_index_shows_the_newest_values() -> None:
    values: dict[Any, Any] = {}
    index = Index(lambda: values)
    assert (len(index), [*index], bool(index)) == (0, [], False)
    values["a"] = [Kept(1), Kept(1)]
    values[("ns", "b")] = [Kept(None)]
    assert [*index["a"]] == [1, 1]
    assert [*index] == ["a", ("ns", "b")]
    assert [*index[("ns", "b")]] == [None]
    assert repr(index) == "{'a': [1, 1], ('ns', 'b'): [None]}"
    assert {key: [*store] for key, store in index.items()} == {
        "a": [1, 1],
        ("ns", "b"): [None],
    }


def test_a_missing_key_is_an_error_or_a_default() -> None:
    index = Index(lambda: {"a": [Kept(1)]})
    assert index.get("b", "default") == "default"
    with pytest.raises(KeyError, match="b"):
        _ = index["b"]
    assert "a" in index
    assert "b" not in index
    assert [] not in index


def test_before_the_operator_serves_an_index_is_empty() -> None:
    index = Index(lambda: None)
    assert not index
    assert "a" not in index


def test_a_store_is_a_collection_of_values() -> None:
    store = Store(lambda: [1, 2, 2])
    assert (len(store), [*store], 2 in store, 3 in store) == (3, [1, 2, 2], True, False)
    assert repr(store) == "[1, 2, 2]"
    assert not Store(list)


def test_a_kept_store_shows_the_newest_values() -> None:
    values: dict[Any, Any] = {"a": [Kept(1)]}
    store = Index(lambda: values)["a"]
    values["a"] = [Kept(1), Kept(2)]
    assert ([*store], len(store), 2 in store) == ([1, 2], 2, True)
    del values["a"]
    assert not store


def test_a_deep_copy_is_of_its_time_and_a_shallow_one_is_not() -> None:
    values: dict[Any, Any] = {"a": [Kept([1])]}
    index = Index(lambda: values)
    deep, shallow = copy.deepcopy(index), copy.copy(index)
    deep_store, shallow_store = copy.deepcopy(index["a"]), copy.copy(index["a"])
    values["a"][0].value.append(2)
    values["b"] = [Kept(3)]
    assert repr(deep) == "{'a': [[1]]}"
    assert repr(shallow) == repr(index) == "{'a': [[1, 2]], 'b': [3]}"
    assert ([*deep_store], [*shallow_store]) == ([[1]], [[1, 2]])


def test_values_of_any_type_are_kept_as_they_are() -> None:
    value = object()
    found = kept({"a": value, "b": None})
    assert found is not None
    assert found["a"].value is value
    assert found["b"].value is None
    assert repr(Kept(1)) == "Kept(1)"
    assert kept(None) is None
    single = kept(value)
    assert single is not None
    assert single[None].value is value
    assert kept({}) == {}
