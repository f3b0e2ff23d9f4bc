"""Defects that were mended: without its mend, each breaks a law again.

The histories that are kept show each of them.  Random ones find four of the six: the
others take more luck than some ten thousand histories have.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fnop.core.children import findings as told, pruning
from fnop.core.objects.decide import change
from fnop.core.objects.decide.selection import Circumstances
from fnop.core.objects.store import store
from fnop.core.objects.write import expectations, write
from fnop.core.state.context import Context
from fnop.core.state.record import IDLE, Change, ObjectRecord, Work
from fnop.core.state.writing import Contents, Sent, Writing
from fnop.core.streams.stream import Stream
from fnop.core.values.body import Body
from fnop.core.values.errors import Refused
from fnop.effects.structs import replace
from tests.explored import Move, Shape, broken_laws, played
from tests.explorer import CASES, histories

# ---------------------------------------------------------- the core without its mends


def is_gone_by_status(
    key: object, body: object, problem: Exception
) -> Generator[Any, Any, bool]:
    """Any 409 means that another child has the name."""
    return isinstance(problem, Refused) and problem.status in (404, 409)
    yield


def without_any_patch(record: ObjectRecord, contents: Contents) -> ObjectRecord:
    """Each write carries all patches, as it seems."""
    work = record.work or IDLE
    results = {k: v for k, v in work.results.items() if k not in contents.results}
    return replace(record, work=replace(work, patches=(), results=results))


def taken_in_part(
    writing: Writing, contents: Contents, sent: Sent, *, split: bool
) -> Writing:
    """Fields that an endpoint has taken are computed again for the other one."""
    taken = writing.taken | {sent.endpoint}
    return replace(writing, contents=contents, taken=taken, tries=0)


def is_over_for_ever(
    context: Context, stream: Stream, type: str | None, body: Body
) -> bool:
    """No later version disproves that an object is gone."""
    tombstone = context.tombstone
    if tombstone is None or tombstone.uid != body.uid:
        return False
    if type == "DELETED" or (type is None and stream.begun > tombstone.step):
        context.drop_tombstone()
        return False
    return True


def view_for_former_aims(
    at: Circumstances, record: ObjectRecord, change: Change, handler: object
) -> Change:
    """A handler's success counts for the state with which the change began."""
    return replace(change, body=record.body, generation=record.body.generation)


def nothing_unwritten(_context: Context, record: ObjectRecord) -> Work:
    """After losing the lease, forget everything that is not on the object."""
    return Work()


class Defect(NamedTuple):
    """A removed fix, the history that shows the defect, and the law that it breaks.

    Out of this number of random `histories` one finds it; 0 if that takes more than a
    test has.
    """

    undone: tuple[tuple[object, str, object], ...]
    case: str
    law: str
    histories: int


DEFECTS = {
    "a 409 tells that a child is gone": Defect(
        (
            (pruning, "_is_gone", is_gone_by_status),
            (told.Told, "unshown", property(lambda self: False)),
        ),
        "the deletion of a child elsewhere is answered 409",
        "was deleted, and is still there|the child",
        0,
    ),
    "a mark of write_ahead drops the patches that wait": Defect(
        ((write, "_without", without_any_patch),),
        "a patch waits for its write, while another handler marks its beginning",
        "status.update is None",
        4000,
    ),
    "a function runs once for each endpoint": Defect(
        ((write, "_taken_by", taken_in_part),),
        "a function moves a value from the spec to the status",
        "are done",
        4000,
    ),
    "a false 404 buries an object": Defect(
        (
            (store, "_is_over", is_over_for_ever),
            (expectations, "LOOKS_MAX", 0),
        ),
        "it is deleted, and edited while it is said to be gone",
        "and not",
        6000,
    ),
    "a success counts for the state with which its change began": Defect(
        ((change, "_fresh_view", view_for_former_aims),),
        "a handler begins with a newer view than another one of the same update",
        "update succeeds 2 times for generation",
        0,
    ),
    "a lost lease takes the memory with it": Defect(
        ((store, "_unwritten", nothing_unwritten),),
        "it is lost after the end, and before the write",
        "create succeeds 2 times",
        12000,
    ),
}


def undo(defect: Defect, patched: pytest.MonkeyPatch) -> None:
    for where, name, instead in defect.undone:
        patched.setattr(where, name, instead)


@pytest.mark.parametrize("name", DEFECTS)
def test_without_its_mend_the_history_that_is_kept_breaks_the_law(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect = DEFECTS[name]
    undo(defect, monkeypatch)
    laws = broken_laws(played(*CASES[defect.case]))
    assert any(re.search(defect.law, each) for each in laws), laws


class Found(Exception):
    """A history breaks a law."""


@pytest.mark.long
@pytest.mark.parametrize("name", [k for k, v in DEFECTS.items() if v.histories])
def test_without_its_mend_a_random_history_breaks_the_law(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect = DEFECTS[name]
    undo(defect, monkeypatch)

    @settings(
        max_examples=defect.histories,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(histories())
    def explored(history: tuple[Shape, list[Move]]) -> None:
        laws = broken_laws(played(*history))
        if laws:
            raise Found("; ".join(laws))

    with pytest.raises(Found, match=defect.law):
        explored()
