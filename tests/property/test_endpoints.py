"""A JSON patch of two endpoints does what it would do in one request."""

from typing import Any

from hypothesis import given, strategies as st

import fnop
from fnop.core.errands import Address, cannot_split, errand_for
from fnop.core.merge import OperationFailed, operated
from fnop.core.resources import Resource
from fnop.effects import Patch
from fnop.effects.values import same_json

AT = Address(Resource("", "v1", "pods", "Pod", subresources=("status",)), "ns", "p")
PARTS = ("spec", "status")

pointers = st.tuples(st.sampled_from(PARTS), st.sampled_from(["", "/a", "/b", "/a/-"]))
paths = pointers.map(lambda each: f"/{each[0]}{each[1]}")
values = st.sampled_from([1, 2, [1], {"a": 1}])
steps = st.one_of(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "replace", "test"]),
            "path": paths,
            "value": values,
        }
    ),
    st.fixed_dictionaries({"op": st.just("remove"), "path": paths}),
    st.fixed_dictionaries(
        {"op": st.sampled_from(["copy", "move"]), "from": paths, "path": paths}
    ),
)
objects = st.fixed_dictionaries(
    {name: st.dictionaries(st.sampled_from("ab"), values) for name in PARTS}
)


def made(patch: Patch, found: dict[str, Any]) -> dict[str, Any]:
    """What an endpoint keeps of a patch: its own part of the object."""
    after = operated(patch.json, found)
    theirs = {"status"} if patch.subresource != "status" else {*PARTS} - {"status"}
    kept = {name: value for name, value in after.items() if name not in theirs}
    return kept | {name: found[name] for name in theirs if name in found}


@given(objects, st.lists(steps, min_size=1, max_size=6))
def test_two_requests_do_what_one_would(
    found: dict[str, Any], operations: list[Any]
) -> None:
    patch = fnop.patch(fnop.target("pods", name="p"), json=operations)
    if cannot_split(patch, AT) is not None:
        return
    try:
        whole = operated(patch.json, found)
    except OperationFailed:
        whole = None
    for request in errand_for(patch, AT).requests:
        assert isinstance(request.effect, Patch)
        try:
            found = made(request.effect, found)
        except OperationFailed:
            assert whole is None
            return
    assert whole is not None
    assert same_json(found, whole)
