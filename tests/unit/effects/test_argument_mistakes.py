"""Mistakes in arguments of effects: the error shows the right call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.merge import operated
from tests.mistakes import called, pod, said
from tests.simulations import Scenario, example


@pytest.mark.parametrize(
    ("slip", "sentence"),
    [
        (
            lambda: get("pod", "x"),
            "give the str by its name, as in fnop.get('pod',",
        ),
        (lambda: get("pod", "x"), "fnop.get('pod', name='x')"),
        (lambda: get("pod", "x", "ns"), "give the str, the str by its name"),
        (lambda: listed("pods", "ns"), "fnop.list('pods', namespace='ns')"),
        (lambda: delete("pods", "x"), "fnop.delete('pods', name='x')"),
        (lambda: delete("pods"), "say which of the pods to delete, as in fnop.delete("),
        (lambda: target("pods", "x"), "fnop.target('pods', name='x')"),
        (lambda: call(called, 1), "give the int by its name, as in fnop.call("),
        (lambda: remember({"a": 1}), "give the dict by its name, as in"),
        (lambda: desired(pod(), pod()), "one list: fnop.desired([one, other])"),
        (lambda: log("info", "text", 5), "fnop.log('info', 'text', size=...)"),
    ],
)
def test_arguments_are_named(slip: Callable[[], Any], sentence: str) -> None:
    assert sentence in said(slip)


get: Any = fnop.get
any_event: Any = fnop.event
info: Any = fnop.info
warn: Any = fnop.warn
exception: Any = fnop.exception
adopt: Any = fnop.adopt
patch: Any = fnop.patch
label: Any = fnop.label
append_owner_reference: Any = fnop.append_owner_reference
remove_owner_reference: Any = fnop.remove_owner_reference
harmonize_naming: Any = fnop.harmonize_naming
adjust_namespace: Any = fnop.adjust_namespace
listed: Any = fnop.list
delete: Any = fnop.delete
target: Any = fnop.target
call: Any = fnop.call
remember: Any = fnop.remember
log: Any = fnop.log
desired: Any = fnop.desired
HANDLED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u"}}
ADOPTED = "fnop.adopt makes the handled object the owner: leave the owner out; "


FORMS: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"{name} about a body": (
            partial(report, HANDLED, reason="Made", message="it is there"),
            f"fnop.{name} takes a reason and a message in words, and is about the "
            f"handled object: write fnop.{name}(reason, message), with about=... for "
            "another object",
        )
        for name, report in {
            "event": any_event,
            "info": info,
            "warn": warn,
            "exception": exception,
        }.items()
    },
    "event of a type": (
        lambda: any_event(HANDLED, type="Normal", reason="Made"),
        "write fnop.event(reason, message)",
    ),
    "info about a third": (
        lambda: info("Made", "it is there", HANDLED),
        "with about=... for another object",
    ),
    "adopt for an owner": (lambda: adopt(pod(), owner=HANDLED), ADOPTED),
    "adopt for an owner by place": (lambda: adopt(pod(), HANDLED), ADOPTED),
    "adopt by force": (lambda: adopt(pod(), forced=True), "leave forced= out"),
    "adopt strictly": (lambda: adopt(pod(), strict=True), "leave strict= out"),
    "adopted and changed": (
        lambda: adopt(pod()).__setitem__("spec", {}),
        "fnop.adopt(...) cannot be changed once it is built: "
        "change the manifest before",
    ),
    "created and taken from": (
        lambda: fnop.create(pod()).__delitem__("spec"),
        "fnop.create(...) cannot be changed once it is built",
    ),
    "a patch of a mapping": (
        lambda: patch(HANDLED, {"status": {}}),
        "by its name, as in fnop.patch(..., status=...)",
    ),
    "labels of nobody": (
        lambda: label(pod()),
        "give labels, as in child = fnop.label(child, labels)",
    ),
    "an owner of nobody": (
        lambda: append_owner_reference(pod()),
        "give owner, as in child = fnop.append_owner_reference(child, body)",
    ),
    "no owner": (
        lambda: remove_owner_reference(pod()),
        "give owner, as in child = fnop.remove_owner_reference(child, body)",
    ),
    "a name of nobody": (
        lambda: harmonize_naming(pod()),
        "give name, as in child = fnop.harmonize_naming(child, name)",
    ),
    "a namespace of nobody": (
        lambda: adjust_namespace(pod()),
        "give namespace, as in child = fnop.adjust_namespace(child, namespace)",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_is_known_from_elsewhere_is_told_what_to_write(name: str) -> None:
    form, sentence = FORMS[name]
    text = said(form)
    assert sentence in text
    assert "argument" not in text


KIND = "fnopexamples"
SECRET = "s3cr3t"
BODY = {"kind": "Secret", "data": {"password": SECRET}}
# Values of the wrong form in each argument that takes a whole body.
LEAKS: dict[str, Callable[[], Any]] = {
    "call a text": lambda: call(called, SECRET),
    "call a body": lambda: call(called, BODY),
    "call with what is not JSON": lambda: call(called, of=[{SECRET}]),
    "call with a key": lambda: call(called, of={("a", SECRET): 1}),
    "call with a large number": lambda: call(called, of=7**4000),
    "remember": lambda: remember(BODY),
    "remember a text": lambda: remember(SECRET),
    "patch": lambda: patch(HANDLED, BODY),
    "patch a text": lambda: patch(HANDLED, SECRET),
    "get": lambda: get("secrets", BODY),
    "list": lambda: listed("secrets", namespace=BODY),
    "get by name": lambda: get("secrets", name=BODY),
    "delete": lambda: delete("secrets", BODY),
    "delete by name": lambda: delete("secrets", name="a", propagation=BODY),
    "labels": lambda: patch(metadata=[BODY], labels={"a": "b"}),
    "labels that are a text": lambda: patch(metadata={"labels": SECRET}),
    "annotations twice": lambda: patch(
        metadata={"annotations": {"a": SECRET}}, annotations={"a": "b"}
    ),
    "annotation": lambda: patch(metadata={"annotations": {"a": BODY}}),
    "event of a type": lambda: any_event("Made", "it is there", type=BODY),
    "again": lambda: fnop.again(5, because=BODY),  # type: ignore[arg-type]
    "sleep": lambda: fnop.sleep(BODY),  # type: ignore[arg-type]
    "random": lambda: fnop.random(BODY),  # type: ignore[arg-type]
    "rate": lambda: fnop.rate(BODY),  # type: ignore[arg-type]
    "labels of the owner": lambda: adopt(pod(), labels=BODY),
    "child after": lambda: fnop.child(pod(), after=[BODY]),  # type: ignore[list-item]
    "condition": lambda: fnop.condition("Ready", BODY),  # type: ignore[arg-type]
    "JSON patch": lambda: operated([{"op": "add", "value": SECRET}], {}),
    "JSON patch of no path": lambda: operated([{"path": "/a", "value": SECRET}], {}),
}


@pytest.mark.parametrize("name", LEAKS)
def test_no_error_quotes_what_may_be_a_secret(name: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        LEAKS[name]()
    text = str(caught.value)
    assert SECRET not in text
    assert str(7**4000)[:20] not in text


async def awaits_a_body(spec: Any, **_: Any) -> None:
    await spec


def answers_a_body(spec: Any, **_: Any) -> Any:
    return spec


@pytest.mark.parametrize(
    ("handler", "options"),
    [
        (awaits_a_body, {}),
        (called, {"when": answers_a_body}),
        (called, {"when": lambda spec, **_: spec["password"]}),
    ],
)
def test_no_log_line_quotes_what_may_be_a_secret(
    handler: Callable[..., Any], options: dict[str, Any]
) -> None:
    registry = Registry()
    fnop.on.create(KIND, registry=registry, retries=1, **options)(handler)
    run = Scenario(registry, [example("a", password=SECRET)])
    run.settle()
    assert any(say.level in ("error", "warning") for say in run.said)
    assert not any(SECRET in f"{say.message} {say.error}" for say in run.said)
