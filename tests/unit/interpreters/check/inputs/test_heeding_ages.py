"""Inputs that matter with time alone, or to one object alone: they are heeded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import fnop
from bench.bugs.crds import crd, custom
from fnop import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import apply

XS = "xs.example.com"
SCRIPT = (
    apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "labels": {"is": "slot"}},
            "data": {"of": "z"},
        }
    ),
    apply(custom(mode="lax", ttl=3600)),
)


def heeds(registry: Registry) -> list[str]:
    explorer = Explorer(Case(Program(registry.handlers), [crd()], SCRIPT))
    found = explorer.confirmed(explorer.benign)
    return [each.message for each in found if each.property == "heeds"]


def timed(decide: Callable[..., Any]) -> Registry:
    registry = Registry()
    fnop.timer(XS, interval=600, id="look", registry=registry)(decide)
    return registry


def is_old(meta: Any, now: datetime, seconds: int) -> bool:
    age = now - datetime.fromisoformat(meta.creation_timestamp)
    return age > timedelta(seconds=seconds)


def test_what_matters_at_an_age_is_heeded() -> None:
    def expire(spec: fnop.Spec, meta: fnop.Meta, now: datetime, **_: Any) -> Any:
        mode = spec["mode"]
        if is_old(meta, now, 4000) and mode == "strict":
            return fnop.patch(status={"phase": "Expired"})
        return None

    assert heeds(timed(expire)) == []


def test_what_matters_at_no_age_is_told() -> None:
    def expire(spec: fnop.Spec, meta: fnop.Meta, now: datetime, **_: Any) -> Any:
        if is_old(meta, now, spec["ttl"]):
            pass  # what was to be done is forgotten
        return fnop.patch(status={"mode": spec["mode"]})

    (found,) = heeds(timed(expire))
    assert "look looks at spec.ttl" in found


@pytest.mark.parametrize("key", ["now", "runtime"])
def test_what_matters_after_a_wait_is_heeded(key: str) -> None:
    registry = Registry()

    @fnop.on.create(XS, id="wait", registry=registry)
    def wait(spec: fnop.Spec, meta: fnop.Meta, **given: Any) -> fnop.Effect:
        mode, now = spec["mode"], given["now"]
        has_waited = {
            "now": is_old(meta, now, 25),
            "runtime": given["runtime"] > timedelta(seconds=25),
        }
        if not has_waited[key]:
            raise fnop.TemporaryError("not yet", delay=10**6)
        return fnop.patch(status={"mode": mode})

    assert heeds(registry) == []


def test_an_answer_that_matters_at_an_age_is_heeded() -> None:
    async def sweep(name: str, now: datetime, **_: Any) -> None:
        for each in await fnop.list("configmaps"):
            if is_old(each.metadata, now, 4000) and each["data"].get("of") == name:
                await fnop.delete(each)

    assert heeds(timed(sweep)) == []


def test_an_answer_that_matters_where_it_names_the_object_is_heeded() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="take", registry=registry)
    async def take(name: str, **_: Any) -> fnop.Effect:
        found = await fnop.list("configmaps", labels={"is": "slot"})
        mine = [each for each in found if each["data"]["of"] == name]
        return fnop.patch(status={"slot": mine[0].name if mine else "none"})

    assert heeds(registry) == []
