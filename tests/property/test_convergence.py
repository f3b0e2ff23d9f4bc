"""No essential change is lost, whatever comes between.

Edits, reverts, restarts, waiting and retries in any order: at the end each handler
that a change concerns has acted upon the state that there is, last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import example as case, given, note, settings, strategies as st

import fnop
from fnop.core.handlers.registry import Registry
from tests.simulations import Scenario, example
from tests.thorough import examples

KIND = "fnopexamples"

# How a handler goes about it: for so many attempts it fails, asks to wait, or sleeps.
WAYS = ("plain", "fails", "again", "sleeps", "calls", "halfway")


@dataclass(frozen=True)
class Way:
    """How one handler behaves; `times` is how often before it succeeds."""

    name: str
    times: int
    seconds: int


ways = st.builds(Way, st.sampled_from(WAYS), st.integers(1, 3), st.integers(20, 90))
edits = st.tuples(st.just("edit"), st.integers(0, 2), st.integers(0, 1))
# Shorter than what handlers wait for: the next move comes in the middle of it.
pauses = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 30), st.just(0)),
    st.tuples(st.just("step"), st.integers(1, 12), st.just(0)),
)
crashes = st.tuples(st.just("crash"), st.just(0), st.just(0))
scripts = st.lists(st.one_of(edits, pauses, edits, pauses, crashes), max_size=12)


def shown_in(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a handler does: a ConfigMap with the view that it began with."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {key: str(value) for key, value in spec.items()},
    }


class Operator:
    """An update handler, one of a field, one of a creation; and what they saw."""

    def __init__(
        self, update: Way, field: Way, create: Way, *, write_ahead: bool = False
    ) -> None:
        self.registry = Registry()
        self.seen: dict[str, list[Any]] = defaultdict(list)
        fnop.on.update(
            KIND, registry=self.registry, id="update", write_ahead=write_ahead
        )(self.handler("update", update))
        fnop.on.field(
            KIND,
            registry=self.registry,
            field="spec.n",
            id="field",
            write_ahead=write_ahead,
        )(self.handler("field", field))
        fnop.on.create(KIND, registry=self.registry, id="create")(
            self.handler("create", create)
        )

    def handler(self, name: str, way: Way) -> Any:
        seen = self.seen[name]

        async def handle(spec: dict[str, Any], retry: int, runtime: Any) -> Any:
            if way.name == "fails" and retry < way.times:
                raise fnop.TemporaryError("not yet", delay=way.seconds)
            if way.name == "again" and runtime.total_seconds() < way.seconds:
                return fnop.again(after=way.seconds)
            if way.name == "sleeps":
                for _ in range(way.times):
                    await fnop.sleep(way.seconds)
            if way.name == "calls":
                await fnop.get("configmaps", name="absent")
            seen.append(dict(spec))
            await fnop.apply(shown_in("field" if name == "field" else "whole", spec))
            if way.name == "halfway" and retry < way.times:
                raise fnop.TemporaryError("not all of it", delay=way.seconds)
            return None

        return handle


def moved(run: Scenario, script: list[tuple[str, int, int]]) -> None:
    """Let the edits, pauses and crashes of a script happen."""
    for move, number, other in script:
        match move:
            case "edit":
                run.edit(KIND, spec={"n": number, "m": other})
            case "wait":
                run.settle(seconds=number)
            case "step":
                for _ in range(number):
                    run.advance()
            case _:
                run.crash()


PLAIN, HALFWAY = Way("plain", 1, 20), Way("halfway", 1, 20)
WAIT, CRASH, BACK = ("wait", 1, 0), ("crash", 0, 0), ("edit", 0, 0)


@settings(max_examples=examples(25))
@given(ways, ways, ways, scripts)
@case(HALFWAY, PLAIN, PLAIN, [WAIT, ("edit", 0, 1), WAIT, CRASH, BACK])
@case(PLAIN, HALFWAY, PLAIN, [WAIT, ("step", 1, 0), ("edit", 1, 0), WAIT, CRASH, BACK])
def test_every_handler_has_seen_what_it_was_to_see(
    update: Way, field: Way, create: Way, script: list[tuple[str, int, int]]
) -> None:
    # A crash may come before any write of the object but the one that this asks for.
    operator = Operator(update, field, create, write_ahead=CRASH in script)
    run = Scenario(operator.registry, [example(n=0, m=0)])
    moved(run, script)
    run.settle()
    assert run.settle(), "it comes to rest"
    found = run.get(KIND)
    assert found is not None
    final = found["spec"]
    note(f"final {final}, seen {dict(operator.seen)}")
    assert operator.seen["create"], "the creation is seen"
    # What was acted upon last is what there is.
    whole, of_field = run.get("configmaps", "whole"), run.get("configmaps", "field")
    assert whole is not None
    assert of_field is not None
    assert whole["data"] == shown_in("whole", final)["data"]
    # The field handler is called with the creation, and for the field alone.
    assert of_field["data"]["n"] == str(final["n"])


def test_who_has_seen_a_change_is_told_that_it_is_taken_back() -> None:
    operator = Operator(Way("fails", 3, 60), Way("plain", 1, 20), Way("plain", 1, 20))
    run = Scenario(operator.registry, [example(n=0, m=0)])
    assert run.settle()
    run.edit(KIND, spec={"n": 2})
    run.settle(seconds=10)  # the handler of the field is done, the other retries
    run.edit(KIND, spec={"n": 0})
    assert run.settle()
    assert operator.seen["field"][-1]["n"] == 0
