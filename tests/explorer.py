"""The histories that are played: random ones, and those that once broke a law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.explored import AHEAD, ASKED_BY, FAULTS, HANDLERS, UNRETRIED, Move, Shape

__all__ = ["CASES", "histories"]

CREATED: Move = ("create",)

SOURCES = ("own", "children")
HELD = (*SOURCES, "answers")
MOVES: dict[str, Sequence[Move]] = {
    "edit": [
        *(("edit", "n", number) for number in range(4)),
        *(("edit", "color", color) for color in ("red", "green")),
    ],
    "todo": [("todo", number) for number in range(1, 10)],
    "delete": [("delete",)],
    "create": [CREATED],
    "hold": [*(("hold", each) for each in HELD), ("show",)],
    "wait": [("wait", seconds) for seconds in (1, 3, 7, 12, 40)],
    "step": [("step", number) for number in range(1, 9)],
    "breaks": [("breaks", e, status) for e in SOURCES for status in (None, 404, 410)],
    "kill": [("kill",)],
    "suspend": [("suspend", seconds) for seconds in (3, 12, 30)],
    "skew": [("skew", seconds) for seconds in (-30, 30, 3600)],
}
REQUESTS = sorted({request for request, _ in FAULTS})
# A server that fails, or lags behind, does so for a while.
TIMES = (1, 2, 5)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Shape, list[Move]]:
    """A few handlers, and a script of a few kinds of moves and faults.

    Each history has others.  What takes several moves of two kinds is rare among moves
    of all kinds (swarm testing: Groce et al., ISSTA 2012).
    """
    kinds = st.sampled_from(sorted(HANDLERS))
    handlers = draw(st.frozensets(kinds, min_size=1, max_size=4))
    retried = draw(st.frozensets(kinds))
    ahead = draw(st.frozensets(st.sampled_from(sorted(AHEAD))))
    found = Shape(
        handlers,
        (handlers & retried) - UNRETRIED,
        handlers & ahead,
        subresource=draw(st.booleans()),
        leads=draw(st.booleans()),
    )
    time = draw(st.sampled_from(("wait", "step")))
    others = sorted(MOVES.keys() - {"edit", time})
    few = st.lists(st.sampled_from(others), max_size=3, unique=True)
    asked = [each for each in REQUESTS if handlers & ASKED_BY.get(each, handlers)]
    struck = draw(st.lists(st.sampled_from(asked), max_size=2, unique=True))
    # Who leads loses the lease while it stands still.
    pauses = ["suspend"] if found.leads and draw(st.booleans()) else []
    groups = [MOVES[each] for each in ("edit", time, *pauses, *draw(few))]
    groups += [
        [
            ("fault", *each, times)
            for each in FAULTS
            if each[0] == one
            for times in TIMES
        ]
        for one in struck
    ]
    move = st.sampled_from(groups).flatmap(st.sampled_from)
    # Most changes are of objects that have been handled before.
    begin = [CREATED, ("wait", 40)] if draw(st.booleans()) else [CREATED]
    return found, [*begin, *draw(st.lists(move, min_size=3, max_size=24))]


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
    "a timer ends while the end of a change is written": (
        shape("update", "hourly"),
        [CREATED, ("hold", "answers"), ("edit", "n", 1), ("wait", 3)],
    ),
    "a daemon does": (
        shape("update", "daemon"),
        [CREATED, ("wait", 1), ("hold", "answers"), ("edit", "n", 1), ("wait", 3)],
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
    "it is lost while nobody knows whether a write was done": (
        shape("create", retried={"create"}, leads=True),
        [CREATED, ("fault", "patch", "500", 10), ("wait", 40), ("todo", 9)],
    ),
    "it is lost between the two requests of a function": (
        shape("function", leads=True),
        [CREATED, ("wait", 40), ("todo", 1), ("step", 1), ("suspend", 12)],
    ),
    "and the watch has shown the first one": (
        shape("function", leads=True),
        [
            *(CREATED, ("wait", 40), ("todo", 1), ("edit", "color", "red")),
            *(("step", 2), ("suspend", 12)),
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
