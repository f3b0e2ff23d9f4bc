"""Structural schemas: an admitted object is admitted again, unchanged."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.interpreters.cluster.schema.schema import compile_root, object_faults
from tests.thorough import examples

Json = dict[str, Any]

NAMES = st.sampled_from("abcd")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, 2.0, 1e30]),
    st.sampled_from(["", "a", "ab", "A", "2020-01-01", "é"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=6,
)
LIMITS: dict[str, st.SearchStrategy[Json]] = {
    "integer": st.fixed_dictionaries(
        {}, optional={"minimum": st.integers(0, 5), "multipleOf": st.integers(1, 3)}
    ),
    "string": st.fixed_dictionaries(
        {},
        optional={
            "maxLength": st.integers(0, 2),
            "pattern": st.just("^a"),
            "format": st.just("date"),
            "enum": st.just(["a", "A"]),
        },
    ),
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Json:
    """A structural schema; its defaults are anything but null."""
    nested = ("object", "object", "map", "array", "keyed")
    kind = draw(
        st.sampled_from(
            ("integer", "string", "either", "open", *(nested if depth else ()))
        )
    )
    found: Json = {"type": kind}
    below = schemas(depth=depth - 1)
    if kind in LIMITS:
        found |= draw(LIMITS[kind])
    elif kind == "either":
        found = {"x-kubernetes-int-or-string": True}
    elif kind == "open":
        found = {"x-kubernetes-preserve-unknown-fields": True}
    elif kind == "object":
        found["properties"] = draw(st.dictionaries(NAMES, below, max_size=3))
        found["required"] = draw(st.lists(NAMES, max_size=1))
        found["x-kubernetes-preserve-unknown-fields"] = draw(st.booleans())
        found["x-kubernetes-embedded-resource"] = draw(st.booleans())
    elif kind == "map":
        found = {"type": "object", "additionalProperties": draw(st.just(True) | below)}
    elif kind == "array":
        found["items"] = draw(below)
        found["x-kubernetes-list-type"] = draw(st.sampled_from(("atomic", "set")))
    else:
        key = {"type": "string", "default": "d"}
        properties = {"a": key, "b": draw(below)}
        found = {
            "type": "array",
            "items": {"type": "object", "properties": properties},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a"],
        }
    if draw(st.booleans()):
        found["nullable"] = True
    if draw(st.integers(0, 3)) == 0:
        found["default"] = draw(VALUES.filter(lambda value: value is not None))
    if draw(st.integers(0, 5)) == 0:
        found["anyOf"] = draw(
            st.lists(LIMITS["integer"] | LIMITS["string"], max_size=2)
        )
    return found


@settings(max_examples=examples(50), deadline=None)
@given(schema=schemas(), value=VALUES, other=VALUES)
def test_what_is_admitted_is_admitted_again(
    schema: Json, value: Any, other: Any
) -> None:
    root = compile_root({"type": "object", "properties": {"spec": schema}})
    assert root is not None
    given = {"apiVersion": "a/v1", "kind": "A", "metadata": {}, "spec": value}
    before = deepcopy(given)
    once = root.filled(given)
    assert given == before
    # Pruning and defaulting are done once and for all.
    assert root.filled(once) is once
    assert root.filled(deepcopy(once)) == once
    # What is there already may stay, whatever is wrong with it; only objects inside
    # of objects must always say what they are.
    if not root.has_embedded or not [*object_faults(root, once)]:
        assert not [*object_faults(root, once, once)]
        assert not [*object_faults(root, deepcopy(once), once)]
    # A shortcut along what is shared finds what a look at everything finds.
    changed = {**once, "spec": other}
    assert root.filled(changed, once) == root.filled(changed)
