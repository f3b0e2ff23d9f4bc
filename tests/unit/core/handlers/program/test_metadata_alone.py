"""Kinds whose handlers read only metadata: the API server sends nothing else."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import kind_of
from fnop.core.handlers.program.pushdown import needs_metadata_alone
from fnop.testing import Simulation

PODS = Resource("", "v1", "pods", "Pod")


def metadata(name: str, labels: Any, meta: Any, owner: Any, **_: Any) -> None: ...


def whole(body: Any, **_: Any) -> None: ...


def status(status: Any, **_: Any) -> None: ...


def patching(patch: Any, **_: Any) -> None: ...


def everything(**kwargs: Any) -> None: ...


def by_spec(spec: Any, **_: Any) -> bool:
    return bool(spec)


def by_labels(labels: Any, **_: Any) -> bool:
    return bool(labels)


ON, INDEX = fnop.on.event, fnop.index
CASES: list[tuple[list[tuple[Any, Any, dict[str, Any]]], bool]] = [
    ([(ON, metadata, {})], True),
    ([(INDEX, metadata, {})], True),
    ([(ON, metadata, {"labels": {"a": "b"}})], True),
    ([(ON, metadata, {"when": by_labels})], True),
    ([(ON, metadata, {"field": "metadata.labels.a"})], True),
    ([(ON, metadata, {"fields": {"metadata.name": "a"}})], True),
    ([(ON, metadata, {"when": by_spec})], False),
    ([(ON, metadata, {"labels": {"a": lambda value, spec, **_: True}})], False),
    ([(ON, metadata, {"field": "spec.nodeName"})], False),
    ([(ON, metadata, {"fields": {"spec.nodeName": "n"}})], False),
    ([(ON, whole, {})], False),
    ([(ON, status, {})], False),
    ([(ON, patching, {})], False),
    ([(ON, everything, {})], False),
    ([(ON, metadata, {}), (INDEX, whole, {})], False),
    ([(fnop.on.create, metadata, {})], False),
    ([(fnop.on.log, metadata, {})], False),
    ([(fnop.timer, metadata, {"interval": 5})], False),
]


@pytest.mark.parametrize(("declared", "alone"), CASES, ids=range(len(CASES)))
def test_what_is_looked_at_decides(
    declared: list[tuple[Any, Any, dict[str, Any]]], alone: bool
) -> None:
    registry = Registry()
    for number, (decorator, fn, options) in enumerate(declared):
        decorator("pods", registry=registry, id=f"h{number}", **options)(fn)
    assert needs_metadata_alone(registry.handlers) is alone
    kind = kind_of(PODS, registry.handlers)
    assert kind.metadata_only is alone
    traced = kind_of(PODS, registry.handlers, Settings(traces=True))
    assert not traced.metadata_only


def test_a_function_of_indices_is_one_of_metadata() -> None:
    registry = Registry()

    @fnop.index("configmaps", registry=registry)
    def known(name: str, **_: Any) -> Any:
        return {name: True}

    @fnop.on.event("pods", registry=registry)
    def seen(name: str, known: Any = fnop.INDEX, **_: Any) -> None: ...

    assert needs_metadata_alone(registry.handlers)


def test_handlers_see_the_same_of_an_object_without_its_rest() -> None:
    registry, seen = Registry(), []

    @fnop.on.event("pods", registry=registry)
    def labelled(name: str, labels: Any, type: Any, meta: Any, **_: Any) -> Any:
        seen.append((type, name, dict(labels), meta["uid"] != ""))
        return fnop.event("Seen", name)

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    simulation = Simulation(registry, objects=[pod]).settle()
    assert seen[0] == (None, "p", {"a": "1"}, True)
    simulation.edit("pods/p", metadata={"labels": {"a": "2"}}).settle()
    assert seen[-1] == ("MODIFIED", "p", {"a": "2"}, True)
    simulation.delete("pods/p").settle()
    assert seen[-1][:2] == ("DELETED", "p")
    assert any("serving pods (metadata only)" in each for each in simulation.log)
    event = simulation.events()[0]
    assert event["involvedObject"]["kind"] == "Pod"
