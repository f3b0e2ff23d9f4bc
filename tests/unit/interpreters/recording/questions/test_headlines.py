"""The occurrences at the top of a page: also those of a run without failures."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given, strategies as st

from fnop.interpreters.recording.questions.headlines import Sort, headlines_of
from fnop.interpreters.recording.questions.timeline import Event


def event(sort: str, text: str = "", process: str = "") -> Event:
    return Event(1, 0.0, sort, text, process=process)


START = event("start")

TABLE: list[tuple[list[Event], Sort | None]] = [
    ([event("fault")], Sort.FAULT),
    ([event("say", "error: no")], Sort.FAILURE),
    ([event("gap")], Sort.GAP),
    ([event("repair")], Sort.REPAIR),
    ([event("stream")], Sort.STREAM),
    ([START], None),
    ([START, event("stop"), START], Sort.RESTART),
    ([event("start", process="a"), event("start", process="b")], None),
    # a check restarts the operator at its end
    ([START, event("rest"), START], None),
    ([event("peer", "leading: lease x is held, by transition 0")], None),
    ([event("peer", "leading: lease x is held, by transition 1")], Sort.TAKEOVER),
    ([event("peer", "serving again")], Sort.TAKEOVER),
    ([event("peer", "standing by: lease x is held by b")], Sort.STAND_DOWN),
    ([event("say", "warning: not leading any more: late")], Sort.STAND_DOWN),
    ([event("say", "warning: frozen: by a peer")], Sort.STAND_DOWN),
    ([event("call"), event("shown"), event("user"), event("end")], None),
]


@pytest.mark.parametrize(("events", "expected"), TABLE)
def test_the_sort_of_an_event(events: list[Event], expected: Sort | None) -> None:
    found = headlines_of(events)
    assert [each.sort for each in found] == ([] if expected is None else [expected])
    assert all(len(each.events) == 1 for each in found)


sorts = sorted({each.sort for events, _ in TABLE for each in events})


@given(
    st.lists(st.builds(event, st.sampled_from(sorts), process=st.sampled_from("ab")))
)
def test_each_event_is_of_one_sort_at_most_and_the_order_stays(
    events: list[Event],
) -> None:
    found = headlines_of(events)
    assert [each.sort for each in found] == [
        each for each in Sort if each in {one.sort for one in found}
    ]
    told = Counter(map(id, chain.from_iterable(each.events for each in found)))
    assert max(told.values(), default=1) == 1
    places = {id(each): number for number, each in enumerate(events)}
    for each in found:
        order = [places[id(one)] for one in each.events]
        assert order == sorted(order)
