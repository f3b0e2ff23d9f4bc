"""Errors of fnop itself: the object is paused, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import fnop
from fnop.core.handlers.declare import roles
from fnop.core.handlers.declare.registry import Registry
from fnop.core.objects.attempt import attempts
from fnop.core.objects.attempt.ending import ENDINGS
from fnop.core.objects.execute import executor
from tests.simulations import Scenario, example

KIND = "fnopexamples"
PAUSE_SECONDS = 60.0
CHILD = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "child", "namespace": "default"},
}


class Family(NamedTuple):
    """A handler that notes its calls, and the part of fnop that ends them."""

    declare: Callable[[Registry, Callable[[], None]], None]
    end: tuple[Any, Any]


def event(registry: Registry, note: Callable[[], None]) -> None:
    @fnop.on.event(KIND, registry=registry)
    async def seen(**_: Any) -> None:
        note()
        await fnop.get("configmaps", name="child")


def mapping(registry: Registry, note: Callable[[], None]) -> None:
    @fnop.maps(KIND, to=KIND, registry=registry)
    def users(name: str, **_: Any) -> str:
        note()
        return name

    @fnop.reconcile(KIND, registry=registry)
    def mapped(**_: Any) -> fnop.Desired:
        return fnop.desired()


def timer(registry: Registry, note: Callable[[], None]) -> None:
    @fnop.timer(KIND, interval=7, registry=registry)
    async def ticks(**_: Any) -> None:
        note()
        await fnop.get("configmaps", name="child")


def daemon(registry: Registry, note: Callable[[], None]) -> None:
    @fnop.daemon(KIND, registry=registry)
    async def lasts(**_: Any) -> None:
        note()
        await fnop.get("configmaps", name="child")


def change(registry: Registry, note: Callable[[], None]) -> None:
    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    async def changed(**_: Any) -> None:
        note()
        await fnop.get("configmaps", name="child")


def level(registry: Registry, note: Callable[[], None]) -> None:
    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    async def kept(**_: Any) -> fnop.Desired:
        note()
        await fnop.get("configmaps", name="child")
        return fnop.desired(CHILD)


FAMILIES = {
    "event": Family(event, (ENDINGS, roles.Family.EVENT)),
    "mapping": Family(mapping, (ENDINGS, roles.Family.EVENT)),
    "timer": Family(timer, (ENDINGS, roles.Family.BACKGROUND)),
    "daemon": Family(daemon, (ENDINGS, roles.Family.BACKGROUND)),
    "change": Family(change, (ENDINGS, roles.Family.CHANGE)),
    "level": Family(level, (ENDINGS, roles.Family.RECONCILER)),
    # At the place that takes in the answer to its effect.
    "answer": Family(level, (attempts, "own_answer")),
}
# Those that are called for a state or a time, and not for one watch event.
AGAIN = sorted({*FAMILIES} - {"event", "mapping"})


def break_part(
    patch: pytest.MonkeyPatch, part: tuple[Any, Any], broken: Callable[..., Any]
) -> None:
    """Replace an entry of a table, or a name of a module."""
    owner, name = part
    replace = patch.setitem if isinstance(owner, dict) else patch.setattr
    replace(owner, name, broken)


class Broken:
    """A run in which a part of fnop raises, until it is repaired."""

    def __init__(self, family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[float] = []
        self._patch = monkeypatch
        registry = Registry()
        family.declare(registry, self._note)
        self.run = Scenario(registry)
        makes_child = family.declare is level
        self.run.apply(example() if makes_child else CHILD).wait(1)
        break_part(self._patch, family.end, self._raise)
        if makes_child:
            self.run.edit(KIND, spec={"size": 1})
        else:
            self.run.apply(example())
        self.run.wait(1)

    def _note(self) -> None:
        self.calls.append(self.run.clock.elapsed)

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise KeyError("a mistake of fnop")

    def mend(self) -> None:
        self._patch.undo()

    def disturb(self, seconds: float) -> None:
        """The object, and its child, change all the time."""
        for number in range(int(seconds)):
            self.run.edit(KIND, spec={"size": number + 2})
            self.run.edit("configmaps", "child", data={"size": f"{number}"})
            self.run.wait(1)

    @property
    def errors(self) -> list[str]:
        return [line for line in self.run.lines if "unexpected error" in line]


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_ends_the_pause_early(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(FAMILIES[name], monkeypatch)
    assert len(broken.errors) == 1
    assert "starts anew in 60 s: KeyError" in broken.errors[0]
    before = len(broken.calls)
    broken.disturb(PAUSE_SECONDS - 5)
    assert (len(broken.calls), len(broken.errors)) == (before, 1)
    broken.disturb(10)
    assert (len(broken.calls), len(broken.errors)) == (before + 1, 2)


@pytest.mark.parametrize("name", AGAIN)
def test_the_call_that_was_lost_is_made_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(FAMILIES[name], monkeypatch)
    before = len(broken.calls)
    broken.mend()
    broken.run.wait(PAUSE_SECONDS - 2)
    assert len(broken.calls) == before
    broken.run.wait(5)
    assert len(broken.calls) == before + 1
    broken.disturb(20)
    assert len(broken.errors) == 1


@pytest.mark.parametrize("name", ["event", "mapping"])
def test_the_events_of_the_pause_are_not_lost(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(FAMILIES[name], monkeypatch)
    before = len(broken.calls)
    broken.mend()
    broken.disturb(3)
    broken.run.wait(PAUSE_SECONDS)
    assert len(broken.calls) >= before + 3
    assert len(broken.errors) == 1


@pytest.mark.parametrize("name", FAMILIES)
def test_an_operator_that_stops_waits_for_no_pause(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(FAMILIES[name], monkeypatch)
    broken.disturb(3)
    before = broken.run.clock.elapsed
    broken.run.stop()
    broken.run.settle(seconds=PAUSE_SECONDS)
    assert broken.run.exit is not None
    assert broken.run.clock.elapsed < before + PAUSE_SECONDS / 2


@pytest.mark.parametrize("name", FAMILIES)
def test_a_deleted_object_is_forgotten_after_the_pause(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(FAMILIES[name], monkeypatch)
    broken.mend()
    broken.run.delete(KIND).wait(PAUSE_SECONDS + 10)
    assert broken.run.get(KIND) is None
    assert len(broken.errors) == 1


def test_other_objects_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Broken(FAMILIES["change"], monkeypatch)
    broken.mend()
    before = len(broken.calls)
    broken.run.apply(example("other")).wait(1)
    assert len(broken.calls) == before + 1


@pytest.mark.parametrize("role", [fnop.on.startup, fnop.on.cleanup])
@pytest.mark.parametrize(
    "part",
    [(ENDINGS, roles.Family.ACTIVITY), (executor, "_start_attempt")],
    ids=["end", "begin"],
)
def test_an_activity_is_not_repeated_and_the_operator_ends(
    role: Any, part: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    registry = Registry()

    async def prepare(**_: Any) -> None:
        calls.append("prepare")

    role(registry=registry)(prepare)

    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError("a mistake of fnop")

    run = Scenario(registry)
    break_part(monkeypatch, part, broken)
    run.wait(5)
    run.stop()
    run.wait(100)
    assert run.exit is not None
    assert run.exit.status == 1
    assert len(calls) <= 1
    (line,) = [line for line in run.lines if "unexpected error" in line]
    assert line.startswith("an unexpected error ends the operator: KeyError")
