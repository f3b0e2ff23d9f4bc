"""Law 4: an operator that dies anywhere and starts again ends in the same world.

Each example is run once undisturbed; then again for each effect, dying right
before its request is sent, and right after it was (its answer lost).  These
loops are exhaustive: nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.simulation.scenario import final_objects
from tests.simulations import EXAMPLES, Scenario, example_handlers, manifests_of

Action = Callable[[Scenario], object]

# What two runs may differ in: identities, times, and how often something was tried.
_VOLATILE = frozenset(
    (
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "generation",
        "startTime",
        "lastTransitionTime",
        "attempts",
    )
)


class Died(Exception):
    """The operator's process ends here."""


class Mortal(Scenario):
    """An operator that dies once, at the effect of that number."""

    dies_at = 0
    dies_after_sending = False
    performed = 0

    def _outcome(self, command: Perform) -> Outcome | None:
        self.performed += 1
        if self.performed != self.dies_at:
            return super()._outcome(command)
        if self.dies_after_sending:
            super()._outcome(command)
        raise Died

    def live(self) -> None:
        """Settle; after a death that means to start again."""
        try:
            assert self.settle()
        except Died:
            self.crash()
            assert self.settle()


def normal(objects: Sequence[dict[str, Any]]) -> list[Any]:
    """The objects without what two runs may differ in.

    Kubernetes Events are a set: how often one was reported, and under which
    name, says how often something was tried.
    """
    lasting = sorted((each for each in objects if each["kind"] != "Event"), key=_place)
    renamed = {
        each["metadata"]["uid"]: f"uid-{position}"
        for position, each in enumerate(lasting)
    }
    text = orjson.dumps(list(objects), option=orjson.OPT_SORT_KEYS).decode()
    for uid, name in renamed.items():
        text = text.replace(uid, name)
    found, events = [], set()
    for each in orjson.loads(text):
        if each["kind"] == "Event":
            about = each["involvedObject"]["name"]
            events.add((about, each["reason"], each["message"], each["type"]))
        else:
            found.append(_without(each))
    return [*sorted(found, key=_place), *sorted(events)]


def _place(each: dict[str, Any]) -> tuple[str, str, str]:
    meta = each["metadata"]
    return each["kind"], meta.get("namespace") or "", meta["name"]


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without(item) for key, item in value.items() if key not in _VOLATILE
        }
    if isinstance(value, list):
        return [_without(item) for item in value]
    return value


def story_of(name: str, actions: Sequence[Action], at: int, sent: bool) -> Mortal:
    story = Mortal(example_handlers(name), manifests_of(name))
    story.dies_at, story.dies_after_sending = at, sent
    story.live()
    for act in actions:
        act(story)
        story.live()
    # Restarts are visible: a handler of on.resume may show them. So all have done one.
    story.crash()
    story.live()
    return story


def edit(story: Scenario) -> None:
    story.edit("fnopexamples", spec={"field": "another"})


def relabel(story: Scenario) -> None:
    story.edit("fnopexamples", metadata={"labels": {"somelabel": "another"}})


def delete(story: Scenario) -> None:
    story.delete("fnopexamples")


def recreate(story: Scenario) -> None:
    story.apply(manifests_of("05-handlers")[1])


STORIES: dict[str, tuple[str, tuple[Action, ...]]] = {
    **{name: (name, ()) for name in (*EXAMPLES, "08-event-spies")},
    **{
        f"{name}, deleted": (name, (delete,))
        for name in EXAMPLES
        if name != "05-handlers"
    },
    "05-handlers, edited": ("05-handlers", (edit, relabel)),
    "05-handlers, edited and deleted": ("05-handlers", (edit, delete)),
    "05-handlers, a life and the next": ("05-handlers", (edit, delete, recreate)),
}


@pytest.mark.parametrize("sent", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("story", STORIES)
def test_dying_at_any_effect_ends_in_the_same_world(story: str, sent: bool) -> None:
    name, actions = STORIES[story]
    benign = story_of(name, actions, 0, sent)
    assert benign.performed, "there is something to die at"
    expected = normal(final_objects(benign))
    for number in range(1, benign.performed + 1):
        survivor = story_of(name, actions, number, sent)
        assert normal(final_objects(survivor)) == expected, f"died at effect {number}"


def test_the_children_of_a_parent_are_the_same_ones() -> None:
    """Not by their uids alone: there is one Pod, and it is not made twice."""
    benign = story_of("02-children", (), 0, False)
    for number in range(1, benign.performed + 1):
        for sent in (False, True):
            survivor = story_of("02-children", (), number, sent)
            assert [each["metadata"]["name"] for each in survivor.objects("pods")] == [
                each["metadata"]["name"] for each in benign.objects("pods")
            ]


def test_the_normal_form_sees_what_matters() -> None:
    story = story_of("05-handlers", (), 0, False)
    before = normal(final_objects(story))
    story.edit("fnopexamples", metadata={"labels": {"new": "1"}})
    assert normal(final_objects(story)) != before


def test_the_normal_form_is_blind_for_identities() -> None:
    """Another uid, version and time: the same world."""
    one = Scenario(example_handlers("01-minimal"), manifests_of("01-minimal"))
    other = Scenario(example_handlers("01-minimal"))
    assert other.settle()
    other.clock.advance_to(60)
    other.apply(manifests_of("01-minimal")[1])
    assert other.settle()
    assert other.delete("fnopexamples").settle()
    other.apply(manifests_of("01-minimal")[1])
    for each in (one, other):
        assert each.settle()
    assert final_objects(one) != final_objects(other)
    assert normal(final_objects(one)) == normal(final_objects(other))
