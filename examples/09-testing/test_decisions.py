"""One decision at a time: what does a handler do about an object?"""

from typing import Any

import pytest
from example import archive, claim, keep, resize

import fnop
from fnop.testing import plan_of


def volume(phase: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "object-data", "namespace": "default"},
        "status": {"phase": phase},
    }


def test_an_object_gets_a_volume() -> None:
    plan = plan_of(claim, {"spec": {"size": "2Ti"}})
    assert [effect.kind for effect in plan] == ["Adopt", "Event"]
    assert plan[0].child["spec"]["resources"]["requests"] == {"storage": "2048Gi"}
    assert plan.result == {"volume": "object-data"}


@pytest.mark.parametrize("size", ["", "Gi", "0Gi", "10", "-1Gi", "1Mi"])
def test_a_bad_size_is_refused_for_good(size: str) -> None:
    plan = plan_of(claim, {"spec": {"size": size}})
    assert plan.failed("spec.size must be like 1Gi or 2Ti")
    assert list(plan) == []


def test_it_waits_for_its_secret() -> None:
    asked = fnop.get("secrets", name="key")
    body = {"spec": {"size": "1Gi", "secret": "key"}}
    assert plan_of(claim, body, answers={asked: None}).retries_after == 5
    assert plan_of(claim, body, answers={asked: {"kind": "Secret"}}).succeeded


def test_a_volume_grows_once_it_is_bound() -> None:
    small, big = {"spec": {"size": "1Gi"}}, {"spec": {"size": "2Gi"}}
    plan = plan_of(resize, big, old=small, answers=[volume("Pending")])
    assert plan.retries_after == 10
    plan = plan_of(resize, big, old=small, answers=[volume("Bound")])
    assert [effect.kind for effect in plan] == ["Get", "Patch"]
    plan = plan_of(resize, small, old=big, answers=[volume("Bound")])
    assert plan.failed("a volume of 2Gi cannot become one of 1Gi")


def test_the_archive_is_told_who_asks() -> None:
    body = {"metadata": {"uid": "u-1"}, "spec": {"archived": True}}
    asked = fnop.call(archive, volume="object-data", token="u-1")
    plan = plan_of(keep, body, answers={asked: "shelf 7"})
    assert [line.message for line in plan.lines] == ["object is kept at shelf 7"]
