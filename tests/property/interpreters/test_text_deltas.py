"""Texts stored as differences: they are read as they were written."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from fnop.interpreters.recording.format.deltas import DeltaReader, DeltaWriter
from tests.property.strategies import json_values
from tests.thorough import examples

# Texts that are cut at commas and quotes inside members.
awkward = st.sampled_from(
    ['","', '"', ",", "\\", '\\"', ",,", "a,b", "é", "\u2028", ""]
)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | awkward | st.text(max_size=3)
objects = st.dictionaries(st.sampled_from("abc"), scalars | json_values, max_size=3)
writings = st.tuples(st.sampled_from("kl"), st.sampled_from("fg"), objects)


def text_of(value: Any) -> bytes:
    return orjson.dumps(value)


@settings(max_examples=examples(50))
@given(st.lists(st.lists(writings, max_size=6), max_size=6), st.integers(0, 200))
def test_each_text_is_read_as_it_was_written(
    blocks: list[list[tuple[str, str, Any]]], size: int
) -> None:
    """Even if the memory is small, and if some blocks are taken back."""
    writer, reader = DeltaWriter(size), DeltaReader()
    for number, block in enumerate(blocks):
        texts = [(key, family, text_of(value)) for key, family, value in block]
        if number % 2:
            for each in texts:
                writer.write(*each)
            writer.forget()
        for key, family, text in texts:
            entry = writer.write(key, family, text).entry
            assert reader.read(orjson.loads(entry)) == text
        writer.keep()


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(writings, st.booleans()), max_size=12))
def test_all_that_a_reader_has_not_read_is_news(
    given: list[tuple[tuple[str, str, Any], bool]],
) -> None:
    """A word that no text before had is in the news of the one that has it."""
    writer = DeltaWriter()
    for number, ((key, family, value), watched) in enumerate(given):
        word = f"w{number:04}"
        text = text_of({**value, "word": word})
        found = writer.write(key, family, text)
        if watched:
            writer.watch(key)
        assert word.encode() in found.news


def test_what_is_like_a_watched_text_is_looked_at_as_a_whole() -> None:
    writer = DeltaWriter()
    before, after = text_of({"token": "a", "b": 1}), text_of({"token": "a", "b": 2})
    writer.write("k", "f", before)
    writer.watch("k")
    found = writer.write("k", "f", after)
    assert found.news == after
    assert writer.write("k", "f", after).news == after
    assert writer.write("other", "f", text_of({"token": "b", "b": 2})).news


def test_a_small_change_of_a_large_object_is_short() -> None:
    writer = DeltaWriter()
    value = {str(number): {"name": f"n{number}", "at": number} for number in range(500)}
    writer.write("k", "f", text_of(value))
    value["250"]["name"] = "other"
    assert writer.write("k", "f", text_of(value)).entry == b'[0,0,500,5,"other"]'
    assert writer.write("k", "f", text_of(value)).entry == b"[0]"


def test_the_memory_is_bounded() -> None:
    writer, reader = DeltaWriter(10_000), DeltaReader(20_000)
    for number in range(1_000):
        text = text_of({"number": number, "padding": "x" * 500 + str(number)})
        entry = writer.write(number, number, text).entry
        assert reader.read(orjson.loads(entry)) == text
        writer.keep()
    assert writer.text_of(0) is None
    assert writer.text_of(999) is not None


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        [5],
        [1, 5],
        ["a", {}],
        [0, 0, 1],
        [0, 0, 0, 0],
        [0, 0, -1, 0, "a"],
        [0, 0, 99, 0, "a"],
        [0, 0, 0, 99, "a"],
        [0, 0, 0, -2, "a"],
        [0, 0, 0, 0, 5],
        [0, 0, 0.5, 0, "a"],
    ],
)
def test_what_is_no_entry_is_refused(entry: Any) -> None:
    reader = DeltaReader()
    reader.read([0, {"a": 1}])
    with pytest.raises(ValueError, match=r"\w"):
        reader.read(entry)


def test_an_entry_may_be_hostile() -> None:
    reader = DeltaReader(1_000)
    reader.read([0, {"a": "x" * 500}])
    with pytest.raises(ValueError, match="more texts than a recording keeps"):
        reader.read([1, {"a": "x" * 500}])
