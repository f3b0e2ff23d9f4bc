"""`fnop replay --shadow` asks admission handlers about the writes of a recording."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import fnop
from fnop.adapters.recordings.replay_report import shadow_lines, sorts_of
from fnop.core.admission.configurations import NAME_LABEL
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.shadow.attempts import Shadow
from fnop.interpreters.simulation.scenario import create
from tests.histories import History, config
from tests.simulations import example

KIND = "fnopexamples"


def serving(registry: Registry) -> Registry:
    @fnop.on.create(KIND, registry=registry, id="counted")
    @fnop.on.update(KIND, registry=registry, id="counted")
    def counted(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> None:
        patch.status["size"] = spec["size"]

    return registry


def asked(now: Registry, *objects: dict[str, Any]) -> tuple[History, Registry]:
    return History(serving(Registry()), *objects), serving(now)


def answers(found: Shadow) -> list[tuple[str, str, str, str]]:
    return [(e.answer, e.handler.id, e.operation, e.label) for e in found.reviewed]


def small(registry: Registry, **options: Any) -> None:
    @fnop.on.validate(KIND, id="small", registry=registry, **options)
    def small(spec: fnop.Spec, **_: Any) -> None:
        if spec["size"] > 9:
            raise fnop.Denied("it is too large", field="spec.size")


def test_writes_of_others_that_would_be_denied_are_told() -> None:
    now = Registry()
    small(now)
    history, now = asked(now, example("a", size=1))
    history.writes("kubectl", KIND, "a", spec={"size": 5})
    history.writes("kubectl", KIND, "a", spec={"size": 10})
    history.writes("kubectl", KIND, "a", spec={"other": 11})
    found = history.recording.shadow(now)
    label = f"{KIND}/default/a"
    # The third one is wrong as before, and a warning is all.
    assert answers(found) == [("denied", "small", "UPDATE", label)]
    assert found.writes == 3
    assert {"any", "deny"} <= sorts_of(found)
    text = "\n".join(shadow_lines(found))
    assert "of 3 recorded writes 1 would be denied, and 0 changed" in text
    assert "1 write denied by small (test_shadow_writes.py:" in text
    assert f"UPDATE of {label}" in text


def test_creations_deletions_and_changes_are_asked_about() -> None:
    now = Registry()

    @fnop.on.validate(KIND, id="kept", operations=["DELETE"], registry=now)
    def kept(**_: Any) -> None:
        raise fnop.Denied("it is kept")

    @fnop.on.mutate(KIND, id="labelled", operations=["CREATE"], registry=now)
    def labelled(patch: fnop.Patch, labels: Any, **_: Any) -> None:
        if "team" not in labels:
            patch.metadata.labels["team"] = "none"

    history, now = asked(now, example("a", size=1))
    create(history.run, example("b", size=1))
    assert history.run.settle()
    history.deletes(KIND, "a")
    found = history.recording.shadow(now)
    assert answers(found) == [
        ("changed", "labelled", "CREATE", f"{KIND}/default/b"),
        ("denied", "kept", "DELETE", f"{KIND}/default/a"),
    ]
    assert found.reviewed[0].fields == ("metadata.labels.team",)


def test_the_operators_own_writes_are_spared_unless_it_asks_for_them() -> None:
    def counting(**options: Any) -> Shadow:
        now = Registry()

        @fnop.on.validate(
            KIND, id="never", subresource="*", registry=now, ratcheting=False, **options
        )
        def never(**_: Any) -> None:
            raise fnop.Denied("no")

        history, now = asked(now, example("a", size=1))
        return history.recording.shadow(now)

    assert counting().reviewed == []
    denied = counting(own_writes=True).reviewed
    assert denied
    assert {each.operation for each in denied} == {"UPDATE"}


@pytest.mark.parametrize(
    ("options", "names", "untold"),
    [
        ({}, {"a"}, 1),  # servers before 1.21 ask about kube-system
        ({"ignore_failures": True}, {"a", "s"}, 0),
        ({"object_selector": {"watched": "yes"}, "ignore_failures": True}, {"s"}, 0),
        ({"namespace_selector": {NAME_LABEL: "kube-system"}}, {"s"}, 0),
        ({"namespace_selector": {"tier": "prod"}}, set(), 2),
        ({"match_conditions": {"few": "object.spec.size < 99"}}, set(), 2),
    ],
)
def test_who_the_api_server_would_not_ask_is_not_asked(
    options: dict[str, Any], names: set[str], untold: int
) -> None:
    now = Registry()
    small(now, **options)
    system = example("s", size=10)
    system["metadata"] |= {"namespace": "kube-system", "labels": {"watched": "yes"}}
    history, now = asked(now, example("z", size=1))
    for each in (example("a", size=10), system):
        create(history.run, each)
    assert history.run.settle()
    found = history.recording.shadow(now)
    told = {label.rpartition("/")[2] for *_, label in answers(found)}
    assert told == names
    assert sum(found.unreviewed.values()) == untold


def test_what_depends_on_more_than_the_write_is_not_told() -> None:
    now = Registry()

    @fnop.index(KIND, id="teams", registry=now)
    def teams(name: str, **_: Any) -> dict[str, str]:
        return {name: name}

    @fnop.on.validate(KIND, id="reads", registry=now)
    async def reads(name: str, **_: Any) -> None:
        await fnop.get("configmaps", name=name)

    @fnop.on.validate(KIND, id="indexed", registry=now)
    def indexed(teams: Any = fnop.INDEX, **_: Any) -> None:
        raise fnop.Denied(str(len(teams)))

    history, now = asked(now, example("a", size=1))
    history.writes("kubectl", KIND, "a", spec={"size": 5})
    found = history.recording.shadow(now)
    assert found.reviewed == []
    assert sorted(found.unreviewed.values()) == [1, 1]


def test_what_compares_a_secret_cannot_be_told() -> None:
    was, now = Registry(), Registry()
    for registry in (was, now):

        @fnop.on.event("secrets", id="seen", registry=registry)
        def seen(**_: Any) -> None:
            pass

    @fnop.on.validate("secrets", id="weak", ratcheting=False, registry=now)
    def weak(body: fnop.Body, **_: Any) -> None:
        if base64.b64decode(body["data"]["password"]).decode() != "hunter2":
            raise fnop.Denied("that is no good password")

    secret = {**config("s"), "kind": "Secret", "data": {"password": "c2VjcmV0LTE="}}
    history = History(was, secret)
    history.writes("kubectl", "secrets", "s", data={"password": "aHVudGVyMg=="})
    found = history.recording.shadow(now)
    assert found.reviewed == []
    assert [*found.unreviewed] == [
        "it depends on secrets, and the recording holds tokens in their place"
    ]
