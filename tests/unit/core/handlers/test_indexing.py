"""Indices: filled before handlers run, up to date, one snapshot for an attempt."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role, kwargs_of
from fnop.core.objects.store import indexing
from fnop.core.values.errors import RegistrationError
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.simulations import Scenario, example
from tests.stories import Story

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def config_map(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def index_maps(registry: Registry, **options: Any) -> None:
    @fnop.index(
        "configmaps", labels={"app": fnop.PRESENT}, registry=registry, **options
    )
    def maps_by_app(labels: Any, name: str, **_: Any) -> dict[str, str]:
        return {labels["app"]: name}


def looking(registry: Registry) -> list[dict[str, tuple[str, ...]]]:
    """A handler of updates that notes what the index shows."""
    seen: list[dict[str, tuple[str, ...]]] = []

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    def look(maps_by_app: Any = fnop.INDEX, **_: Any) -> None:
        seen.append({key: maps_by_app[key] for key in sorted(maps_by_app)})

    return seen


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(indexing).failed == 0


def test_k_17_27_an_index_is_full_before_any_handler_runs(registry: Registry) -> None:
    index_maps(registry)
    seen = looking(registry)
    maps = [config_map(f"m{n}", app="ab"[n % 2]) for n in range(5)]
    Scenario(registry, [example(), *maps, config_map("none")]).settle()
    assert seen == [{"a": ("m0", "m2", "m4"), "b": ("m1", "m3")}]


def test_an_index_follows_its_objects(registry: Registry) -> None:
    index_maps(registry)
    seen = looking(registry)
    run = Scenario(registry, [example(), config_map("m", app="a")])
    run.settle()
    path = "/api/v1/namespaces/default/configmaps/m"
    steps: list[tuple[str, Any]] = [
        ("PATCH", {"metadata": {"labels": {"app": "b"}}}),
        ("PATCH", {"metadata": {"labels": {"app": None}}}),
        ("PATCH", {"metadata": {"labels": {"app": "c"}}}),
        ("DELETE", None),
    ]
    for number, (method, body) in enumerate(steps):
        kind = "application/merge-patch+json"
        run.request(ApiRequest(method, path, (), body, kind))
        run.edit(KIND, spec={"field": number}).settle()
    assert seen == [{"a": ("m",)}, {"b": ("m",)}, {}, {"c": ("m",)}, {}]


def test_a_conversation_keeps_the_index_that_it_began_with(registry: Registry) -> None:
    index_maps(registry)
    seen: list[int] = []

    @fnop.on.create(KIND, registry=registry)
    async def look(maps_by_app: Any = fnop.INDEX, **_: Any) -> None:
        seen.append(len(maps_by_app))
        await fnop.sleep(10)
        seen.append(len(maps_by_app))

    run = Scenario(registry, [example(), config_map("m", app="a")])
    run.settle(seconds=5)
    run.apply(config_map("n", app="b")).settle(seconds=10)
    assert seen == [1, 1]


def test_k_17_26_what_is_no_mapping_is_under_none(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.index("configmaps", labels={"app": fnop.PRESENT}, registry=registry)
    def names(name: str, **_: Any) -> str:
        return name

    @fnop.on.create(KIND, registry=registry)
    def look(names: Any = fnop.INDEX, **_: Any) -> None:
        seen.append(dict(names))

    Scenario(registry, [example(), config_map("m", app="a")]).settle()
    assert seen == [{None: ("m",)}]


def test_an_index_is_there_even_when_it_is_empty(registry: Registry) -> None:
    index_maps(registry)
    seen: list[int] = []

    @fnop.on.startup(registry=registry)
    def start(maps_by_app: Any = fnop.INDEX, **_: Any) -> None:
        seen.append(len(maps_by_app))

    Scenario(registry, [example()]).settle()
    assert seen == [0]


def test_timers_spies_and_kwargs_get_it_too(registry: Registry) -> None:
    index_maps(registry)
    seen: list[str] = []

    @fnop.timer(KIND, registry=registry)
    def tick(maps_by_app: Any = fnop.INDEX, **_: Any) -> None:
        seen.append(f"timer {len(maps_by_app)}")

    @fnop.on.event(KIND, registry=registry)
    def spy(**kwargs: Any) -> None:
        seen.append(f"spy {len(kwargs['maps_by_app'])}")

    Scenario(registry, [example(), config_map("m", app="a")]).settle()
    assert sorted(seen) == ["spy 1", "timer 1"]


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("errors", "left"),
    [(None, ("m",)), (fnop.ErrorsMode.PERMANENT, ()), (fnop.ErrorsMode.TEMPORARY, ())],
)
def test_k_17_28_an_error_hurts_only_its_own_object(
    registry: Registry, errors: Any, left: tuple[str, ...]
) -> None:
    @fnop.index(
        "configmaps", labels={"app": fnop.PRESENT}, errors=errors, registry=registry
    )
    def maps_by_app(labels: Any, name: str, **_: Any) -> dict[str, str]:
        if labels["app"] == "broken":
            raise ValueError("broken")
        return {"all": name}

    seen = looking(registry)
    run = Scenario(registry, [example(), config_map("m", app="a")])
    run.settle()
    path = "/api/v1/namespaces/default/configmaps/m"
    body = {"metadata": {"labels": {"app": "broken"}}}
    run.request(ApiRequest("PATCH", path, (), body, "application/merge-patch+json"))
    run.edit(KIND, spec={"field": 1}).settle()
    assert seen[0] == {"all": ("m",)}
    assert seen[1].get("all", ()) == left
    assert any("maps_by_app failed" in line for line in run.lines)


def test_a_key_that_cannot_be_one_hurts_only_its_own_object(registry: Registry) -> None:
    @fnop.index("configmaps", labels={"app": fnop.PRESENT}, registry=registry)
    def maps_by_app(name: str, **_: Any) -> Any:
        return {(("a", []) if name == "bad" else "good"): name}

    seen = looking(registry)
    maps = [config_map("bad", app="a"), config_map("fine", app="a")]
    run = Scenario(registry, [example(), *maps])
    run.settle()
    assert seen == [{"good": ("fine",)}]
    assert any("unhashable" in line for line in run.lines)


def test_a_kind_that_may_not_be_listed_blocks_nobody(registry: Registry) -> None:
    index_maps(registry)
    seen = looking(registry)

    class Refusing(Scenario):
        def request(self, request: ApiRequest) -> ApiResponse:
            if request.path == "/api/v1/configmaps" and request.method == "GET":
                body = {"kind": "Status", "message": "no", "reason": "Forbidden"}
                return ApiResponse(403, body)
            return super().request(request)

    Refusing(registry, [example()]).settle(seconds=60)
    assert seen == [{}]


@pytest.mark.parametrize("name", ["spec", "my-index"])
def test_an_index_needs_a_name_of_its_own(registry: Registry, name: str) -> None:
    with pytest.raises(RegistrationError, match="cannot be the name of an index"):
        fnop.index("pods", id=name, registry=registry)(lambda **_: None)


def test_an_index_cannot_converse(registry: Registry) -> None:
    with pytest.raises(RegistrationError, match="plain function"):

        @fnop.index("pods", registry=registry)
        async def index(**_: Any) -> None: ...


def test_a_handler_asks_for_an_index_that_is_declared_above_it(
    registry: Registry,
) -> None:
    with pytest.raises(RegistrationError, match="an index that is declared above"):

        @fnop.on.create(KIND, registry=registry)  # type: ignore[type-var]
        def look(maps_by_app: Any, **_: Any) -> None: ...


def test_an_index_gets_all_that_it_may_ask_for_by_kwargs() -> None:
    registry = Registry()
    asked: list[set[str]] = []

    @fnop.index("fnopexamples", registry=registry)
    def everything(**kwargs: Any) -> None:
        asked.append(set(kwargs))

    story = Story(registry, [example()])
    assert story.settle()
    assert asked[0] == set(kwargs_of(Role.INDEX)) - {"obj"}
