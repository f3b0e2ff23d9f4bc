"""Handlers of changes of the cluster itself: `@fnop.on.cluster.…`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.testing import Simulation

INTEGER = {"type": "integer"}
TEXT = {"type": "string"}


def definition(*versions: str, text: str = "", **fields: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "description": text,
        "properties": {"spec": {"type": "object", "properties": fields}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                }
                for name in versions
            ],
        },
    }


@pytest.fixture
def registry() -> Registry:
    return Registry()


class Told(list[Any]):
    """The handlers' messages; reading them removes them."""

    def taken(self) -> list[Any]:
        found = [*self]
        self.clear()
        return found


def telling_kinds(registry: Registry, *words: Any) -> Told:
    told = Told()
    for role in ("added", "removed", "changed"):

        def tell(
            resource: fnop.Resource,
            old: fnop.ServedKind | None,
            new: fnop.ServedKind | None,
            param: str,
            **_: Any,
        ) -> None:
            kinds = [each and each.versions for each in (old, new)]
            told.append((param, resource.label, *kinds))

        decorate = getattr(fnop.on.cluster, f"kind_{role}")
        decorate(*words, id=role, param=role, registry=registry)(tell)
    return told


THINGS = "things.example.com"


@pytest.mark.parametrize("words", [(), ("things",), ("example.com", "things")])
def test_kinds_come_change_and_go(registry: Registry, words: tuple[str, ...]) -> None:
    told = telling_kinds(registry, *words)
    simulation = Simulation(registry).settle()
    assert told == [], "what is there at the start is no change"
    simulation.apply(definition("v1", size=INTEGER)).wait(10)
    assert told.taken() == [("added", THINGS, None, ("v1",))]
    simulation.apply(definition("v1", "v2", size=INTEGER)).wait(10)
    assert told.taken() == [("changed", THINGS, ("v1",), ("v2", "v1"))]
    simulation.apply(definition("v1", "v2", size=TEXT)).wait(10)
    assert told.taken() == [("changed", THINGS, ("v2", "v1"), ("v2", "v1"))]
    simulation.apply(definition("v1", "v2", size=TEXT, text="for people")).wait(10)
    assert told.taken() == []
    simulation.delete("crds/things.example.com").wait(10)
    assert told.taken() == [], "it is missed for a while"
    simulation.wait(20)
    assert told.taken() == [("removed", THINGS, ("v2", "v1"), None)]
    simulation.wait(1200)
    assert told == []


def test_only_the_named_kinds_are_told(registry: Registry) -> None:
    told = telling_kinds(registry, "others.example.com")
    simulation = Simulation(registry).settle()
    simulation.apply(definition("v1")).wait(10)
    simulation.delete("crds/things.example.com").wait(40)
    assert told == []


def test_a_kind_that_comes_back_otherwise_has_changed(registry: Registry) -> None:
    told = telling_kinds(registry)
    simulation = Simulation(registry, crds=[definition("v1", size=INTEGER)]).settle()
    simulation.delete("crds/things.example.com").wait(5)
    simulation.apply(definition("v1", size=TEXT)).wait(40)
    assert told == [("changed", THINGS, ("v1",), ("v1",))]


def test_an_upgrade_is_told_with_both_versions(registry: Registry) -> None:
    told: list[Any] = []

    @fnop.on.cluster.upgraded(registry=registry)
    def upgraded(
        old: fnop.ServerVersion, new: fnop.ServerVersion, now: Any, **_: Any
    ) -> None:
        told.append((old, str(new), new >= (1, 37), now.year))

    simulation = Simulation(registry).settle()
    simulation.upgrade("1.37.2").settle().wait(1200)
    assert told == [((1, 36, "v1.36.0"), "v1.37.2", True, simulation.now.year)]
    with pytest.raises(ValueError, match=r"a release is such as 1\.37"):
        simulation.upgrade("latest")


def test_silence_is_told_when_it_lasts_and_when_it_ends(registry: Registry) -> None:
    told = Told()

    @fnop.on.cluster.unreachable(after=20, registry=registry)
    def away(downtime: timedelta, **_: Any) -> None:
        told.append(("away", downtime))

    @fnop.on.cluster.unreachable(after=1000, registry=registry)
    def long_away(**_: Any) -> None:
        told.append("long")

    @fnop.on.cluster.reached(after=20, registry=registry)
    def back(downtime: timedelta, **_: Any) -> None:
        told.append(("back", downtime))

    @fnop.on.create("configmaps", registry=registry)
    def served(**_: Any) -> None: ...

    simulation = Simulation(registry).settle()
    simulation.outage(50).settle()
    (_, short), (_, whole) = told.taken()
    assert timedelta(seconds=20) <= short < timedelta(seconds=26)
    assert timedelta(seconds=49) <= whole < timedelta(seconds=60)
    simulation.outage(10).settle().wait(1200)
    assert told == []
    simulation.outage(timedelta(seconds=90)).wait(45)
    assert [name for name, _ in told] == ["away"]


def test_each_handler_of_each_change_is_retried_for_itself(registry: Registry) -> None:
    told: list[Any] = []

    @fnop.on.cluster.kind_added(registry=registry, retries=3, backoff=5)
    def fails(resource: fnop.Resource, retry: int, **_: Any) -> None:
        told.append(retry)
        raise ValueError(resource.label)

    @fnop.on.cluster.kind_added(registry=registry)
    async def converses(resource: fnop.Resource, **_: Any) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": resource.plural, "namespace": "default"},
        }
        await fnop.create(manifest)
        await fnop.sleep(3)
        told.append("made")

    simulation = Simulation(registry).settle()
    simulation.apply(definition("v1")).wait(60)
    assert told == [0, "made", 1, 2]
    assert simulation["configmaps/things"]
    ended = simulation.stop()._run.exit
    assert ended is not None
    assert ended.status == 0, "it is no failure of the operator"


def outside(old: Any, new: Any, resource: fnop.Resource, **_: Any) -> Any:
    name = f"{resource.plural}-{'-'.join(new.versions)}-{old}".lower()
    meta = {"name": name, "namespace": "default"}
    return fnop.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def test_an_impure_handler_is_told_the_same(registry: Registry) -> None:
    fnop.on.cluster.kind_added(impure=True, registry=registry)(outside)
    simulation = Simulation(registry, calls={outside: outside}).settle()
    simulation.apply(definition("v1")).wait(10)
    assert simulation["configmaps/things-v1-none"]


def test_an_operator_without_such_handlers_asks_for_nothing_more(
    registry: Registry,
) -> None:
    @fnop.on.create("configmaps", registry=registry)
    def served(**_: Any) -> None: ...

    simulation = Simulation(registry).settle()
    assert not simulation._run.machine.state.survey.version
    simulation.outage(60).settle()
    assert simulation._run.machine.state.survey.silent_since is None


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (lambda on: on.upgraded("pods"), "is about no object"),
        (lambda on: on.unreachable(after=-1), "after="),
        (lambda on: on.reached(labels={"a": "b"}), "no option labels="),
        (lambda on: on.kind_added("a", "b", "c", "d", id="x"), "a kind is named"),
    ],
)
def test_what_cannot_work_is_refused(declared: Any, why: str) -> None:
    with pytest.raises(RegistrationError, match=why):
        declared(fnop.on.cluster)(lambda **_: None)


def test_a_kubernetes_event_needs_an_object_to_be_about(registry: Registry) -> None:
    about = fnop.target("namespaces", name="default")

    @fnop.on.cluster.upgraded(registry=registry)
    def upgraded(new: Any, **_: Any) -> list[fnop.Effect]:
        return [fnop.info("Nowhere", "x"), fnop.info("Upgraded", str(new), about=about)]

    simulation = Simulation(registry).settle()
    simulation.upgrade("1.37").wait(30)
    (event,) = simulation.events()
    assert event["reason"] == "Upgraded"
    assert event["involvedObject"]["name"] == "default"
    assert "about=fnop.target" in "\n".join(simulation.log)
