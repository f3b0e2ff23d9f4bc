"""Selectors that the API server applies, so that it sends only handled objects."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource, Selector, Selectors
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.pushdown import selectors_of
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.wire import command_to_wire
from fnop.core.values.errors import RegistrationError
from fnop.interpreters.runtime.requests import list_request, watch_request
from fnop.testing import Simulation, matches
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
    found = selectors_of(registry.handlers, Selectors(given))
    return found.labels, found.fields


A, B = {"labels": {"app": "a"}}, {"labels": {"app": "b"}}
BOTH = {"labels": {"app": "a", "tier": fnop.PRESENT, "test": fnop.ABSENT}}
NODE = "spec.nodeName"
NAMED = {"field": "metadata.name", "value": "one"}
IN_FIELDS = ("", "b=y\\,z\\=\\\\,spec.a=x")


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
        ([(fnop.index, {"fields": {"spec.a": "x", "b": "y,z=\\"}})], IN_FIELDS),
        ([(fnop.index, {"fields": {NODE: fnop.PRESENT}})], ("", f"{NODE}!=")),
        ([(fnop.index, {"fields": {NODE: fnop.ABSENT}})], ("", f"{NODE}=")),
        # The zero of another type is not known.
        ([(fnop.index, {"fields": {"spec.a": fnop.ABSENT}})], ("", "")),
        ([(fnop.index, {"fields": {"a": lambda value: True}})], ("", "")),
        ([(fnop.index, {"fields": {"a": "1"}}), (fnop.index, A)], ("", "")),
        ([(fnop.on.event, {"fields": {"a": "1"}})], ("", "")),
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


# ---------------------------------------------------------------------- fields


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}


def config(name: str, **data: str) -> dict[str, Any]:
    return {**CONFIG, "metadata": {"name": name}, "data": data}


def bound(name: str, node: str) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_the_server_selects_by_fields_that_it_knows() -> None:
    registry, seen = Registry(), set()

    @fnop.index("pods", fields={"spec.nodeName": "n1"}, registry=registry)
    def here(name: str, **_: Any) -> None:
        seen.add(name)

    simulation = Simulation(registry, objects=[bound("a", "n1"), bound("b", "n2")])
    simulation.settle()
    assert seen == {"a"}
    known = simulation._run.state.objects.records
    assert [key.name for key in known] == ["a"]


def test_fields_that_the_server_does_not_know_are_for_fnop_to_look_at() -> None:
    registry, seen = Registry(), set()
    wanted = {"data.a": "1", "metadata.namespace": "default"}

    @fnop.index("configmaps", fields=wanted, registry=registry)
    def chosen(name: str, **_: Any) -> None:
        seen.add(name)

    objects = [config("x", a="1"), config("y", a="2"), config("z")]
    simulation = Simulation(registry, objects=objects).settle()
    assert seen == {"x"}
    (stream,) = [
        each
        for each in simulation._run.state.streams.followed.values()
        if each.resource.plural == "configmaps"
    ]
    assert stream.selectors.fields == "metadata.namespace=default"
    told = [e for e in simulation.log if "does not select configmaps by data.a" in e]
    assert len(told) == 1
    simulation.apply(config("new", a="1")).settle()
    assert seen == {"x", "new"}


def of_kinds(kinds: str, labels: str = "", fields: str = "") -> Settings:
    wanted = Selector.of(kinds), Selectors(labels, fields)
    return Settings(kind_selectors=(wanted,))


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        (of_kinds("configmaps", labels="app=a"), {"x"}),
        (of_kinds("configmaps", fields="metadata.name=y"), {"y"}),
        (of_kinds("configmaps", "app", "metadata.name!=y"), {"x"}),
        (of_kinds("pods", labels="app=a"), {"x", "y", "z"}),
    ],
)
def test_a_kind_s_own_selectors_are_sent_whatever_its_handlers_are(
    settings: Settings, seen: set[str]
) -> None:
    registry, found = Registry(), set()

    @fnop.on.event("configmaps", registry=registry)
    def see(name: str, **_: Any) -> None:
        found.add(name)

    objects = [config("x", a="1"), config("y", a="2"), config("z")]
    for each, app in zip(objects, ("a", "b"), strict=False):
        each["metadata"]["labels"] = {"app": app}
    Simulation(registry, objects=objects, settings=settings).settle()
    assert found - {"kube-root-ca.crt"} == seen


def test_a_field_that_a_kind_s_own_selector_names_is_not_left_out() -> None:
    """Or the operator would serve objects that are not its own."""
    registry, seen = Registry(), set()

    @fnop.on.event("configmaps", registry=registry)
    def see(name: str, **_: Any) -> None:
        seen.add(name)

    settings = of_kinds("configmaps", fields="data.a=1")
    run = Scenario(registry, [config("x", a="1")], settings=settings)
    run.wait(10)
    assert not seen
    assert any("data.a" in each.message for each in run.said if each.level != "info")


VALUES = [
    ("1", {"data": {"a": "1"}}, True),
    ("1", {"data": {"a": 1}}, True),
    ("true", {"data": {"a": True}}, True),
    ("false", {"data": {}}, False),
    ("0", {}, False),
    ("", {}, True),
    ("", {"data": {"a": ""}}, True),
    ("1", {}, False),
    ("1", {"data": {"a": ["1"]}}, False),
    ("1", {"data": "1"}, False),
    (fnop.PRESENT, {"data": {"a": 0}}, True),
    (fnop.PRESENT, {"data": {"a": ""}}, False),
    (fnop.ABSENT, {"data": {"a": ""}}, True),
    (fnop.ABSENT, {"data": {"a": "x"}}, False),
    (lambda value: value == 3, {"data": {"a": 3}}, True),
]


@pytest.mark.parametrize(("wanted", "body", "fits"), VALUES, ids=range(len(VALUES)))
def test_fields_compare_as_field_selectors_do(
    wanted: Any, body: dict[str, Any], fits: bool
) -> None:
    registry = Registry()
    fnop.on.create("xs", fields={"data.a": wanted}, registry=registry)(nothing)
    assert matches(nothing, body, registry=registry) is fits


@pytest.mark.parametrize(
    "fields", [{"a": 1}, {"a": None}, {"": "x"}, ["a"], {"a": {"b": "c"}}], ids=str
)
def test_fields_are_texts_by_their_paths(fields: Any) -> None:
    with pytest.raises(RegistrationError, match="fields="):
        fnop.on.create("xs", fields=fields, registry=Registry())(nothing)
