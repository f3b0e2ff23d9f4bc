"""Late watches: live answers are newer than the events of a watch.

Users create, edit, delete and create again, while the watch lags behind by some events.
In any order, an object is created once and deleted once. Nothing is done about it after
an answer of the API server has shown that it is gone.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import example as case, given, note, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import Perform
from fnop.effects import Applied, Missing, Outcome
from tests.simulations import example
from tests.stories import Story
from tests.thorough import examples

KIND = "fnopexamples"

moves = st.one_of(
    st.tuples(st.just("create"), st.just(0)),
    st.tuples(st.just("edit"), st.integers(1, 3)),
    st.tuples(st.just("delete"), st.just(0)),
    st.tuples(st.just("show"), st.integers(1, 4)),
    st.tuples(st.just("wait"), st.sampled_from([1, 6, 12, 40])),
    st.tuples(st.just("step"), st.integers(1, 8)),
)
scripts = st.lists(moves, min_size=3, max_size=16)


class Lagging(Story):
    """Events are held from the start; the script lets some through."""

    def __init__(self, *given: Any, **options: Any) -> None:
        # The answers to the operator's own requests, by uid.
        self.gone: set[str] = set()
        self.newest: dict[str, int] = defaultdict(int)
        super().__init__(*given, **options)

    def _outcome(self, command: Perform) -> Outcome | None:
        outcome = super()._outcome(command)
        subject = command.subject
        if isinstance(outcome, Missing) and subject is not None and subject.uid:
            self.gone.add(subject.uid)
        if isinstance(outcome, Applied) and subject is not None:
            meta = outcome.object["metadata"]
            if meta["uid"] == subject.uid:  # of a namesake only that it is another
                self.newest[meta["uid"]] = meta["generation"]
        return outcome

    def exists(self) -> bool:
        return self.get(KIND) is not None


def operator(diary: dict[str, list[str]], held: bool, story: list[Lagging]) -> Registry:
    registry = Registry()

    def told(event: str) -> Any:
        def handle(uid: str, body: Any, **_: Any) -> fnop.Effect:
            run, generation = story[0], body["metadata"]["generation"]
            if event != "delete":
                assert uid not in run.gone, "it is known to be gone"
                assert generation >= run.newest[uid], "it is older"
            diary[uid].append(event)
            return fnop.patch(status={"event": event})

        return handle

    fnop.on.create(KIND, registry=registry, id="create")(told("create"))
    fnop.on.update(KIND, registry=registry, id="update")(told("update"))
    fnop.on.delete(KIND, registry=registry, id="delete", optional=not held)(
        told("delete")
    )
    return registry


DELETED_UNSEEN = [
    ("create", 0),
    ("show", 1),
    ("edit", 1),
    ("edit", 2),
    ("delete", 0),
    ("wait", 12),
    ("show", 1),
    ("wait", 1),
]


@settings(max_examples=examples(50))
@case(False, DELETED_UNSEEN)
@case(False, [*DELETED_UNSEEN, ("create", 0), ("wait", 1), ("show", 2), ("wait", 40)])
@given(st.booleans(), scripts)
def test_nothing_older_than_a_live_answer_is_acted_upon(
    held: bool, script: list[tuple[str, int]]
) -> None:
    diary: dict[str, list[str]] = defaultdict(list)
    story: list[Lagging] = []
    run = Lagging(operator(diary, held, story), settings=Settings())
    story.append(run)
    assert run.settle()
    run.late_events = True
    for move, number in script:
        match move:
            case "create" if not run.exists():
                run.apply(example(n=0))
            case "edit" if run.exists():
                run.edit(KIND, spec={"n": number})
            case "delete" if run.exists():
                run.delete(KIND)
            case "show":
                run.let_events_through(min(number, len(run.events)))
            case "wait":
                run.settle(seconds=number)
            case "step":
                for _ in range(number):
                    run.advance()
            case _:
                pass
    run.let_events_through()
    assert run.settle()
    note(str(dict(diary)))
    assert not run.said_at("error")
    for events in diary.values():
        assert events.count("create") <= 1
        assert events.count("delete") <= 1
        assert "delete" not in events[:-1], "nothing comes after the end"
    found = run.get(KIND)
    if found is not None:
        assert "create" in diary[found["metadata"]["uid"]]
