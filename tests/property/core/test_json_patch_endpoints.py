"""A JSON patch that is split over two endpoints has the effect of one request."""

from typing import Any

from hypothesis import assume, given, settings, strategies as st

import fnop
from fnop.core.api.resources import Resource
from fnop.core.state.address import Address
from fnop.core.state.in_flight import in_flight_for
from fnop.core.state.splitting import cannot_split
from fnop.core.values.diff import resolve
from fnop.core.values.merge import OperationFailed, operated
from fnop.effects import Patch
from fnop.effects.values import same_json
from tests.thorough import examples

AT = Address(Resource("", "v1", "pods", "Pod", subresources=("status",)), "ns", "p")
PARTS = ("spec", "status")
OPERATIONS = (*["add"] * 4, *["test"] * 4, "remove", "copy", "move")

VALUES = st.sampled_from([1, 2, {"a": 1}])
PATHS = st.sampled_from([f"/{part}{end}" for part in PARTS for end in ("/a", "/b", "")])
objects = st.fixed_dictionaries(
    {name: st.dictionaries(st.sampled_from("ab"), VALUES) for name in PARTS}
)


@st.composite
def patches(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any]]:
    """An object and operations; nearly all fit its state at that time."""
    found: Any = draw(objects)
    now, steps = found, []
    for _ in range(draw(st.integers(1, 9))):
        path = draw(PATHS)
        step: dict[str, Any] = {"op": draw(st.sampled_from(OPERATIONS)), "path": path}
        match step["op"]:
            case "copy" | "move":
                step["from"] = draw(PATHS)
            case "test":
                there = resolve(now, tuple(path[1:].split("/")))
                step["value"] = draw(st.one_of(st.just(there), st.just(there), VALUES))
            case "add":
                step["value"] = draw(VALUES)
            case _:
                pass
        try:
            now = operated([step], now)
        except OperationFailed:
            if draw(st.integers(0, 5)):
                continue
        steps.append(step)
    return found, steps


def made(patch: Patch, found: dict[str, Any]) -> dict[str, Any]:
    """The part of a patch that an endpoint keeps: its own part of the object."""
    after = operated(patch.json, found)
    theirs = {"status"} if patch.subresource != "status" else {*PARTS} - {"status"}
    kept = {name: value for name, value in after.items() if name not in theirs}
    return kept | {name: found[name] for name in theirs if name in found}


@settings(max_examples=examples(100))
@given(patches())
def test_two_requests_do_what_one_would(
    drawn: tuple[dict[str, Any], list[Any]],
) -> None:
    found, operations = drawn
    assume(operations)
    patch = fnop.patch(fnop.target("pods", name="p"), json=operations)
    if cannot_split(patch, AT) is not None:
        return
    try:
        whole = operated(patch.json, found)
    except OperationFailed:
        whole = None
    for request in in_flight_for(patch, AT).requests:
        assert isinstance(request.effect, Patch)
        try:
            found = made(request.effect, found)
        except OperationFailed:
            assert whole is None
            return
    assert whole is not None
    assert same_json(found, whole)
