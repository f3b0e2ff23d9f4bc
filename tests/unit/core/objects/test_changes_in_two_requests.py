"""One change of an author's is applied once, though it takes two requests.

A kind with a status subresource takes the status at an endpoint of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from tests.change_forms import FORMS, an_example, assert_changed_once
from tests.stories import Story, definition

KIND = "fnopexamples"

ROLES = ("create", "update", "timer", "reconcile", "event")


def operator(role: str, form: Any, calls: list[str]) -> Registry:
    registry = Registry()
    options: dict[str, Any] = {"registry": registry, "id": "handler"}
    decorators: dict[str, Any] = {
        "create": partial(fnop.on.create, KIND),
        "update": partial(fnop.on.update, KIND),
        "event": partial(fnop.on.event, KIND),
        "timer": partial(fnop.timer, KIND, interval=3600, initial_delay=5),
        "reconcile": partial(fnop.reconcile, KIND),
    }

    def handler(patch: Any, **_: Any) -> Any:
        if calls:
            return None  # once is enough
        calls.append(role)
        if callable(form):
            patch.fns.append(form)
            return None
        return form

    decorators[role](**options)(handler)
    if role != "create":
        fnop.on.create(KIND, registry=registry, id="created")(lambda **_: None)
    return registry


class Interfering:
    """A client that changes the object after the operator's first write of it."""

    def __init__(self) -> None:
        self.is_due = False

    def __call__(self, run: Story, command: Perform) -> Outcome | None:
        if command.effect.kind == "Patch" and command.name == "example-1":
            if self.is_due:
                self.is_due = False
                run.edit(KIND, spec={"theirs": 1}, metadata={"labels": {"x": "y"}})
            merge = getattr(command.effect, "merge", None) or {}
            self.is_due = command.handler == "handler" and "status" not in merge
        return None


@pytest.mark.parametrize("interferes", [False, True])
@pytest.mark.parametrize("subresource", [False, True])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("form", FORMS)
def test_a_change_is_applied_once(
    form: str, role: str, subresource: bool, interferes: bool
) -> None:
    calls: list[str] = []
    run = Story(
        operator(role, FORMS[form][0], calls), crd=definition(subresource=subresource)
    )
    if interferes:
        run.fate = Interfering()
    run.apply(an_example())
    run.user_sets_status({}) if subresource else run.edit(KIND, status={"there": True})
    run.settle(seconds=60)
    if role == "update":
        run.edit(KIND, metadata={"labels": {"edited": "yes"}})
        run.settle(seconds=60)
    assert calls == [role]
    found = run.get(KIND)
    assert found is not None
    assert_changed_once(form, found)
    assert not run.said_at("error")
    assert not [e for e in run.said_at("warning") if "does not keep" in e]
