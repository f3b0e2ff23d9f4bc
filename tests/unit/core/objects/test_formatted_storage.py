"""States in the form of another framework: it decides about places and the essence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.observation import see
from fnop.core.memory.progress import Progress
from fnop.core.memory.storage import FormattedStorage, Unreadable, places_of
from fnop.core.memory.stored_state import Stored
from fnop.core.values.body import Body
from tests.simulations import Scenario, example

KIND = "fnopexamples"
NOTE = "example.com/note"


class Notes:
    """Keeps the size that was handled, and finished handlers, in one annotation."""

    is_broken = False
    is_full = False

    def essence(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"spec": {"size": (body.get("spec") or {}).get("size")}}

    def read(self, body: Body, observation: Any) -> Any:
        text = self._text(body)
        if text is None:
            return None
        if text == "unreadable":
            return Unreadable("it is not a note")
        note = json.loads(text)
        seen = see(Body({"spec": note["spec"]}), observation)
        progress = {
            name: Progress(aim, finished="success")
            for name, aim in note["done"].items()
        }
        return Stored(seen, creating=note["creating"], progress=progress)

    def _text(self, body: Body) -> str | None:
        if self.is_broken:
            raise ValueError("no notes today")
        return body.mapping("annotations").get(NOTE)

    def holds(self, body: Body) -> bool:
        return self._text(body) is not None

    def write(self, stored: Any, body: Body) -> Mapping[str, Any]:
        if self.is_full:
            raise OverflowError("too much")
        note = {
            "spec": self.essence(body.data)["spec"],
            "creating": stored.creating,
            "done": {k: v.aim for k, v in stored.progress.items() if v.is_finished},
        }
        return {"metadata": {"annotations": {NOTE: json.dumps(note)}}}

    def clears(self, body: Body) -> Mapping[str, Any]:
        return self.remove(body)

    def parts(self, body: Body, handler: str) -> tuple[str, ...]:
        return ()

    def remove(self, body: Body) -> Mapping[str, Any]:
        if NOTE not in body.mapping("annotations"):
            return {}
        return {"metadata": {"annotations": {NOTE: None}}}


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def diary() -> list[str]:
    return []


@pytest.fixture
def registry(diary: list[str]) -> Registry:
    registry = Registry()
    for name in ("create", "update", "delete"):
        getattr(fnop.on, name)(KIND, id=name, registry=registry)(
            lambda own=name, **_: diary.append(own)
        )
    return registry


def running(registry: Registry, notes: Notes, thing: dict[str, Any]) -> Scenario:
    settings = Settings(storage=FormattedStorage(notes))
    run = Scenario(registry, [thing], settings=settings)
    run.settle()
    return run


def note_on(run: Scenario) -> Any:
    found: Any = run.get(KIND)
    return json.loads(found["metadata"]["annotations"][NOTE])


def test_the_format_has_the_place_and_the_content(
    registry: Registry, notes: Notes, diary: list[str]
) -> None:
    run = running(registry, notes, example(size=1))
    assert note_on(run) == {"spec": {"size": 1}, "creating": False, "done": {}}
    found: Any = run.get(KIND)
    assert [*found["metadata"]["annotations"]] == [NOTE]
    assert "status" not in found
    run.edit(KIND, spec={"size": 2}).settle()
    assert note_on(run)["spec"] == {"size": 2}
    run.delete(KIND).settle()
    assert diary == ["create", "update", "delete"]
    assert run.get(KIND) is None


def test_the_format_decides_about_changes(
    registry: Registry, notes: Notes, diary: list[str]
) -> None:
    run = running(registry, notes, example(size=1))
    run.edit(KIND, spec={"other": 1}).edit(
        KIND, metadata={"labels": {"a": "b"}}
    ).settle()
    assert diary == ["create"]


def test_what_the_format_reads_is_not_handled_again(
    registry: Registry, notes: Notes, diary: list[str]
) -> None:
    thing = example(size=1)
    note = {"spec": {"size": 1}, "creating": False, "done": {}}
    thing["metadata"]["annotations"] = {NOTE: json.dumps(note)}
    running(registry, notes, thing)
    assert diary == []
    thing["spec"]["size"] = 2
    running(registry, notes, thing)
    assert diary == ["update"]


@pytest.mark.parametrize("problem", ["unreadable", "broken"])
def test_an_object_whose_state_cannot_be_read_is_left_alone(
    registry: Registry, notes: Notes, diary: list[str], problem: str
) -> None:
    thing = example(size=1)
    if problem == "broken":
        notes.is_broken = True
    else:
        thing["metadata"]["annotations"] = {NOTE: "unreadable"}
    run = running(registry, notes, thing)
    assert diary == []
    wanted = "no notes today" if problem == "broken" else "it is not a note"
    assert wanted in "\n".join(f"{each.message} {each.error}" for each in run.said)


def test_a_state_that_cannot_be_written_is_written_later(
    registry: Registry, notes: Notes, diary: list[str]
) -> None:
    notes.is_full = True
    settings = Settings(storage=FormattedStorage(notes))
    run = Scenario(registry, [example(size=1)], settings=settings)
    run.settle(seconds=5)
    assert diary == ["create"]
    warnings = [each.message for each in run.said if each.level == "warning"]
    assert "OverflowError: too much" in "\n".join(warnings)
    notes.is_full = False
    run.settle()
    assert diary == ["create"]
    assert note_on(run)["spec"] == {"size": 1}


def test_the_format_removes_its_state(notes: Notes) -> None:
    places = places_of(FormattedStorage(notes), "billing")
    held = Body({"metadata": {"annotations": {NOTE: "{}"}}})
    assert [*places.removals(held)] == [notes.remove(held)]
    assert [*places.removals(Body({"metadata": {}}))] == []


def test_an_object_lacks_a_state_that_the_format_does_not_find(notes: Notes) -> None:
    places = places_of(FormattedStorage(notes), "billing")
    bare = Body({"metadata": {"name": "a"}})
    assert places.lacks(bare)
    notes.is_broken = True
    assert not places.lacks(bare), "it may have one"
