"""Effects on an API server, without an operator: their requests, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fnop
from fnop.core.api.resources import Resource
from fnop.core.seam.commands import Perform
from fnop.core.seam.effect_rules import Requested
from fnop.core.state.address import Address
from fnop.core.state.in_flight import InFlight, in_flight_for, proceed
from fnop.core.values.now import Now
from fnop.effects import Applied, Apply, Conflict, Missing, Outcome, Refused
from fnop.interpreters.runtime.answers import outcome_of
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.runtime.requests import request_for
from tests.simulations import example

__all__ = ["Asking", "assert_split", "assert_uid_decides", "performed"]

Asking = Callable[[ApiRequest], ApiResponse]

KIND = Resource(
    "fnop.dev", "v1", "fnopexamples", "FnopExample", subresources=("status",)
)
ANOTHER = "00000000-1111-2222-3333-444444444444"
OBJECTS = "/apis/fnop.dev/v1/namespaces/default/fnopexamples"
NOW = Now(0.0, 0.0)


def performed(effect: Requested, ask: Asking, name: str) -> Outcome:
    """The outcome of an effect on an object, with all requests that it takes."""
    in_flight = in_flight_for(effect, Address(KIND, "default", name))
    for _ in range(9):
        sent = in_flight.request
        at = sent.address
        command = Perform(1, sent.effect, at.resource, at.namespace, at.name)
        answer = ask(request_for(command, "tests"))
        found = proceed(in_flight, outcome_of(sent.effect, answer), NOW, 0.0)
        if not isinstance(found, InFlight):
            return found
        in_flight = found
    raise AssertionError(f"{in_flight.label} does not end")


def made(ask: Asking, name: str) -> dict[str, Any]:
    manifest = example(name, size=1, items=["a"])
    answer = ask(ApiRequest("POST", OBJECTS, (), manifest))
    assert answer.status == 201, answer
    found: dict[str, Any] = answer.body
    return found


def shown(ask: Asking, name: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(ApiRequest("GET", f"{OBJECTS}/{name}")).body
    return found


def changes(name: str, uid: str) -> list[Requested]:
    """A change of each form, for the object with a uid."""
    target = fnop.target("fnopexamples", name=name, uid=uid)
    manifest = example(name, applied=True)
    manifest["metadata"]["uid"] = uid
    add = {"op": "add", "path": "/spec/size", "value": 2}
    more = {"op": "add", "path": "/spec/items/-", "value": "b"}
    phase = {"op": "add", "path": "/status", "value": {"phase": "Json"}}
    return [
        fnop.patch(target, spec={"size": 2}),
        fnop.patch(target, labels={"a": "b"}),
        fnop.patch(target, status={"phase": "Merge"}),
        fnop.patch(target, subresource="status", status={"phase": "Named"}),
        fnop.patch(target, json=[add]),
        fnop.patch(target, json=[more]),
        fnop.patch(target, json=[phase]),
        fnop.patch(target, subresource="status", json=[phase]),
        Apply(manifest),
    ]


def assert_uid_decides(ask: Asking) -> None:
    """A change that names a uid is made to the object with it, and to no other."""
    for number, effect in enumerate(changes("guarded", ANOTHER)):
        before = made(ask, f"guarded-{number}")
        name, uid = before["metadata"]["name"], before["metadata"]["uid"]
        wrong, right = changes(name, ANOTHER)[number], changes(name, uid)[number]
        outcome = performed(wrong, ask, name)
        assert isinstance(outcome, Conflict), (effect, outcome)
        assert uid in outcome.message, outcome
        assert ANOTHER in outcome.message, outcome
        assert shown(ask, name) == before, effect
        outcome = performed(right, ask, name)
        assert isinstance(outcome, Applied), (effect, outcome)
        assert shown(ask, name) != before, effect
        assert shown(ask, name) == outcome.object
        gone = performed(changes("absent", ANOTHER)[number], ask, "absent")
        assert isinstance(gone, (Missing, Conflict)), gone


def assert_split(ask: Asking) -> None:
    """A JSON patch changes the status and the rest, each through its endpoint."""
    made(ask, "split")
    target = fnop.target("fnopexamples", name="split")
    steps: list[dict[str, Any]] = [
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "add", "path": "/status", "value": {"phase": "New"}},
        {"op": "test", "path": "/status/phase", "value": "New"},
        {"op": "replace", "path": "/spec/size", "value": 2},
        {"op": "add", "path": "/spec/items/-", "value": "b"},
        {"op": "add", "path": "/status/times", "value": [1]},
    ]
    outcome = performed(fnop.patch(target, json=steps), ask, "split")
    assert isinstance(outcome, Applied), outcome
    found = shown(ask, "split")
    assert found["spec"] == {"size": 2, "items": ["a", "b"]}
    assert found["status"] == {"phase": "New", "times": [1]}

    test = {"op": "test", "path": "/status/phase", "value": "Old"}
    for path in ("/spec/size", "/status/size"):
        step = {"op": "add", "path": path, "value": 3}
        late = {"op": "add", "path": "/status/late", "value": True}
        refused = performed(fnop.patch(target, json=[test, step, late]), ask, "split")
        assert isinstance(refused, Refused), refused
        assert shown(ask, "split") == found
