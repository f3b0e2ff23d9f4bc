"""Upgrades: any handlers replace any others, at any moment.

The object settles, with any work in progress. A process that finds it settled does
nothing again. Objects to be deleted are gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from tests.simulations import example
from tests.stories import Story
from tests.thorough import examples

KIND = "fnopexamples"
FIELDS = ("spec.x", "spec.y")


@dataclass(frozen=True)
class Declared:
    """A handler: it fails for as long as the cluster is in trouble, if it is `weak`."""

    role: str
    id: str
    weak: bool
    field: str | None
    label: str | None
    parts: tuple[str, ...]
    retries: int | None


def handlers_of(role: str) -> st.SearchStrategy[Declared]:
    fields = st.sampled_from(FIELDS)
    return st.builds(
        Declared,
        st.just(role),
        st.sampled_from(("a", "b")).map(lambda name: f"{role}-{name}"),
        st.booleans(),
        fields if role == "field" else st.none() | fields,
        st.none() | st.none() | st.sampled_from(("1", "2")),
        st.sampled_from(((), (), ("p", "q"))),
        st.none() | st.just(50),
    )


releases = st.lists(
    st.sampled_from(("create", "update", "field", "delete", "resume")).flatmap(
        handlers_of
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.id,
)
numbers = st.integers(1, 3)
changes = st.one_of(
    st.tuples(st.just("x"), numbers),
    st.tuples(st.just("y"), numbers),
    st.tuples(st.just("y"), st.none()),
    st.tuples(st.just("label"), st.sampled_from(("1", "2"))),
    st.tuples(st.just("wait"), st.sampled_from((1, 4, 20))),
)


class World:
    """Handlers that note their calls, and fail while there is trouble."""

    def __init__(self) -> None:
        self.trouble = True
        self.calls: list[str] = []

    def registry(self, release: list[Declared]) -> Registry:
        registry = Registry()
        # With it all objects are seen, whatever labels the others ask for.
        fnop.on.event(KIND, registry=registry, id="spy")(lambda **_: None)
        for each in release:
            options: dict[str, Any] = {"id": each.id, "retries": each.retries}
            if each.field and each.role in ("field", "update"):
                options["field"] = each.field
            if each.label:
                options["labels"] = {"l": each.label}
            decorator = getattr(fnop.on, each.role)
            decorator(KIND, registry=registry, **options)(self.handler(each))
        return registry

    def handler(self, about: Declared) -> Any:
        def called(name: str) -> None:
            self.calls.append(name)
            if self.trouble and about.weak:
                raise fnop.TemporaryError("trouble", delay=3)

        def handler(**_: Any) -> None:
            for part in about.parts:

                @fnop.subhandler(id=part)
                def sub(part: str = part, **_: Any) -> None:
                    called(f"{about.id}/{part}")

            if not about.parts:
                called(about.id)

        return handler


def happens(story: Story, what: str, value: Any) -> None:
    match what:
        case "wait":
            story.settle(seconds=value)
        case "label":
            story.edit(KIND, metadata={"labels": {"l": value}})
        case _:
            story.edit(KIND, spec={what: value})


@settings(
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
    max_examples=examples(40),
)
@given(
    st.lists(releases, min_size=2, max_size=3),
    st.lists(st.lists(changes, max_size=4), min_size=3, max_size=3),
    st.booleans(),
)
def test_any_release_goes_on_where_another_has_stopped(
    each: list[list[Declared]], then: list[list[tuple[str, Any]]], deleted: bool
) -> None:
    world = World()
    programs = [Program(world.registry(release).handlers) for release in each]
    story = Story(world.registry(each[0]), [example(x=1)])
    for program, what in zip(programs, then, strict=False):
        story.crash(program)
        for name, value in what:
            happens(story, name, value)
    world.trouble = False
    if deleted:
        story.delete(KIND)
    assert story.settle(), story.lines
    assert not [say for say in story.said_at("error") if "cannot be decided" in say]
    if deleted:
        assert story.get(KIND) is None
        return
    world.calls.clear()
    story.crash(programs[min(len(programs), len(then)) - 1])
    assert story.settle()
    again = [name for name in world.calls if not name.startswith("resume")]
    assert not again
