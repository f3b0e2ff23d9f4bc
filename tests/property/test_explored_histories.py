"""Random histories of one object: whatever happens, nothing is lost or done twice.

`make explore-core` plays 20,000 of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.explored import (
    AHEAD,
    FAULTS,
    HANDLERS,
    UNRETRIED,
    Move,
    Shape,
    broken_laws,
    played,
)
from tests.thorough import examples

handlers = st.frozensets(st.sampled_from(sorted(HANDLERS)), min_size=1)
shapes = st.builds(
    lambda names, retried, ahead, *more: Shape(
        names, names & retried - UNRETRIED, names & ahead, *more
    ),
    handlers,
    st.frozensets(st.sampled_from(sorted(HANDLERS))),
    st.frozensets(st.sampled_from(sorted(AHEAD))),
    st.booleans(),
    st.booleans(),
)
kinds = st.sampled_from(("own", "children"))
edits = st.one_of(
    st.tuples(st.just("edit"), st.just("n"), st.integers(0, 3)),
    st.tuples(st.just("edit"), st.just("color"), st.sampled_from(("red", "green"))),
    st.tuples(st.just("todo"), st.integers(1, 9)),
)
faults = st.sampled_from(FAULTS).map(lambda fault: ("fault", *fault))
moves: st.SearchStrategy[Move] = st.one_of(
    edits,
    edits,
    faults,
    faults,
    st.tuples(st.just("delete")),
    st.tuples(st.just("create")),
    st.tuples(st.just("hold"), kinds),
    st.tuples(st.just("show")),
    st.tuples(st.just("wait"), st.sampled_from((1, 3, 7, 12, 40))),
    st.tuples(st.just("step"), st.integers(1, 8)),
    st.tuples(st.just("breaks"), kinds, st.sampled_from((None, 404, 410))),
    st.tuples(st.just("kill")),
    st.tuples(st.just("suspend"), st.sampled_from((3, 12, 30))),
    st.tuples(st.just("skew"), st.sampled_from((-30, 30, 3600))),
)
scripts = st.lists(moves, min_size=3, max_size=24).map(lambda found: [CREATED, *found])

CREATED: Move = ("create",)


def shape(*names: str, **options: Any) -> Shape:
    return Shape(frozenset(names))._replace(**options)


# What was lost or done twice before.
CASES: dict[str, tuple[Shape, Sequence[Move]]] = {
    "the deletion of a child elsewhere is answered 409": (
        shape("reconcile"),
        [
            *(CREATED, ("edit", "n", 1), ("wait", 40), ("fault", "delete", "409")),
            *(("delete",), ("wait", 12)),
        ],
    ),
    "and the live read after that is answered 404": (
        shape("reconcile", subresource=False),
        [
            *(CREATED, ("edit", "n", 1), ("wait", 12), ("delete",)),
            *(("fault", "get", "404"), ("fault", "delete", "409"), ("wait", 1)),
        ],
    ),
    "a patch waits for its write, while another handler marks its beginning": (
        shape("beside", "update", ahead={"beside"}, subresource=False),
        [CREATED, ("edit", "color", "red")],
    ),
    "a function moves a value from the spec to the status": (
        shape("function"),
        [CREATED, ("todo", 3)],
    ),
    "it does so while the user adds another": (
        shape("event", "field", "function", leads=True),
        [CREATED, ("todo", 7), ("step", 5), ("todo", 7)],
    ),
    "and another handler of the creation has not ended": (
        shape("beside", "function", "create", retried={"create"}, subresource=False),
        [CREATED, ("todo", 1), ("step", 3), ("todo", 1)],
    ),
    "the answer to its first request is lost, and a live read is answered 404": (
        shape("field", "function"),
        [
            *(CREATED, ("fault", "patch", "lost"), ("fault", "get", "404")),
            *(("todo", 1), ("wait", 1)),
        ],
    ),
    "an object is said to be gone, twice": (
        shape("reconcile", "update"),
        [
            *(CREATED, ("fault", "get", "404"), ("fault", "get", "404")),
            *(("edit", "color", "red"), ("wait", 12)),
        ],
    ),
    "it is deleted, and edited while it is said to be gone": (
        shape("field", "delete", "event"),
        [
            *(CREATED, ("wait", 40), ("fault", "get", "404"), ("fault", "get", "404")),
            *(("delete",), ("fault", "patch", "lost"), ("edit", "color", "red")),
            *(("wait", 7), ("edit", "color", "green")),
        ],
    ),
    "a handler begins with a newer view than another one of the same update": (
        shape("update", "function", "beside", retried={"update"}, ahead={"beside"}),
        [
            *(CREATED, ("wait", 40), ("fault", "patch", "409")),
            *(("fault", "patch", "500"), ("fault", "patch", "429"), ("edit", "n", 2)),
            *(("wait", 1), ("edit", "color", "green")),
        ],
    ),
    "the lease is lost before the end of an attempt": (
        shape("event", "create", leads=True),
        [CREATED, ("edit", "color", "red"), ("step", 3), ("suspend", 30)],
    ),
    "it is lost after the end, and before the write": (
        shape("create", "field", "delete", "function", leads=True, subresource=False),
        [
            *(CREATED, ("edit", "color", "green"), ("step", 8), ("suspend", 30)),
            ("edit", "n", 2),
        ],
    ),
    "it is lost while a write is answered 404": (
        shape("beside", leads=True),
        [
            *(CREATED, ("wait", 3), ("edit", "n", 4), ("fault", "patch", "404")),
            *(("fault", "patch", "404"), ("fault", "get", "404"), ("wait", 40)),
        ],
    ),
}


def law_abiding(shape: Shape, script: Sequence[Move]) -> None:
    run = played(shape, script)
    laws = broken_laws(run)
    assert laws == [], "\n".join(run.told)


@pytest.mark.parametrize("case", CASES)
def test_what_was_once_lost_or_done_twice(case: str) -> None:
    law_abiding(*CASES[case])


@settings(max_examples=examples(300))
@given(shapes, scripts)
def test_nothing_is_lost_or_done_twice(shape: Shape, script: Sequence[Move]) -> None:
    law_abiding(shape, script)
