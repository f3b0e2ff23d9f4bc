"""The stored data of an object: essence, digests, and the text of its state."""

import base64
import random
import tracemalloc
import zlib
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import kind_of
from fnop.core.memory.observation import (
    FormerValues,
    Observation,
    Seen,
    essence_of,
    scope_name,
    see,
    value_at,
)
from fnop.core.memory.progress import Progress
from fnop.core.memory.stored_state import (
    STATE_LENGTH_MAX,
    Stored,
    Unreadable,
    read_stored,
    write_stored,
)
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from tests.property.strategies import json_objects, json_values
from tests.thorough import examples

UID = "11111111-2222"


def body(spec: Any = None, **meta: Any) -> Body:
    return Body(
        {
            "apiVersion": "fnop.dev/v1",
            "kind": "FnopExample",
            "metadata": {"name": "x", "uid": UID, **meta},
            "spec": spec or {"size": 1},
            "status": {"phase": "Ready"},
        }
    )


# --------------------------------------------------------------------- essence


def test_the_essence_is_what_the_author_writes() -> None:
    found = essence_of(
        body(
            labels={"a": "1"},
            annotations={
                "mine": "1",
                "fnop.dev/default": "state",
                "fnop.dev/other": "state",
                "kopf.zalando.org/last-handled-configuration": "state",
                "kubectl.kubernetes.io/last-applied-configuration": "copy",
            },
            resourceVersion="5",
            generation=3,
            finalizers=["f"],
            ownerReferences=[{"uid": "o"}],
            managedFields=[{}],
        )
    )
    assert found == {
        "spec": {"size": 1},
        "metadata": {"labels": {"a": "1"}, "annotations": {"mine": "1"}},
    }


def test_stanzas_other_than_spec_belong_to_it() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "v"}}
    assert essence_of(Body(secret)) == {"data": {"k": "v"}}


@pytest.mark.parametrize("meta", [None, [], "x", {"labels": None, "annotations": 5}])
def test_malformed_metadata_hurts_nobody(meta: Any) -> None:
    found = Body({"metadata": meta, "spec": {}})
    if isinstance(meta, dict):
        meta["annotations"] = None
    assert essence_of(found) == {"spec": {}}


# ----------------------------------------------------------------- observation


def test_r27_each_scope_has_a_digest_of_its_own() -> None:
    scopes = ((), ("spec", "size"))
    one = see(body(), Observation(scopes))
    other = see(body({"size": 1, "colour": "red"}), Observation(scopes))
    assert one.digests["/spec/size"] == other.digests["/spec/size"]
    assert one.digests[""] != other.digests[""]
    assert all(digest.startswith("1:") for digest in one.digests.values())


def test_without_an_observer_of_the_past_only_digests_are_kept() -> None:
    assert see(body(), Observation(((),))).values is None


def test_with_one_the_essence_is_kept_once() -> None:
    seen = see(body(), Observation(((), ("spec", "size")), kept=((), ("spec", "size"))))
    assert seen.values == FormerValues({"": {"spec": {"size": 1}}})
    assert value_at(seen, ("spec", "size")) == 1
    assert value_at(seen, ()) == {"spec": {"size": 1}}
    assert value_at(seen, ("spec", "absent")) is None


def test_a_field_outside_of_the_essence_is_kept_beside_it() -> None:
    seen = see(
        body(), Observation(((), ("status", "phase")), kept=((), ("status", "phase")))
    )
    assert value_at(seen, ("status", "phase")) == "Ready"
    assert seen.values is not None
    assert "status" not in seen.values.parsed[""]


def test_what_is_not_known_was_nothing() -> None:
    assert value_at(None, ("spec",)) is None
    assert value_at(Seen({"": "1:abc"}), ("spec",)) is None


@settings(max_examples=examples(40))
@given(json_objects, st.randoms(use_true_random=False))
def test_a_digest_does_not_depend_on_the_order_of_keys(
    spec: dict[str, Any], chance: random.Random
) -> None:
    items = list(spec.items())
    chance.shuffle(items)
    everything = Observation(((), ("spec",)))
    one, other = body({"s": 1, **spec}), body({**dict(items), "s": 1})
    other.data["spec"]["s"] = one.data["spec"]["s"]
    assert see(one, everything) == see(other, everything)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), ""),
        (("spec",), "/spec"),
        (("metadata", "labels", "a/b"), "/metadata/labels/a~1b"),
        (("a~b",), "/a~0b"),
        (("a/", "b"), "/a~1/b"),
        (("a", "/b"), "/a/~1b"),
    ],
)
def test_scopes_are_named_without_collisions(path: tuple[str, ...], name: str) -> None:
    assert scope_name(path) == name


# ------------------------------------------------------------------ stored text

moments = st.integers(0, 4 * 10**9).map(float)
progresses = st.tuples(
    st.text(max_size=10),
    st.integers(0, 100),
    st.none() | moments,
    st.none() | moments,
    st.none(),
    st.sampled_from([None, "success", "failure"]),
    st.none() | st.text(max_size=10),
).map(lambda fields: Progress(*fields))
texts = st.text(max_size=6)
stored_states = st.builds(
    Stored,
    st.none()
    | st.builds(
        Seen,
        st.dictionaries(texts, texts, max_size=3),
        st.none() | st.dictionaries(texts, json_values, max_size=3).map(FormerValues),
    ),
    st.booleans(),
    st.dictionaries(texts, progresses, max_size=3),
    st.dictionaries(texts, json_values, max_size=3),
    st.just(()),
)


@settings(max_examples=examples(40))
@given(stored_states)
def test_what_is_read_is_what_was_written(stored: Stored) -> None:
    text = write_stored(stored, UID)
    assert read_stored(text, UID) == stored
    ignoring = replace(stored, ignoring=("/spec/replicas", "/metadata/labels/a~1b"))
    ignored = (("spec", "replicas"), ("metadata", "labels", "a/b"))
    assert read_stored(write_stored(stored, UID, ignored), UID) == ignoring
    assert write_stored(stored, UID) == text


@settings(max_examples=examples(25))
@given(stored_states)
def test_r21_the_state_of_another_uid_is_no_state(stored: Stored) -> None:
    assert read_stored(write_stored(stored, UID), "another") is None


def keeping(size: int, *, noise: bool = False) -> Stored:
    chance = random.Random(0)
    text = chance.randbytes(size // 2).hex() if noise else "x" * size
    return Stored(Seen({"": "1:abc"}, FormerValues({"": {"spec": {"text": text}}})))


def test_an_essence_of_more_than_4_kib_is_compressed() -> None:
    small, large = keeping(4000), keeping(5000)
    assert len(write_stored(small, UID)) > 4000
    assert len(write_stored(large, UID)) < 500
    assert isinstance(orjson.loads(write_stored(large, UID))["was"], str)
    assert read_stored(write_stored(large, UID), UID) == large


def test_what_does_not_fit_even_so_is_refused_with_the_remedy() -> None:
    assert write_stored(keeping(1_000_000), UID), "it compresses well"
    with pytest.raises(ValueError, match=r"narrow them with field=") as problem:
        write_stored(keeping(1_000_000, noise=True), UID)
    assert str(STATE_LENGTH_MAX) in str(problem.value)


def test_the_text_is_ascii_that_an_annotation_can_hold() -> None:
    long = FormerValues({"": {"spec": {"text": "ä" * 5000}}})
    stored = Stored(Seen({"": "1:abc"}, long))
    assert read_stored(write_stored(stored, UID), UID) == stored


def test_the_limit_is_about_bytes() -> None:
    """The API server counts the bytes of an annotation, not its characters."""
    wide = Stored(Seen({"": "1:abc"}), results={"h": "ä" * (STATE_LENGTH_MAX - 1000)})
    with pytest.raises(ValueError, match="bytes long"):
        write_stored(wide, UID)


# ------------------------------------------------------- what cannot be understood

GOOD = write_stored(keeping(10), UID)


def changed(**change: Any) -> str:
    return orjson.dumps({**orjson.loads(GOOD), **change}).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "5",
        '"text"',
        "{}",
        5,
        [],
        True,
        {"no": "version"},
        changed(v="1"),
        changed(v=None),
        changed(seen=5),
        changed(seen=[]),
        changed(seen="abc"),
        changed(was="no base64"),
        changed(was="QUJD"),  # base64, but nothing compressed
        changed(was=[1]),
        changed(was=5),
        changed(progress=[1]),
        changed(progress="abc"),
        changed(progress={"h": 5}),
        changed(progress={"h": {"aim": "a", "until": "soon"}}),
        changed(progress={"h": {"aim": "a", "finished": "maybe"}}),
        changed(results=[1]),
        changed(results="abc"),
    ],
)
def test_r25_a_corrupt_state_is_unreadable_and_no_creation(text: Any) -> None:
    assert isinstance(read_stored(text, UID), Unreadable)


def test_r25_a_newer_state_is_unreadable_whatever_it_holds() -> None:
    found = read_stored(changed(v=2, seen=["new", "form"]), UID)
    assert isinstance(found, Unreadable)
    assert "newer release (v2)" in found.problem


def test_no_state_is_no_state() -> None:
    assert read_stored(None, UID) is None


def test_r26_what_this_release_does_not_know_is_no_obstacle() -> None:
    """A later release of the same version may add a field."""
    assert read_stored(changed(added={"a": 1}), UID) == keeping(10)


members = json_values | st.dictionaries(texts, json_values, max_size=2)


@settings(max_examples=examples(60))
@given(
    json_values
    | st.text()
    | st.fixed_dictionaries(
        {"v": st.just(1), "uid": st.just(UID)},
        optional={
            name: members
            for name in ("seen", "was", "creating", "progress", "results", "later")
        },
    )
)
def test_reading_is_total(found: Any) -> None:
    for text in (found, orjson.dumps(found).decode()):
        assert isinstance(read_stored(text, UID), Stored | Unreadable | None)


def test_a_filter_of_what_a_field_was_keeps_the_field_alone() -> None:
    registry = Registry()

    @fnop.on.update("secrets", registry=registry)
    def update(**_: Any) -> None: ...

    @fnop.on.field("secrets", field="metadata.labels", old="a", registry=registry)
    def label(**_: Any) -> None: ...

    kind = kind_of(Resource("", "v1", "secrets", "Secret"), registry.handlers)
    secret = Body(
        {"data": {"password": "czNjcjN0"}, "metadata": {"labels": {"a": "b"}}}
    )
    seen = see(secret, kind.observation)
    assert seen.values == FormerValues({"/metadata/labels": {"a": "b"}})
    assert "czNjcjN0" not in write_stored(Stored(seen), "u")


def test_what_unpacks_to_more_than_any_object_is_unreadable() -> None:
    """The author of an object can write the annotation: 200 KiB become 200 MB."""
    bomb = base64.b64encode(zlib.compress(b" " * 100_000_000, 9)).decode()
    text = changed(was=bomb)
    tracemalloc.start()
    found = read_stored(text, UID)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(found, Unreadable)
    assert "larger than any object" in found.problem
    assert peak < 40_000_000
