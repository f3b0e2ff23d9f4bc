"""Mappings: each object that one names is handled, even after failures.

For any histories of edits, deletions, failures of the mapping, and restarts: each
object that the changed object named, before or after the change, is handled once more
after it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import example as of, given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.reconcilers import KIND, config_map, simulation
from tests.simulations import example
from tests.thorough import examples

NAMES = ("ash", "elm", "oak")
TEMPLATE = "configmaps/template"

edits = st.tuples(st.just("edit"), st.sampled_from(NAMES))
others = st.tuples(st.sampled_from(("delete", "restart", "wait", "pause")), st.just(""))
# How the next calls of the mapping end: by an answer, an error, or a wish to wait.
# They are fewer than the tries for a state that the object has no more.
ends = st.lists(st.sampled_from(("fine", "error", "later")), max_size=9)


class World:
    """An operator with a mapping that fails on request, and its user."""

    def __init__(self, ends: list[str]) -> None:
        self.ends = [*ends]
        self.moment = 0
        self.looked = dict.fromkeys(NAMES, 0)
        self.must = dict.fromkeys(NAMES, 0)
        self.registry = Registry()

        @fnop.reconcile(KIND, registry=self.registry)
        def look(name: str, **_: Any) -> fnop.Desired:
            self.looked[name] = self.moment
            return fnop.desired()

        @fnop.maps("configmaps", to=KIND, registry=self.registry)
        def users(name: str, body: fnop.Body, **_: Any) -> Any:
            if name != "template":
                return None
            match self.ends.pop(0) if self.ends else "fine":
                case "error":
                    raise ValueError("it fails")
                case "later":
                    raise fnop.TemporaryError("not yet", delay=7)
                case _:
                    pass
            return body["data"]["user"]

        self.sim = simulation(self.registry)
        self.sim.apply([example(each) for each in NAMES]).settle()

    @property
    def user(self) -> str | None:
        found = self.sim.get(TEMPLATE)
        return None if found is None else str(found["data"]["user"])

    def do(self, move: str, name: str) -> None:
        self.moment += 1
        before = self.user
        match move:
            case "edit" if before is None:
                self.sim.apply(config_map("template", user=name))
            case "edit":
                self.sim.edit(TEMPLATE, data={"user": name})
            case "delete" if before is not None:
                self.sim.delete(TEMPLATE)
            case "restart":
                self.sim.restart()
            case "pause":
                self.sim.wait(30)
            case _:
                pass
        for each in {before, self.user} if before != self.user else ():
            if each is not None:
                self.must[each] = self.moment
        self.sim.wait(1)


@settings(deadline=None, max_examples=examples(15))
@given(st.lists(st.one_of(edits, edits, others), max_size=12), ends)
@of([("edit", "ash"), ("edit", "oak"), ("edit", "elm")], ["error"] * 5)
@of([("edit", "ash"), ("delete", "")], ["fine", "later", "error"])
@of([("edit", "ash"), ("delete", ""), ("edit", "oak")], ["later", "later", "error"])
def test_whom_a_mapping_has_named_is_looked_at(
    moves: list[tuple[str, str]], ends: list[str]
) -> None:
    world = World(ends)
    for move in moves:
        world.do(*move)
    world.sim.wait(3_600)
    late = {name for name in NAMES if world.looked[name] < world.must[name]}
    assert not late
