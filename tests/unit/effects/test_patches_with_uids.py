"""Patches that name a uid change that object alone; each part has its endpoint."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.in_flight import assert_split, assert_uid_decides
from tests.simulations import Scenario, example

KIND = "fnopexamples"


def config(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_uid_decides_which_object_is_changed() -> None:
    assert_uid_decides(Scenario([]).request)


def test_a_json_patch_goes_to_the_endpoint_of_each_part() -> None:
    assert_split(Scenario([]).request)


@pytest.mark.parametrize("form", ["merge", "json", "scale", "plan"])
def test_a_handler_is_told_that_it_is_another_object(form: str) -> None:
    registry, seen = Registry(), []
    changes: dict[str, dict[str, Any]] = {
        "json": {"json": [{"op": "add", "path": "/data/a", "value": "2"}]},
        "scale": {"subresource": "scale", "spec": {"replicas": 3}},
    }
    change = changes.get(form, {"data": {"a": "2"}})
    kind = "deployments.apps" if form == "scale" else "configmaps"
    target = fnop.target(kind, name="other", namespace="default", uid="u-1")

    if form == "plan":

        @fnop.on.create(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
        def planned(**_: Any) -> Any:
            return [fnop.patch(target, **change)]

    else:

        @fnop.on.create(KIND, registry=registry)
        async def awaited(**_: Any) -> None:
            try:
                await fnop.patch(target, **change)
            except fnop.Refused as refused:
                seen.append((refused.status, str(refused)))

    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "other", "namespace": "default"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": template,
        },
    }
    story = Scenario(registry, [example(), config("other", a="1"), deployment])
    assert story.settle()
    found = story.get("configmaps", "other")
    assert found is not None
    assert found["data"] == {"a": "1"}
    scaled = story.get("deployments.apps", "other")
    assert scaled is not None
    assert scaled["spec"]["replicas"] == 0
    if form == "plan":
        assert any("u-1" in line for line in story.lines), story.lines
    else:
        ((status, text),) = seen
        assert status == 409
        assert "u-1" in text


def test_without_a_uid_a_patch_is_sent_as_it_is() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def change(**_: Any) -> None:
        target = fnop.target("configmaps", name="other", namespace="default")
        await fnop.patch(target, data={"a": "2"})

    story = Scenario(registry, [example(), config("other", a="1")])
    assert story.settle()
    (sent,) = [
        each for each in story.requests if each.path.endswith("/configmaps/other")
    ]
    assert sent.body == {"data": {"a": "2"}}


def test_the_handled_object_is_not_read_before_it_is_patched_by_its_uid() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="change")
    async def change(name: str, uid: str, **_: Any) -> str:
        target = fnop.target(KIND, name=name, uid=uid)
        view = await fnop.patch(target, status={"phase": "New"})
        return str(view.status["phase"])

    story = Scenario(registry, [example()])
    assert story.settle()
    sent = [each for each in story.requests if each.path.endswith("/example-1")]
    assert not [each for each in sent if each.method == "GET"]
    found = story.get(KIND)
    assert found is not None
    assert found["status"]["change"] == "New"


def test_an_awaited_json_patch_of_the_own_status_is_kept() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="change")
    async def change(**_: Any) -> Any:
        steps: list[dict[str, Any]] = [
            {"op": "add", "path": "/status", "value": {"phase": "New"}},
            {"op": "add", "path": "/spec/size", "value": 1},
        ]
        view = await fnop.patch(json=steps)
        return {"seen": view.status["phase"], "size": view.spec["size"]}

    story = Scenario(registry, [example()])
    assert story.settle()
    found = story.get(KIND)
    assert found is not None
    assert found["status"]["phase"] == "New"
    assert found["status"]["change"] == {"seen": "New", "size": 1}


def test_a_json_patch_that_moves_between_the_endpoints_is_refused() -> None:
    registry, seen = Registry(), []

    @fnop.on.create(KIND, registry=registry)
    async def change(**_: Any) -> None:
        step = {"op": "move", "from": "/spec/size", "path": "/status/size"}
        with pytest.raises(fnop.Refused) as refused:
            await fnop.patch(json=[step])
        seen.append(str(refused.value))

    story = Scenario(registry, [example(size=1)])
    assert story.settle()
    assert "give the value itself" in seen[0]
    found = story.get(KIND)
    assert found is not None
    assert found["spec"] == {"size": 1}
