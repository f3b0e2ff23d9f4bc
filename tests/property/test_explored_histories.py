"""Random histories of one object: whatever happens, nothing is lost or done twice.

`make explore-core` plays 20,000 of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example as case, given, note, settings, strategies as st

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


def shape(*names: str, **options: object) -> Shape:
    return Shape(frozenset(names))._replace(**options)


# What was lost once.
CASES: tuple[tuple[Shape, Sequence[Move]], ...] = (
    # A child elsewhere whose deletion is answered 409 once.
    (
        shape("reconcile"),
        [CREATED, ("wait", 40), ("fault", "delete", "409"), ("delete",)],
    ),
    # A patch that waits for its write, while another handler marks its beginning.
    (
        shape("beside", "update", ahead=frozenset({"beside"}), subresource=False),
        [CREATED, ("edit", "color", "red")],
    ),
    # A function that moves a value from the spec to the status.
    (shape("function"), [CREATED, ("todo", 3)]),
)


@settings(max_examples=examples(300))
@given(shapes, scripts)
def test_nothing_is_lost_or_done_twice(shape: Shape, script: Sequence[Move]) -> None:
    run = played(shape, script)
    laws = broken_laws(run)
    note("\n".join(run.told))
    assert laws == []


for each in CASES:
    test_nothing_is_lost_or_done_twice = case(*each)(test_nothing_is_lost_or_done_twice)
