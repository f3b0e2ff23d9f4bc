"""Allocators: first come, first served is as good in another order of coming."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

import fnop
from bench.bugs.crds import crd, custom
from fnop import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer, is_special
from fnop.interpreters.check.scripts.allotments import given_by, in_turn
from fnop.interpreters.check.state.worlds import World
from fnop.interpreters.check.trials.differences import differences
from fnop.interpreters.simulation.actions import Action, apply

XS = "xs.example.com"


def config(name: str, **data: Any) -> dict[str, Any]:
    texts = {key: str(value) for key, value in data.items()}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": texts}


def service(name: str, port: int) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": port, "targetPort": port}]}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


TWO = apply(custom("b", size=2)), apply(custom("a", size=1))


# ---------------------------------------------------------------------- two operators


def told(registry: Registry, *script: Action) -> set[str]:
    """The consequences of single faults, confirmed."""
    case = Case(Program(registry.handlers), [crd()], script or TWO)
    explorer = Explorer(case)
    found = {each.message for each in explorer.benign.violations}
    for schedule in explorer.singles():
        if is_special(schedule) or schedule[0].kind.code not in ("F18", "F13", "F2"):
            continue
        for each in explorer.confirmed(explorer.tried(schedule)):
            found |= {*each.details, each.message}
    return found


def slots(*, claimed: bool = True) -> Registry:
    """An operator that gives each object the first port that is free.

    The port is `claimed` by an object of its name: there is one at most. Else two
    handlers take the same one if they look at the same time.
    """
    registry = Registry()

    @fnop.on.create(XS, id="allot", registry=registry)
    async def allot(name: str, uid: str, body: fnop.Body, **_: Any) -> None:
        found = await fnop.list("configmaps", labels={"is": "slot"})
        mine = [each["data"]["port"] for each in found if each["data"]["of"] == name]
        taken = {each["data"]["port"] for each in found}
        free = (each for each in range(3000, 3100) if str(each) not in taken)
        port = int(mine[0]) if mine else next(free)
        if not mine:
            place = f"slot-{port}" if claimed else f"slot-of-{name}"
            slot = config(place, port=port, of=name)
            slot["metadata"]["labels"] = {"is": "slot"}
            await fnop.create(fnop.owned(slot, body))
        await fnop.patch(status={"port": port})
        await fnop.apply(fnop.owned(service(name, port), body))

    return registry


def test_another_order_of_coming_is_no_defect() -> None:
    assert told(slots()) == set()


def test_one_port_of_two_objects_is_told() -> None:
    found = told(slots(claimed=False))
    assert 'configmaps/slot-of-a data.port is "3000" instead of "3001"' in found


# ------------------------------------------------------------------------ other worlds


def world(**objects: Any) -> World:
    """The world of some objects; `xs_a` stands for the alias `xs.example.com/a`."""
    kinds = {"xs": XS, "cm": "configmaps", "svc": "services"}
    found = {}
    for place, each in objects.items():
        kind, _, name = place.partition("_")
        found[f"{kinds[kind]}/{name.replace('_', '-')}"] = orjson.dumps(each)
    return found


def ordinary(found: dict[str, Any], owner: str = "") -> dict[str, Any]:
    """A child with some data, of an owner."""
    owners = [{"name": owner, "uid": f"<uid of {XS}/{owner}>"}]
    return {"data": found, "metadata": {"ownerReferences": owners} if owner else {}}


def port(number: int) -> dict[str, Any]:
    return {"status": {"port": number}}


def left(usual: World, now: World, given: Any = ()) -> list[str]:
    found = differences(usual, now)
    return [*map(str, in_turn(usual, now, found, {XS}, dict(given)))]


SWAPPED: dict[str, tuple[World, World]] = {
    "a status": (world(xs_a=port(1), xs_b=port(2)), world(xs_a=port(2), xs_b=port(1))),
    "a status of three": (
        world(xs_a=port(1), xs_b=port(2), xs_c=port(3)),
        world(xs_a=port(2), xs_b=port(3), xs_c=port(1)),
    ),
    "the names of children": (
        world(cm_a_1=ordinary({"n": "1"}, "a"), cm_b_2=ordinary({"n": "2"}, "b")),
        world(cm_a_2=ordinary({"n": "2"}, "a"), cm_b_1=ordinary({"n": "1"}, "b")),
    ),
    "a text that a status leads to": (
        world(
            **{"xs_a": port(3000), "xs_b": port(3001)},
            cm_a=ordinary({"url": "http://a:3000/x"}, "a"),
            cm_b=ordinary({"url": "http://b:3001/y"}, "b"),
        ),
        world(
            **{"xs_a": port(3001), "xs_b": port(3000)},
            cm_a=ordinary({"url": "http://a:3001/x"}, "a"),
            cm_b=ordinary({"url": "http://b:3000/y"}, "b"),
        ),
    ),
    "a register of owners": (
        world(xs_a={}, xs_b={}, cm_ports=ordinary({"3000": "a", "3001": "b"})),
        world(xs_a={}, xs_b={}, cm_ports=ordinary({"3000": "b", "3001": "a"})),
    ),
    "a register of values": (
        world(xs_a={}, xs_b={}, cm_ports=ordinary({"a": "3000", "b": "3001"})),
        world(xs_a={}, xs_b={}, cm_ports=ordinary({"a": "3001", "b": "3000"})),
    ),
    "a list of those who wait": (
        world(xs_a={}, xs_b={}, cm_queue={"spec": {"next": ["a", "b"]}}),
        world(xs_a={}, xs_b={}, cm_queue={"spec": {"next": ["b", "a"]}}),
    ),
    "the owner of what has the value": (
        world(xs_a={}, xs_b={}, cm_p1=ordinary({}, "a"), cm_p2=ordinary({}, "b")),
        world(xs_a={}, xs_b={}, cm_p1=ordinary({}, "b"), cm_p2=ordinary({}, "a")),
    ),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_what_is_swapped_is_left_out(name: str) -> None:
    usual, now = SWAPPED[name]
    if "names" in name:
        usual, now = ({**each, **world(xs_a={}, xs_b={})} for each in (usual, now))
    assert differences(usual, now)
    assert left(usual, now) == []


ASTRAY: dict[str, tuple[World, World]] = {
    "one value of two objects": (
        world(xs_a=port(1), xs_b=port(2)),
        world(xs_a=port(1), xs_b=port(1)),
    ),
    "another value": (
        world(xs_a=port(1), xs_b=port(2)),
        world(xs_a=port(1), xs_b=port(3)),
    ),
    "a value that others have as well": (
        world(xs_a=port(1), xs_b=port(2), xs_c=port(1)),
        world(xs_a=port(2), xs_b=port(1), xs_c=port(1)),
    ),
    "a child of another one's name": (
        world(xs_a={}, xs_b={}, cm_a=ordinary({}, "a"), cm_b=ordinary({}, "b")),
        world(xs_a={}, xs_b={}, cm_a=ordinary({}, "b"), cm_b=ordinary({}, "a")),
    ),
    "a text that does not follow": (
        world(xs_a=port(1), xs_b=port(2), cm_a=ordinary({"url": "http://a:1"}, "a")),
        world(xs_a=port(2), xs_b=port(1), cm_a=ordinary({"url": "http://a:3"}, "a")),
    ),
    "the order of what belongs to one": (
        world(xs_a={}, xs_b={}, cm_a={"spec": {"args": ["-v", "-q"]}}),
        world(xs_a={}, xs_b={}, cm_a={"spec": {"args": ["-q", "-v"]}}),
    ),
    "whether they are ready": (
        world(xs_a={"status": {"ready": True}}, xs_b={"status": {"ready": False}}),
        world(xs_a={"status": {"ready": False}}, xs_b={"status": {"ready": True}}),
    ),
}


@pytest.mark.parametrize("name", ASTRAY)
def test_what_is_wrong_is_told(name: str) -> None:
    assert left(*ASTRAY[name])


def test_what_a_user_has_given_to_each_is_not_swapped() -> None:
    usual = world(
        xs_a={}, xs_b={}, cm_a=ordinary({"n": "5"}), cm_b=ordinary({"n": "7"})
    )
    now = world(xs_a={}, xs_b={}, cm_a=ordinary({"n": "7"}), cm_b=ordinary({"n": "5"}))
    script = apply(custom("a", size=5)), apply(custom("b", size=7))
    assert len(left(usual, now, given_by(script))) == 2
    assert left(usual, now) == []
