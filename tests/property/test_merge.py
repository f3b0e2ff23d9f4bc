"""Merge patches: what is dropped as a no-op is one, and nothing else is."""

from typing import Any

import jsonpatch  # type: ignore[import-untyped]  # it has no types
from hypothesis import given

from fnop.core.diff import diff, reduce, resolve
from fnop.core.merge import effective, merged, operations
from fnop.effects.values import same_json, thaw_json
from tests.property.strategies import json_objects


def applied(patch: Any, base: Any) -> Any:
    """RFC 7386, as it is written there."""
    if not isinstance(patch, dict):
        return thaw_json(patch)
    found = thaw_json(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = applied(value, found.get(key))
    return found


def without_nulls(value: Any) -> Any:
    """An object of the API server has no null members to speak of."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return value


@given(json_objects, json_objects)
def test_the_effective_part_does_all_that_the_patch_does(patch: Any, base: Any) -> None:
    base = without_nulls(base)
    assert same_json(applied(effective(patch, base), base), applied(patch, base))


@given(json_objects, json_objects)
def test_what_has_been_applied_has_no_effect_any_more(patch: Any, base: Any) -> None:
    base = without_nulls(base)
    assert effective(patch, applied(patch, base)) == {}


@given(json_objects, json_objects, json_objects)
def test_merged_patches_do_what_one_after_the_other_does(
    one: Any, other: Any, base: Any
) -> None:
    # A removal in the first is lost where the second writes below it again.
    one, base = without_nulls(one), without_nulls(base)
    together = applied(merged(one, other), base)
    assert same_json(together, applied(other, applied(one, base)))


@given(json_objects, json_objects)
def test_as_json_patch_it_does_the_same(patch: Any, base: Any) -> None:
    base = without_nulls(base)
    steps = operations(patch, base)
    found = jsonpatch.apply_patch(thaw_json(base), steps)
    assert same_json(found, applied(patch, base))


@given(json_objects, json_objects)
def test_equal_objects_have_no_differences(one: Any, other: Any) -> None:
    assert diff(one, one) == ()
    assert bool(diff(one, other)) == (
        not same_json(without_nulls(one), without_nulls(other))
    )


@given(json_objects, json_objects)
def test_a_reduced_diff_is_the_diff_of_the_field(one: Any, other: Any) -> None:
    for key in ("a", "spec"):
        path = (key,)
        assert reduce(diff(one, other), path) == diff(
            resolve(one, path), resolve(other, path)
        )
