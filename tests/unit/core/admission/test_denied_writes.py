"""Writes that a webhook denies: with any code, no other cause is blamed."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.effects import (
    Apply,
    Create,
    Delete,
    Effect,
    Patch,
    Refused,
    Target,
    Unreachable,
    outcomes,
)
from fnop.interpreters.runtime.answers import outcome_of
from fnop.interpreters.runtime.protocol import ApiResponse
from fnop.testing import Simulation

CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}}
WRITES: list[Effect] = [
    Create(CHILD),
    Apply(CHILD),
    Patch(merge={"spec": {"a": 1}}),
    Delete(Target("configmaps", "child")),
]
# What a webhook may answer; the API server makes 400 of what is lower.
CODES = [400, 401, 403, 404, 408, 409, 410, 413, 418, 422, 429, 500, 503, 504]


def denial(code: int, why: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "message": f'admission webhook "judge.example.com" denied the request{why}',
    }


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("why", [": no", " without explanation"])
@pytest.mark.parametrize("effect", WRITES, ids=lambda effect: effect.kind)
def test_a_denial_is_a_refusal_with_any_code(effect: Any, why: str, code: int) -> None:
    found = outcome_of(effect, ApiResponse(code, denial(code, why)))
    assert isinstance(found, Refused)
    assert found.status == code
    assert "judge.example.com" in found.message


def test_rejected_credentials_are_no_denial() -> None:
    body = {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}
    assert isinstance(outcome_of(WRITES[0], ApiResponse(401, body)), Unreachable)


def test_a_webhook_that_cannot_be_called_has_let_nothing_through() -> None:
    message = 'Internal error occurred: failed calling webhook "a.b.c": timeout'
    found = outcome_of(WRITES[0], ApiResponse(500, {"message": message}))
    assert isinstance(found, outcomes.Unreachable), (
        "it can be asked again, as nothing is"
    )


@pytest.mark.parametrize("code", CODES)
def test_a_handler_is_told_of_its_child_s_denial_at_once(code: int) -> None:
    registry = Registry()
    told: list[tuple[int, int]] = []

    @fnop.on.validate("configmaps", registry=registry, own_writes=True)
    def judge(name: str, **_: Any) -> None:
        if name == "child":
            raise fnop.AdmissionError("no", code=code)

    @fnop.on.create("secrets", registry=registry)
    async def created(retry: int, **_: Any) -> None:
        try:
            await fnop.create(CHILD)
        except fnop.Refused as problem:
            told.append((retry, problem.status))

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    sim = Simulation(registry, objects=[secret])
    assert sim.settle().settled
    assert told == [(0, code)]
