"""Selectors that the API server applies, so that it sends only handled objects."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource, Selectors
from fnop.core.handlers.pushdown import selectors_of
from fnop.core.handlers.registry import Registry
from fnop.core.handlers.settings import Settings
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.wire import command_to_wire
from fnop.interpreters.requests import list_request, watch_request
from tests.simulations import Scenario, example

KIND = "fnopexamples"
PODS = Resource("", "v1", "pods", "Pod", "pod", shortcuts=("po",))


def nothing(**_: Any) -> None:
    """A handler."""


async def sleeping() -> None:
    await fnop.sleep(1)


def asked(*declared: Any, given: str = "") -> tuple[str, str]:
    registry = Registry()
    for number, (decorator, options) in enumerate(declared):
        fn = sleeping if decorator is fnop.daemon else nothing
        decorator(KIND, registry=registry, id=f"h{number}", **options)(fn)
    found = selectors_of(registry.handlers, given)
    return found.labels, found.fields


A, B = {"labels": {"app": "a"}}, {"labels": {"app": "b"}}
BOTH = {"labels": {"app": "a", "tier": fnop.PRESENT, "test": fnop.ABSENT}}
NAMED = {"field": "metadata.name", "value": "one"}


@pytest.mark.parametrize(
    ("declared", "selectors"),
    [
        ([(fnop.on.create, A)], ("app=a", "")),
        ([(fnop.on.create, BOTH)], ("app=a,!test,tier", "")),
        ([(fnop.on.create, BOTH), (fnop.on.update, A)], ("app=a", "")),
        ([(fnop.on.create, A), (fnop.on.update, B)], ("", "")),
        ([(fnop.on.create, A), (fnop.on.update, {})], ("", "")),
        ([(fnop.timer, {**A, "interval": 1}), (fnop.index, A)], ("app=a", "")),
        ([(fnop.on.resume, NAMED)], ("", "metadata.name=one")),
        # A function is for fnop to look at.
        ([(fnop.on.create, {"labels": {"app": lambda value: True}})], ("", "")),
        # Who leaves the selection must not look deleted.
        ([(fnop.on.create, A), (fnop.on.delete, A)], ("", "")),
        ([(fnop.on.create, A), (fnop.on.event, A)], ("", "")),
        ([(fnop.daemon, A)], ("", "")),
        ([(fnop.timer, {**A, "interval": 1, "finalizer": True})], ("", "")),
    ],
)
def test_what_all_handlers_ask_for_is_asked_of_the_server(
    declared: Any, selectors: tuple[str, str]
) -> None:
    assert asked(*declared) == selectors


def test_the_user_s_selector_is_always_asked_for() -> None:
    given = "team in (a, b)"
    assert asked((fnop.on.delete, A), given=given) == (given, "")
    assert asked((fnop.on.create, A), given=given) == (f"{given},app=a", "")


def test_requests_and_recordings_carry_them() -> None:
    selectors = Selectors("app=a", "metadata.name=x")
    pairs = {("labelSelector", "app=a"), ("fieldSelector", "metadata.name=x")}
    page = ListPage(1, PODS, None, 10, selectors=selectors)
    watch = Watch(1, PODS, None, "5", 60, 90.0, selectors)
    assert pairs <= set(list_request(page).query)
    assert pairs <= set(watch_request(watch).query)
    assert command_to_wire(page)["selectors"] == ["app=a", "metadata.name=x"]
    assert "selectors" not in command_to_wire(ListPage(1, PODS, None, 10))


def labelled(name: str, **labels: str) -> dict[str, Any]:
    found = example(name, size=1)
    found["metadata"]["labels"] = labels
    return found


def test_what_nobody_handles_is_not_kept() -> None:
    registry = Registry()
    seen: list[str] = []

    @fnop.on.create(KIND, registry=registry, labels={"app": "a"})
    @fnop.on.update(KIND, registry=registry, labels={"app": "a"})
    def handle(name: str, reason: str, **_: Any) -> None:
        seen.append(f"{reason} {name}")

    run = Scenario(registry, [labelled("one", app="a"), labelled("two", app="b")])
    assert run.settle()
    assert [key.name for key in run.machine.state.objects.records] == ["one"]
    # It leaves, changes meanwhile, and comes back.
    run.edit(KIND, "one", metadata={"labels": {"app": None}})
    assert run.settle()
    assert not run.machine.state.objects.records
    run.edit(KIND, "one", spec={"size": 2})
    run.edit(KIND, "one", metadata={"labels": {"app": "a"}})
    run.edit(KIND, "two", metadata={"labels": {"app": "a"}})
    assert run.settle()
    assert seen == ["create one", "update one", "create two"]


def test_a_run_serves_what_its_user_has_selected() -> None:
    registry = Registry()
    seen: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.delete(KIND, registry=registry)
    def handle(name: str, reason: str, **_: Any) -> None:
        seen.append(f"{reason} {name}")

    objects = [labelled("one", team="red"), labelled("two", team="blue")]
    settings = Settings(selector="team in (red)")
    run = Scenario(registry, objects, settings=settings)
    assert run.settle()
    run.delete(KIND, "one")
    run.delete(KIND, "two")
    assert run.settle()
    assert seen == ["create one", "delete one"]


# ---------------------------------------------------------- answers of filters


def test_an_async_filter_is_refused() -> None:
    async def callback(**_: Any) -> bool:
        return True

    for options in ({"when": callback}, {"labels": {"app": callback}}):
        with pytest.raises(fnop.RegistrationError, match="answers at once"):
            fnop.on.create(KIND, registry=Registry(), **options)(nothing)


def test_a_filter_that_answers_no_bool_is_an_error_of_its_object_alone() -> None:
    registry = Registry()
    seen: list[str] = []

    @fnop.on.create(KIND, registry=registry, when=lambda spec, **_: spec.get("when"))
    def filtered(name: str, **_: Any) -> None:
        seen.append(name)

    run = Scenario(registry, [example("one", when=True), example("two", when="yes")])
    assert run.settle()
    assert seen == ["one"]
    assert any("answers True or False, not str" in line for line in run.lines)
