"""`fnop check`: timers that write at each call, and which of them are at rest."""

from typing import Any

import fnop
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import apply

META = {"name": "xs.example.com"}
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {"type": "object", "properties": {"spec": ANY, "status": ANY}}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "subresources": {"status": {}},
    "schema": {"openAPIV3Schema": SCHEMA},
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": META,
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "X", "plural": "xs", "singular": "x"},
        "versions": [VERSION],
    },
}
X = {"apiVersion": "example.com/v1", "kind": "X", "metadata": {"name": "x"}}


def custom(**spec: Any) -> dict[str, Any]:
    return {**X, "spec": spec}


def child(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def violations(program: Program) -> list[str]:
    case = Case(program, [CRD], (apply(custom(size=1)),))
    return [each.property for each in Explorer(case).benign.violations]


def test_a_timer_that_makes_its_child_anew_is_found() -> None:
    with default_registry.set_aside():

        @fnop.timer("xs.example.com", interval=60)
        async def churn(**_: Any) -> None:
            await fnop.delete("configmaps", name="a")
            await fnop.adopt(child("a"))

        program = Program(default_registry.handlers)
    assert violations(program) == ["no_more_writes"]


def test_a_timer_that_applies_the_same_child_again_is_at_rest() -> None:
    with default_registry.set_aside():

        @fnop.timer("xs.example.com", interval=60)
        async def keep(body: fnop.Body, name: str, **_: Any) -> None:
            await fnop.apply(fnop.owned(child(name), body), force=True)

        program = Program(default_registry.handlers)
    assert violations(program) == []


def test_a_timer_may_say_in_its_own_object_that_it_is_alive() -> None:
    with default_registry.set_aside():

        @fnop.timer("xs.example.com", interval=60)
        def tick(status: fnop.Status, patch: fnop.Patch, **_: Any) -> None:
            patch.status["ticks"] = status.get("ticks", 0) + 1

        program = Program(default_registry.handlers)
    assert "no_more_writes" not in violations(program)
