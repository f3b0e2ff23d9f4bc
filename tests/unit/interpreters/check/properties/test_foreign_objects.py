"""`fnop check`: an operator deletes or changes what it has not made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import Action, apply
from tests.reconcilers import KIND, config_map
from tests.simulations import DEFINITION, example

Operator = Callable[[Registry], None]


def found(operator: Operator, *script: Action, **more: Any) -> list[str]:
    """All sentences about it."""
    registry = Registry()
    operator(registry)
    program = Program(registry.handlers, Settings())
    case = Case(program, (DEFINITION,), script or (apply(example()),), **more)
    violations = Explorer(case).benign.violations
    return [line for e in violations if e.property == "apart" for line in e.details]


def labelled(name: str) -> dict[str, Any]:
    made = config_map(f"{name}-config", owner=name)
    made["metadata"]["labels"] = {"owner": name}
    return made


def sweeping(how: str) -> Operator:
    """An operator whose deletion handler finds its objects in one of several ways."""

    def operator(registry: Registry) -> None:
        @fnop.on.create(KIND, registry=registry)
        async def make(name: str, **_: Any) -> None:
            await fnop.apply(labelled(name), force=True)

        @fnop.on.delete(KIND, registry=registry)
        async def unmake(name: str, **_: Any) -> None:
            if how == "by name":
                await fnop.delete("configmaps", name=f"{name}-config")
                return
            labels = {"owner": name} if how == "by label" else {}
            for each in await fnop.list("configmaps", labels=labels):
                if how == "by prefix" and not each["metadata"]["name"].startswith(name):
                    continue
                await fnop.delete(each)

    return operator


def test_a_deletion_of_a_whole_listing_strikes_a_bystander() -> None:
    several = found(sweeping("by listing"))
    assert any("takes owner out of configmaps/example-1-config" in e for e in several)
    (message,) = [each for each in several if "bystander is gone" in each]
    assert message.startswith("configmaps/bystander is gone after `delete ")
    assert "by `delete configmaps/bystander`" in message
    assert "list by labels that it gives to its objects alone" in message


BODIES: dict[str, dict[str, Any]] = {
    "secrets": {"apiVersion": "v1", "kind": "Secret"},
    "services": {
        **{"apiVersion": "v1", "kind": "Service"},
        "spec": {"ports": [{"port": 1}]},
    },
    "pods": {
        **{"apiVersion": "v1", "kind": "Pod"},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    },
    "persistentvolumeclaims": {
        **{"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
    "jobs.batch": {
        **{"apiVersion": "batch/v1", "kind": "Job"},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "c"}],
                }
            }
        },
    },
    "deployments.apps": {
        **{"apiVersion": "apps/v1", "kind": "Deployment"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "c", "image": "c"}]},
            },
        },
    },
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("wide", [True, False])
def test_each_kind_that_the_operator_makes_has_a_bystander(
    kind: str, wide: bool
) -> None:
    def operator(registry: Registry) -> None:
        @fnop.on.create(KIND, registry=registry)
        async def make(name: str, body: fnop.Body, **_: Any) -> None:
            meta = {"name": f"{name}-a", "labels": {"owner": name}}
            # Selectors and pods have a label of their owner's.
            text = json.dumps(BODIES[kind]).replace('"app": "x"', f'"app": "{name}"')
            made = {**json.loads(text), "metadata": meta}
            await fnop.apply(fnop.owned(made, body), force=True)

        @fnop.on.delete(KIND, registry=registry)
        async def unmake(name: str, uid: str, **_: Any) -> None:
            labels = {} if wide else {"owner": name}
            for each in await fnop.list(kind, labels=labels):
                owners = each["metadata"].get("ownerReferences", ())
                if not owners or owners[0]["uid"] == uid:
                    await fnop.delete(each)

    messages = [each for each in found(operator) if "/bystander is gone" in each]
    assert len(messages) == wide
    assert wide or found(operator) == []


@pytest.mark.parametrize("how", ["by name", "by label", "by prefix"])
def test_a_deletion_of_what_was_made_is_no_trespass(how: str) -> None:
    assert found(sweeping(how)) == []


def test_a_timer_that_sweeps_a_namespace_strikes_a_bystander() -> None:
    def operator(registry: Registry) -> None:
        sweeping("by name")(registry)

        @fnop.timer(KIND, interval=60, registry=registry)
        async def sweep(name: str, **_: Any) -> None:
            living = {each["metadata"]["name"] for each in await fnop.list(KIND)}
            for each in await fnop.list("configmaps"):
                if each["metadata"].get("labels", {}).get("owner") not in living:
                    await fnop.delete(each)

    (message, *_) = found(operator)
    assert message.startswith("configmaps/bystander is gone after `apply ConfigMap")


@pytest.mark.parametrize("kind", ["pods", "configmaps"])
def test_an_operator_may_delete_what_it_is_called_for(kind: str) -> None:
    """A janitor of ConfigMaps has handlers for them, or makes none of its own."""

    def operator(registry: Registry) -> None:
        @fnop.on.delete(KIND, registry=registry)
        async def sweep(name: str, **_: Any) -> None:
            for each in await fnop.list("configmaps"):
                await fnop.delete(each)

        @fnop.on.event(kind, registry=registry)
        async def tell(name: str, logger: fnop.Logger, **_: Any) -> None:
            logger.info("seen")

    assert found(operator) == []


# -------------------------------------------------------------- what a user has made

SHARED = config_map("shared", theirs="a")


def writing(how: str) -> Operator:
    """An operator that writes a key for each object into one ConfigMap."""

    def operator(registry: Registry) -> None:
        @fnop.on.create(KIND, registry=registry)
        async def write(name: str, **_: Any) -> None:
            shared = fnop.target("configmaps", name="shared")
            if how == "merges":
                await fnop.patch(shared, data={name: "b"})
            elif how == "replaces":
                step = {"op": "replace", "path": "/data", "value": {name: "b"}}
                await fnop.patch(shared, json=[step])
            elif how == "deletes":
                await fnop.delete("configmaps", name="shared")
            elif how == "applies":
                await fnop.apply(config_map("all", **{name: "b"}), force=True)
            elif how == "applies all":
                found = [each["metadata"]["name"] for each in await fnop.list(KIND)]
                data = dict.fromkeys(found, "b")
                await fnop.apply(config_map("all", **data), force=True)

    return operator


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("replaces", "takes theirs out of configmaps/shared, which the user has"),
        ("deletes", "deletes configmaps/shared, which the user has made"),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_what_a_user_has_made_is_not_to_be_taken(
    how: str, message: str, given: bool
) -> None:
    actions = apply(example()) if given else (apply(SHARED), apply(example()))
    script = actions if isinstance(actions, tuple) else (actions,)
    messages = found(writing(how), *script, given=(SHARED,) if given else ())
    assert any(message in each for each in messages)


def test_keys_may_be_merged_into_what_a_user_has_made() -> None:
    assert found(writing("merges"), apply(SHARED), apply(example())) == []


def test_what_a_handled_object_names_may_be_deleted() -> None:
    script = apply(SHARED), apply(example(duration="shared"))
    assert found(writing("deletes"), *script) == []


def test_what_is_marked_may_be_deleted() -> None:
    marked = config_map("shared")
    marked["metadata"]["labels"] = {"old": "yes"}
    assert found(writing("deletes"), apply(marked), apply(example())) == []


# ------------------------------------------------------------------ what others share


def test_keys_of_another_object_are_not_to_be_taken() -> None:
    (message, *_) = found(writing("applies"))
    assert (
        "takes example-1 out of configmaps/all, which was written there for" in message
    )


def test_a_shared_object_may_be_written_as_a_whole() -> None:
    assert found(writing("applies all")) == []
