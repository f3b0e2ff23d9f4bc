"""Operators with reconcile handlers, in simulations, as tests want to have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import Simulation
from tests.simulations import DEFINITION, example

KIND = "fnopexamples"

NAME = f"{KIND}/example-1"


def config_map(name: str, /, namespace: str = "", **data: str) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    meta = {"name": name, **place}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def simulation(registry: Registry, **options: Any) -> Simulation:
    return Simulation(registry, crds=[DEFINITION], **options)


class Desiring:
    """An operator whose handler desires what the test says, and notes its calls."""

    def __init__(self, *wanted: Any, owns: Any = ("configmaps",), **options: Any):
        self.wanted: list[Any] = [*wanted]
        self.calls: list[dict[str, Any]] = []
        self.more: dict[str, Any] = {}
        # The longest time for permanent failures; otherwise the run ends when nothing
        # waits.
        self.seconds: float | None = None
        self.answer: Any = None
        self.registry = Registry()

        @fnop.reconcile(KIND, owns=owns, registry=self.registry, id="keep", **options)
        def keep(children: fnop.Children, **about: Any) -> fnop.Desired:
            self.calls.append({"children": children, **about})
            wanted = self.wanted if self.answer is None else self.answer
            return fnop.desired(wanted, **self.more)

        self.sim = simulation(self.registry)

    def begin(self, **spec: Any) -> Desiring:
        self.sim.apply(example(**spec))
        self.goes_on()
        return self

    def goes_on(self) -> None:
        """Let the operator do what it will."""
        if self.seconds is None:
            self.sim.settle()
        else:
            self.sim.wait(self.seconds)

    def desire(self, *wanted: Any) -> None:
        """Desire something else from now on."""
        self.wanted = [*wanted]
        self.touch()

    def touch(self) -> None:
        self.sim.edit(NAME, spec={"round": len(self.calls)})
        self.goes_on()

    def writes(self) -> Writes:
        return Writes(self.sim)

    def synced(self) -> tuple[str, str, str]:
        return condition(self.sim, "Synced")


class Writes:
    """The writes from here on, except for those of status and of Kubernetes Events."""

    def __init__(self, sim: Simulation) -> None:
        self._sim, self._before = sim, len(sim.writes)

    def __iter__(self) -> Iterator[str]:
        for each in self._sim.writes[self._before :]:
            if not each.endswith(("/status", "/events")):
                verb, _, path = each.partition(" ")
                yield f"{verb} {'/'.join(path.rsplit('/', 2)[1:])}"


def condition(sim: Simulation, type: str) -> tuple[str, str, str]:
    found = sim.get(NAME)
    assert found is not None
    (only,) = [e for e in found.status["conditions"] if e["type"] == type]
    return only["status"], only["reason"], only["message"]


def data_of(sim: Simulation, name: str, **where: Any) -> Any:
    found = sim.get(f"configmaps/{name}", **where)
    return None if found is None else found.get("data", {})


class Both:
    """An operator with two handlers of one kind; each answers what the test says."""

    def __init__(self, *, reverse: bool = False, **options: Any) -> None:
        self.answers: dict[str, Any] = {"a": None, "b": None}
        self.registry = Registry()
        for name in sorted(self.answers, reverse=reverse):
            self._declare(name, options if name == "b" else {})
        self.sim = simulation(self.registry)

    def _declare(self, name: str, options: dict[str, Any]) -> None:
        @fnop.reconcile(
            KIND, owns="configmaps", registry=self.registry, id=name, **options
        )
        def keep(**about: Any) -> Any:
            answer = self.answers[name]
            found = answer(**about) if callable(answer) else answer
            if isinstance(found, Exception):
                raise found
            return None if found is None else fnop.desired(found)

    def begin(self, **spec: Any) -> Both:
        self.sim.apply(example(**spec)).wait(1)
        return self

    def touch(self, round: int) -> Both:
        self.sim.edit(NAME, spec={"round": round}).wait(30)
        return self

    @property
    def synced(self) -> tuple[str, str, str]:
        return condition(self.sim, "Synced")


def secret(name: str, **data: Any) -> dict[str, Any]:
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def keeping(fn: Callable[..., Any], **options: Any) -> Simulation:
    registry = Registry()
    fnop.reconcile(KIND, registry=registry, id="keep", **options)(fn)
    return simulation(registry)
