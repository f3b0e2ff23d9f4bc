"""Texts of objects that are kept packed, and parsed forms that are forgotten."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import orjson
import pytest
from hypothesis import given, strategies as st
from immutables import Map

from fnop.core.memory.observation import FormerValues, Seen, digest_of
from fnop.core.memory.stored_state import Stored, shared
from fnop.core.state.invocation import Invocation
from fnop.core.state.objects import Objects
from fnop.core.state.record import Expectation, ObjectRecord, Work
from fnop.core.state.writing import Contents, Writing
from fnop.core.values.body import Body, Key, compact
from fnop.core.values.packing import PACKED_MAX, Packing
from fnop.effects.structs import replace
from fnop.interpreters.runtime.packings import Packings
from tests.property.strategies import json_objects

KIND = "pods.v1."


def text(name: str, **spec: object) -> bytes:
    meta = {"name": name, "uid": "u", "resourceVersion": "7"}
    return orjson.dumps({"kind": "Pod", "metadata": meta, "spec": spec})


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_any_text_is_read_as_it_was(like: bytes, other: bytes) -> None:
    packing = Packing(like)
    assert packing.text_of(packing.packed(other)) == other
    assert packing.text_of(packing.packed(like)) == like


@given(json_objects)
def test_a_packed_body_is_the_same(found: dict[str, object]) -> None:
    raw = orjson.dumps(found)
    plain, packed = Body(None, raw), Body(None, raw)
    packed.pack(Packing(text("a")))
    assert packed.raw == raw
    assert packed == plain
    packed.forget()
    assert packed.data == plain.data


def test_a_body_without_text_and_a_very_long_one_stay_as_they_are() -> None:
    packing = Packing()
    parsed = Body({"metadata": {"uid": "u"}})
    parsed.pack(packing)
    assert parsed.uid == "u"
    long = text("a", data="x" * PACKED_MAX)
    body = Body(None, long)
    body.pack(packing)
    assert body._raw is long


def test_a_kind_is_packed_once_two_of_its_objects_are_known() -> None:
    packings, like = Packings(), text("first", image="registry.example.com/a/long/name")
    bodies = [Body(None, like.replace(b"first", b"%d" % n)) for n in range(4)]
    for each in bodies:
        packings.pack(KIND, each, None)
    assert bodies[0]._raw == bodies[0].raw
    assert [each.name for each in bodies] == ["0", "1", "2", "3"]
    assert all(len(each._raw or b"") < len(like) / 4 for each in bodies[1:])


@pytest.mark.parametrize("size", [20, 300, 3_000, 30_000])
def test_the_window_holds_the_text_that_others_are_like(size: int) -> None:
    notes = "".join(map(chr, Random(size).choices(range(48, 122), k=size)))
    packing = Packing(text("a", notes=notes) + text("b", notes=notes))
    other = text("c", notes=notes)
    packed = packing.packed(other)
    assert packing.text_of(packed) == other
    # A match has at most 258 bytes.
    assert len(packed) < 60 + size / 30


def in_line(*records: tuple[str, ObjectRecord]) -> tuple[Objects, list[Key]]:
    keys = [Key(KIND, "", name) for name, _ in records]
    found = zip(keys, (each for _, each in records), strict=True)
    return Objects(Map(found)), keys


def record_of(name: str, **facts: Any) -> ObjectRecord:
    return ObjectRecord(Body(None, text(name, notes="n" * 300)), Stored(), **facts)


def is_packed(record: ObjectRecord) -> bool:
    return len(record.body._raw or b"") < 200


def test_an_object_is_packed_when_it_is_at_rest() -> None:
    busy = Work(writing=Writing(Contents()))
    # The texts of the first two of a kind stay as they are, or begin its packing.
    objects, keys = in_line(
        *((name, record_of(name)) for name in ("a", "b", "rests")),
        ("busy", record_of("busy", work=busy)),
        ("due", record_of("due")),
    )
    objects = replace(objects, queue=objects.queue.add(keys[-1], 5.0))
    packings = Packings()
    for each in keys:
        packings.enqueue(each)
    for _ in keys:
        packings.pack_rested(objects, 5.0)
    records = {key.name: record for key, record in objects.records.items()}
    packed = {name for name, each in records.items() if is_packed(each)}
    assert packed - {"b"} == {"rests"}
    # They stay in the line until they are.
    later = objects.records.set(keys[-2], record_of("busy")).delete(keys[-1])
    objects = replace(objects, records=later)
    for _ in keys:
        packings.pack_rested(objects, 5.0)
    assert is_packed(objects.records[keys[-2]])


def test_daemons_do_not_keep_an_object_from_its_rest() -> None:
    run = Invocation(1, cast(Any, None))
    assert record_of("a", work=Work(background_runs=(run,))).is_at_rest
    assert not record_of("a", work=Work(running=(run,))).is_at_rest
    assert not record_of("a", expected=Expectation("7", 1, 0.0)).is_at_rest


def test_a_packed_body_keeps_its_text_alone() -> None:
    body = Body(None, text("a"))
    assert body.uid == "u"
    body.pack(Packing())
    with pytest.raises(AttributeError):
        object.__getattribute__(body, "uid")
    assert (body.uid, body.version, body.is_deleting) == ("u", "7", False)


def test_former_values_are_packed_like_their_object() -> None:
    notes = "".join(map(chr, range(33, 120))) * 20
    body = Body(None, text("a", notes=notes))
    values = FormerValues({"": {"spec": {"notes": notes}}})
    parsed = values.parsed
    for _ in range(2):
        values.pack(body)
        assert len(values._values) < 60
        assert values.parsed == parsed
    body.pack(Packing(text("b")))
    assert values.parsed == parsed


def test_former_values_stay_as_they_are_beside_an_object_without_text() -> None:
    for body in (Body({"kind": "Pod"}), Body(None, text("a", data="x" * PACKED_MAX))):
        values = FormerValues({"/spec": 1})
        values.pack(body)
        assert values._values == b'{"/spec":1}'


def test_a_state_is_kept_only_if_its_values_are_in_the_same_order() -> None:
    body = Body(None, text("a", notes="n" * 500))
    was = Stored(Seen({"": "1:abc"}, FormerValues({"": {"a": 1, "b": "n" * 500}})))
    same = Stored(Seen({"": "1:abc"}, FormerValues({"": {"a": 1, "b": "n" * 500}})))
    other = Stored(Seen({"": "1:abc"}, FormerValues({"": {"b": "n" * 500, "a": 1}})))
    assert was.seen is not None
    assert was.seen.values is not None
    was.seen.values.pack(body)
    assert shared(same, was) is was
    kept = shared(other, was)
    assert kept is other == was
    assert kept.seen is not None
    assert kept.seen.values is not None
    assert [*kept.seen.values.parsed[""]] == ["b", "a"]
    assert len(kept.seen.values._values) < 60


TEXTS = st.text(max_size=20) | st.from_regex(r"1:[0-9a-f]{19,21}", fullmatch=True)


@given(st.dictionaries(st.text(max_size=5), TEXTS | st.booleans().map(digest_of)))
def test_digests_are_read_as_they_were(digests: dict[str, str]) -> None:
    assert Seen(digests).digests == digests


def is_parsed(body: Body) -> bool:
    """Whether its text is parsed; to ask for the data would parse it."""
    try:
        object.__getattribute__(body, "data")
    except AttributeError:
        return False
    return True


def test_few_bodies_are_kept_parsed() -> None:
    bodies = [Body(None, text(str(n), data="x" * 10_000)) for n in range(300)]
    for each in bodies:
        assert each.data["kind"] == "Pod"
    parsed = [is_parsed(each) for each in bodies]
    assert sum(parsed) < 110
    assert all(parsed[-90:])
    assert all(each.name == str(n) for n, each in enumerate(bodies))


def test_of_two_equal_bodies_the_text_is_kept() -> None:
    raw = text("a", size=1)
    parsed, same, other = (
        Body(orjson.loads(raw)),
        Body(None, raw),
        Body(None, text("b")),
    )
    assert compact(parsed, same) is same
    assert compact(parsed, other) is parsed
    assert compact(same, Body(None, raw)) is same
    assert compact(parsed, Body(orjson.loads(raw))) is parsed


def test_former_values_of_any_depth_are_kept() -> None:
    deep: object = 1
    for _ in range(600):
        deep = {"a": deep}
    assert FormerValues({"": deep}).parsed == {"": deep}
