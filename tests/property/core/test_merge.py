"""Merge patches: exactly those that change nothing are dropped."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings, strategies as st
from jsonpointer import JsonPointerException

from fnop.core.values.diff import diff, reduce, resolve
from fnop.core.values.merge import OperationFailed, difference, effective, operated
from fnop.effects.values import same_json, thaw_json
from tests.property.strategies import json_objects, json_values
from tests.thorough import examples

pointers = st.lists(
    st.sampled_from(["a", "b", "spec", "0", "1", "-"]), min_size=1, max_size=3
).map(lambda parts: "".join(f"/{part}" for part in parts))

steps = st.one_of(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "replace", "test"]),
            "path": pointers,
            "value": json_values,
        }
    ),
    st.fixed_dictionaries({"op": st.just("remove"), "path": pointers}),
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["copy", "move"]),
            "from": pointers,
            "path": pointers,
        }
    ),
)


def reference(patch: Any, base: Any) -> Any:
    """RFC 7386, as it is written there."""
    if not isinstance(patch, dict):
        return thaw_json(patch)
    found = thaw_json(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = reference(value, found.get(key))
    return found


def without_nulls(value: Any) -> Any:
    """An object of the API server has no null members to speak of."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return value


@settings(max_examples=examples(50))
@given(json_objects, json_objects)
def test_the_effective_part_does_all_that_the_patch_does(patch: Any, base: Any) -> None:
    base = without_nulls(base)
    assert same_json(reference(effective(patch, base), base), reference(patch, base))


@settings(max_examples=examples(50))
@given(json_objects, json_objects)
def test_what_has_been_applied_has_no_effect_any_more(patch: Any, base: Any) -> None:
    base = without_nulls(base)
    assert effective(patch, reference(patch, base)) == {}


@settings(max_examples=examples(50))
@given(json_objects, json_objects)
def test_the_difference_makes_the_target(base: Any, target: Any) -> None:
    base, target = without_nulls(base), without_nulls(target)
    assert same_json(reference(difference(base, target), base), target)
    assert difference(target, target) == {}


@settings(max_examples=examples(50))
@given(json_objects, st.lists(steps, max_size=4))
def test_json_patches_do_what_the_library_does(base: Any, found: Any) -> None:
    try:
        expected = jsonpatch.apply_patch(thaw_json(base), found)
    except (jsonpatch.JsonPatchException, JsonPointerException):
        with pytest.raises(OperationFailed):
            operated(found, base)
    else:
        before = thaw_json(base)
        assert same_json(operated(found, base), expected)
        assert same_json(base, before)


@settings(max_examples=examples(50))
@given(json_objects, json_objects)
def test_equal_objects_have_no_differences(one: Any, other: Any) -> None:
    assert diff(one, one) == ()
    assert bool(diff(one, other)) == (
        not same_json(without_nulls(one), without_nulls(other))
    )


@settings(max_examples=examples(50))
@given(json_objects, json_objects)
def test_a_reduced_diff_is_the_diff_of_the_field(one: Any, other: Any) -> None:
    for key in ("a", "spec"):
        path = (key,)
        assert reduce(diff(one, other), path) == diff(
            resolve(one, path), resolve(other, path)
        )
