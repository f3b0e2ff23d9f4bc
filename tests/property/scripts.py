"""Scripts of what users do, and an operator whose handlers behave in drawn ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.simulations import Scenario

KIND = "fnopexamples"
# The behaviour of a handler: for this number of attempts it fails, asks to wait, or
# sleeps.
WAYS = ("plain", "fails", "again", "sleeps", "calls", "halfway")


@dataclass(frozen=True)
class Way:
    """The behaviour of one handler; `times` is its number of unsuccessful attempts."""

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
    """A handler's effect: a ConfigMap with the view that it began with."""
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
