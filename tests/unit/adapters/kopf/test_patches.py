"""Patches with the same content as Kopf's after the same writes."""

from __future__ import annotations

import copy
import doctest
from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.kopf.arguments import patches
from fnop.adapters.kopf.arguments.patches import Patch, changed_by

theirs = pytest.importorskip("kopf")

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.none() | st.integers(0, 3) | st.dictionaries(KEYS, st.integers(0, 3))
# The stanza, the key and the value of one write.
STANZAS: dict[str, Callable[[Any], Any]] = {
    "patch": lambda patch: patch,
    "metadata": lambda patch: patch.metadata,
    "labels": lambda patch: patch.meta.labels,
    "annotations": lambda patch: patch.metadata.annotations,
    "spec": lambda patch: patch.spec,
    "status": lambda patch: patch.status,
}
WRITES = st.lists(
    st.tuples(
        st.sampled_from(["set", "delete", "setdefault", "update", "pop"]),
        st.sampled_from([*STANZAS]),
        KEYS,
        VALUES,
    ),
    max_size=8,
)
STANZA_NAMES = st.sampled_from(["spec", "status", "metadata", "a"])
NUMBERS = st.integers(0, 3) | st.just([1])
# Kopf fails if a patch puts a mapping in the place of another value.
MAPPINGS = st.sampled_from(["d", "e"])
NESTED = st.dictionaries(KEYS, NUMBERS, max_size=3)
BODIES = st.dictionaries(
    STANZA_NAMES,
    st.builds(
        lambda flat, deep: {**flat, **deep},
        NESTED,
        st.dictionaries(MAPPINGS, NESTED, max_size=2),
    ),
    max_size=4,
)
CHANGES = st.dictionaries(
    STANZA_NAMES,
    st.builds(
        lambda flat, deep: {**flat, **deep},
        st.dictionaries(KEYS, NUMBERS | st.none(), max_size=3),
        st.dictionaries(
            MAPPINGS, st.none() | st.dictionaries(KEYS, NUMBERS | st.none(), max_size=3)
        ),
    ),
    max_size=4,
)


def write(patch: Any, verb: str, stanza: str, key: str, value: Any) -> str:
    """Write into a patch; return the name of the error, if any."""
    place = STANZAS[stanza](patch)
    value = copy.deepcopy(value)
    try:
        match verb:
            case "set":
                place[key] = value
            case "delete":
                del place[key]
            case "setdefault":
                place.setdefault(key, value)
            case "update":
                place.update({key: value})
            case _:
                place.pop(key, None)
    except KeyError:
        return "KeyError"
    return ""


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(patches)
    assert found.attempted
    assert found.failed == 0


@settings(max_examples=40)
@given(WRITES)
def test_the_same_writes_make_the_same_patch(writes: list[Any]) -> None:
    ours, kopf = Patch(), theirs.Patch()
    for each in writes:
        assert write(ours, *each) == write(kopf, *each)
        assert dict(ours) == dict(kopf)
        for see in STANZAS.values():
            assert dict(see(ours)) == dict(see(kopf))
            assert len(see(ours)) == len(see(kopf))
    assert bool(ours) is bool(kopf)


def append(body: Any) -> None:
    body.setdefault("spec", {})["list"] = [1, 2]


@settings(max_examples=40)
@given(BODIES, CHANGES, st.booleans())
def test_its_operations_make_the_object_that_those_of_kopf_make(
    body: dict[str, Any], changes: dict[str, Any], with_fn: bool
) -> None:
    fns = [append] if with_fn else []
    ours = Patch(copy.deepcopy(changes), body=body, fns=fns)
    kopf = theirs.Patch(copy.deepcopy(changes), body=body, fns=fns)
    before = copy.deepcopy(body)
    made = jsonpatch.apply_patch(body, ours.as_json_patch())
    wanted = jsonpatch.apply_patch(body, kopf.as_json_patch())
    assert pruned(made) == pruned(wanted)
    assert body == before
    assert made == changed_by(ours, body)


def pruned(value: Any) -> Any:
    """An object without empty mappings, which Kopf removes with their last key."""
    if not isinstance(value, dict):
        return value
    found = {key: pruned(each) for key, each in value.items()}
    return {key: each for key, each in found.items() if each not in ({}, None)}


def test_a_body_that_is_given_replaces_the_own_one() -> None:
    patch = Patch({"spec": {"a": 1}}, body={"spec": {"a": 1}})
    assert patch.as_json_patch() == []
    assert patch.as_json_patch({"spec": {"a": 2}}) == [
        {"op": "replace", "path": "/spec/a", "value": 1}
    ]


def test_only_a_patch_without_changes_needs_no_body() -> None:
    for cls in (Patch, theirs.Patch):
        assert cls().as_json_patch() == []
        with pytest.raises(ValueError, match="body"):
            cls({"spec": {}}).as_json_patch()


def test_functions_change_the_object_after_the_merge_patch() -> None:
    seen = []
    patch = Patch({"spec": {"a": 1}})
    patch.fns.append(lambda body: seen.append(body["spec"]["a"]))
    patch.fns.append(lambda body: body["spec"].pop("a"))
    assert changed_by(patch, {"spec": {"b": 2}}) == {"spec": {"b": 2}}
    assert seen == [1]


def test_functions_count_as_changes_and_are_cleared() -> None:
    for cls in (Patch, theirs.Patch):
        patch = cls()
        assert not patch
        patch.fns.append(append)
        patch.spec["a"] = 1
        assert patch
        patch.clear()
        assert not patch
        assert patch.fns == []


def test_a_patch_of_a_patch_has_its_functions() -> None:
    for cls in (Patch, theirs.Patch):
        first = cls({"spec": {}}, fns=[append])
        second = cls(first, fns=[print])
        assert second == first
        assert second.fns == [append, print]
        assert first.fns == [append]


def test_a_patch_is_shown_as_kopf_shows_it() -> None:
    assert repr(Patch()) == "Patch()"
    assert str(Patch({"spec": {"a": 1}})) == "Patch({'spec': {'a': 1}})"
    assert repr(Patch({"a": 1}, fns=[print])) == f"Patch({{'a': 1}}, fns=[{print!r}])"
