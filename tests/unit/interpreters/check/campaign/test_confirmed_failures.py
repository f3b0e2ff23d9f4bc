"""`fnop check`: failures of the fault-free run are confirmed with another seed."""

from typing import Any

import fnop
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import apply, edit

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


def follows(*, removes: bool) -> Program:
    """An operator with a child for each name; it removes others, or forgets to."""
    with default_registry.set_aside():

        @fnop.on.create("xs.example.com")
        @fnop.on.update("xs.example.com")
        async def follow(spec: fnop.Spec, uid: str, **_: Any) -> None:
            for name in spec["names"]:
                await fnop.adopt(child(name))
            found = await fnop.list("configmaps")
            for each in found if removes else ():
                owners = [e["uid"] for e in each.meta.get("ownerReferences", ())]
                if uid in owners and each.name not in spec["names"]:
                    await fnop.delete(each)
            await fnop.patch(status={"seen": [*spec["names"]]})

        return Program(default_registry.handlers)


def confirmed(program: Program) -> list[str]:
    """The names of the violations of the benign run that another seed shows, too."""
    script = (apply(custom(names=["a", "b"])), edit("xs/x", spec={"names": ["a"]}))
    explorer = Explorer(Case(program, [CRD], script))
    return [each.property for each in explorer.confirmed(explorer.benign)]


def test_a_child_of_an_earlier_spec_that_is_left_is_confirmed() -> None:
    """So is that the handler lists children, and does nothing with them."""
    assert confirmed(follows(removes=False)) == ["history", "heeds"]


def test_an_operator_that_follows_its_spec_has_nothing_to_confirm() -> None:
    assert confirmed(follows(removes=True)) == []
