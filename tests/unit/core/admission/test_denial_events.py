"""Denials as Kubernetes Events, if they are requested."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

import fnop
from fnop.core.admission.decisions import denied_writes
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.objects.report.events import REPORTS_MAX
from fnop.core.seam.inputs import WriteDenied
from fnop.core.seam.wire import input_from_wire, input_to_wire
from fnop.effects.values import thaw_json
from fnop.testing import Simulation, review

TOLD = Settings(admission_events=True)


def config_map(name: str | None = "a", **data: str) -> dict[str, Any]:
    meta = {"generateName": "made-"} if name is None else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @fnop.on.validate("configmaps", id="judge", registry=registry)
    def judge(body: fnop.Body, **_: Any) -> None:
        if why := (body.get("data") or {}).get("bad"):
            raise fnop.Denied(why)

    return registry


def denied(sim: Simulation, write: dict[str, Any], times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(AssertionError):
            sim.apply(write)
        sim.settle()


def events(sim: Simulation) -> list[Any]:
    found: list[Any] = thaw_json(sim.objects("events"))
    return found


def test_a_denied_update_is_an_event_about_the_object_and_counts(
    registry: Registry,
) -> None:
    sim = Simulation(registry, objects=[config_map()], settings=TOLD)
    sim.settle()
    denied(sim, config_map(bad="no"), times=2)
    denied(sim, config_map(bad="never"))
    first, second = events(sim)
    assert (first["type"], first["reason"]) == ("Warning", "Denied")
    told = r"UPDATE by admin is denied by judge \(test_denial_events\.py:\d+\): no"
    assert re.fullmatch(told, first["message"])
    about = first["involvedObject"]
    assert (about["kind"], about["name"]) == ("ConfigMap", "a")
    assert about["uid"] == sim["configmaps/a"]["metadata"]["uid"]
    assert (first["count"], second["count"]) == (2, 1)
    assert second["message"].endswith("): never")


def test_a_followed_object_has_its_events_in_its_record(registry: Registry) -> None:
    fnop.on.update("configmaps", id="updated", registry=registry)(lambda **_: None)
    sim = Simulation(registry, objects=[config_map()], settings=TOLD)
    sim.settle()
    denied(sim, config_map(bad="no"), times=2)
    (found,) = events(sim)
    assert found["count"] == 2


def test_a_denied_creation_is_told_and_has_no_uid(registry: Registry) -> None:
    sim = Simulation(registry, settings=TOLD)
    denied(sim, config_map(bad="no"), times=2)
    denied(sim, config_map(None, bad="no"))
    assert [each["involvedObject"] for each in events(sim)] == [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "default"}
        for name in ("a", "made-")
    ]
    assert all("CREATE by" in each["message"] for each in events(sim))
    assert [each["count"] for each in events(sim)] == [2, 1]


def test_objects_that_are_not_there_share_one_limit(registry: Registry) -> None:
    sim = Simulation(registry, settings=TOLD)
    for number in range(REPORTS_MAX + 5):
        denied(sim, config_map(f"n{number}", bad="no"))
    assert len(events(sim)) == REPORTS_MAX
    assert "a Kubernetes Event is dropped" in "\n".join(sim.log)


def test_nobody_is_told_unasked_or_of_a_dry_run(registry: Registry) -> None:
    sim = Simulation(registry)
    denied(sim, config_map(bad="no"))
    assert events(sim) == []
    for is_dry in (True, False):
        decision = review(
            registry, None, config_map(bad="no"), dry_run=is_dry, settings=TOLD
        )
        assert bool([*denied_writes(decision, TOLD)]) is not is_dry
        assert [*denied_writes(decision, Settings())] == []


def test_an_event_about_an_event_is_none(registry: Registry) -> None:
    @fnop.on.validate("events", registry=registry)
    def never(**_: Any) -> None:
        raise fnop.Denied("no")

    sim = Simulation(registry, settings=TOLD)
    event = {
        **{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    }
    denied(sim, event)
    assert events(sim) == []


@given(st.builds(WriteDenied, *[st.text()] * 6))
def test_the_input_is_recorded_and_read_again(given_input: WriteDenied) -> None:
    assert input_from_wire(input_to_wire(given_input)) == given_input
