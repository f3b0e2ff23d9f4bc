"""Reconcile handlers: in the end exactly the children desired last exist.

For any histories of desired sets, edits and deletions by others, restarts, late watches
and lost replies: the cluster ends with exactly the last desired set, fields of others
are untouched, nothing foreign is changed or deleted, and at rest nothing is written.
"""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, note, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.effects import Outcome, Unknown
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.simulations import example as an_example
from tests.stories import Story
from tests.thorough import examples

KIND = "fnopexamples"
NAMES = ("a", "b", "c", "d")
# Another owner has objects with these names; the operator may not touch them.
FOREIGN = "d"

# Another client's changes of a child.
HACKS: dict[str, dict[str, Any]] = {
    "change": {"data": {"value": "changed"}},
    "add": {"data": {"theirs": "x"}},
    "take": {"data": {"value": None}},
    "label": {"metadata": {"labels": None}},
}

names = st.sampled_from(NAMES)
values = st.sampled_from(("1", "2", "3"))
wanted = st.dictionaries(names, values, max_size=4)
wants = st.tuples(st.just("want"), wanted)
hacks = st.tuples(st.sampled_from(sorted(HACKS)), names)
removals = st.tuples(st.just("delete"), names)
fates = st.tuples(st.just("lose"), st.integers(1, 3))
moves = st.one_of(
    wants,
    wants,
    hacks,
    removals,
    fates,
    st.tuples(st.just("step"), st.integers(1, 12)),
    st.tuples(st.sampled_from(("crash", "hold", "release", "settle")), st.none()),
)
scripts = st.lists(moves, max_size=14)

registry = Registry()


def config_map(name: str, value: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value},
    }


@fnop.reconcile(KIND, owns="configmaps", registry=registry)
def keep(spec: dict[str, Any], **_: Any) -> fnop.Desired:
    return fnop.desired([config_map(name, value) for name, value in spec["wanted"]])


class Losing:
    """The next requests are done, or not, and their answers are lost."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, story: Story, command: Perform) -> Outcome | None:
        if self.left == 0:
            return None
        self.left -= 1
        if self.left % 2:
            return Unknown("lost on its way")
        return story.applied_but_unknown(command)


def data_of(run: Story, name: str) -> Any:
    found = run.get("configmaps", name)
    return None if found is None else found.get("data", {})


def edit(run: Story, name: str, **change: Any) -> None:
    """A change by another client, of an object that may not exist."""
    if name != FOREIGN and run.get("configmaps", name) is not None:
        run.edit("configmaps", name, **change)


def move_on(run: Story, fate: Losing, move: str, about: Any) -> None:
    match move:
        case "want":
            run.edit(KIND, spec={"wanted": sorted(about.items())})
        case "change" | "add" | "take" | "label":
            edit(run, about, **HACKS[move])
        case "delete" if about != FOREIGN:
            run.request(ApiRequest("DELETE", run.path("configmaps", about)))
        case "lose":
            fate.left = about
        case "step":
            for _ in range(about):
                run.advance()
        case "crash":
            run.crash()
        case "hold":
            run.late_events = True
        case "release":
            run.let_events_through()
        case "settle" if not run.late_events:
            run.settle(seconds=300)


@settings(max_examples=examples(25), deadline=None)
@example({"a": "1"}, [("settle", None), ("label", "a")], {})
@given(wanted, scripts, wanted)
def test_the_end_is_what_was_desired_last(
    first: dict[str, str], script: list[tuple[str, Any]], last: dict[str, str]
) -> None:
    fate = Losing()
    run = Story(registry, [{**config_map(FOREIGN, "theirs")}])
    run.fate = fate
    run.apply(an_example(wanted=sorted(first.items())))
    for move, about in script:
        move_on(run, fate, move, about)
    run.edit(KIND, spec={"wanted": sorted(last.items())})
    fate.left = 0
    run.let_events_through()
    run.settle(seconds=600)
    note(str(run.lines[-5:]))
    expected = {name: value for name, value in last.items() if name != FOREIGN}
    found = {each["metadata"]["name"]: each for each in run.objects("configmaps")}
    assert found.pop(FOREIGN)["data"] == {"value": "theirs"}
    assert {name: each["data"]["value"] for name, each in found.items()} == expected
    before = len(run.writes)
    for name in expected:
        run.edit("configmaps", name, data={"theirs": "y"})
    run.crash()
    run.settle(seconds=30)
    assert [each for each in run.writes[before:] if "configmaps" in each] == []
    assert all(data_of(run, name)["theirs"] == "y" for name in expected)
