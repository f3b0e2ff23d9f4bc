"""References to Secrets are not secret: operators that follow them replay alike."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.redaction import is_sensitive_name
from fnop.interpreters.recording.replay.replay import replay
from tests.histories import History
from tests.recordings import TRACED
from tests.simulations import example

KIND = "fnopexamples"
NAME = "payments-database-credentials"
REFERENCES = [
    NAME,
    f"default/{NAME}",
    f"secrets/{NAME}",
    f"Secret/default/{NAME}",
    f"{NAME}.default",
    f"{NAME}.default.svc.cluster.local",
]


def secret(data: str) -> dict[str, Any]:
    encoded = base64.b64encode(data.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": "default"},
        "data": {"value": encoded},
    }


def following(field: str) -> Registry:
    """A handler that finds the Secret by what its object says of it."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="follow")
    @fnop.on.update(KIND, registry=registry, id="follow")
    async def follow(spec: Any, patch: Any, **_: Any) -> Any:
        given = spec[field]
        reference = given if isinstance(given, str) else given[0]
        name = next(e for e in reference.replace(".", "/").split("/") if NAME in e)
        found = await fnop.get("secrets", name=name, namespace="default")
        patch.status["there"] = found is not None
        if reference in ("none", f"default/{NAME}"):
            return fnop.event("Qualified", "it names its namespace")
        return None

    return registry


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("field", ["secret", "credentials", "imagePullSecrets"])
def test_an_operator_that_follows_a_reference_replays(
    field: str, reference: str
) -> None:
    given: Any = [reference] if field.endswith("Secrets") else reference
    operator = following(field)
    spec: dict[str, Any] = {field: given, "n": 1}
    thing = example(**spec)
    history = History(operator, secret("hC7!kq/+Zt9$wMv2#pL"), thing)
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    _, records = history.recording.records()
    shown = str([*records])
    assert reference in shown
    assert "hC7!" not in shown
    _, records = history.recording.records()
    found = replay(records, Program(operator.handlers, TRACED))
    assert found.difference is None
    judged = history.recording.shadow(operator)
    assert (judged.changed, judged.concealed, judged.untold) == ([], [], {})


@pytest.mark.parametrize(
    "value",
    [
        "9f86d081884c7d65",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "admin:hunter2",
        "550e8400-e29b-41d4-a716-446655440000",
        "correct horse battery staple",
        "qkzovtexaplmwersuio",
    ],
)
@pytest.mark.parametrize("field", ["secret", "credentials"])
def test_what_is_no_name_is_hidden_there(field: str, value: str) -> None:
    assert is_sensitive_name(field) is False  # only sometimes
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="look")
    def look(**_: Any) -> None: ...

    history = History(registry, example(**{field: value}))
    _, records = history.recording.records()
    assert value not in str([*records])


def test_an_address_in_a_secret_is_no_secret_elsewhere() -> None:
    address = "orders-database.default.svc.cluster.local"
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="copy")
    async def copy(spec: Any, patch: Any, **_: Any) -> None:
        found = await fnop.get("secrets", name=NAME, namespace="default")
        there = base64.b64decode(found["data"]["value"]).decode()
        patch.status["host"] = there
        patch.status["same"] = spec["host"] == address

    history = History(registry, secret(address), example(host=address))
    _, records = history.recording.records()
    assert "'host': 'orders-database." in str([*records])
    _, records = history.recording.records()
    assert replay(records, Program(registry.handlers, TRACED)).difference is None


def test_a_choice_by_the_secret_of_a_child_cannot_be_compared() -> None:
    """The child has another name than its owner, to whose handler it is shown."""
    registry = Registry()

    @fnop.reconcile(KIND, owns=["configmaps"], registry=registry, id="keep")
    def keep(spec: Any, name: str, children: Any, **_: Any) -> fnop.Desired:
        found = children["configmaps"].get(f"{name}-conf", {}).get("data") or {}
        is_on = found.get("password") == "true"
        return fnop.desired(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-conf"},
                "data": {"n": str(spec["n"])},
            },
            status={"phase": "On" if is_on else "Off"},
        )

    history = History(registry, example(n=1))
    history.writes("bob", "configmaps", "example-1-conf", data={"password": "true"})
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    _, records = history.recording.records()
    assert "'phase': 'On'" in str([*records])
    _, records = history.recording.records()
    found = replay(records, Program(registry.handlers, TRACED))
    assert found.difference is not None
    assert found.difference.doubt is not None
    judged = history.recording.shadow(registry)
    assert (judged.changed, judged.untold) == ([], {})
    assert judged.concealed
