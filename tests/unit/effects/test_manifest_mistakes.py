"""Mistakes in manifests and patches: labels that are not text, generateName."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.mistakes import config, pod, said
from tests.simulations import Scenario, example

KIND = "fnopexamples"


MARKED: dict[str, Callable[[Any], Any]] = {
    "labels": lambda value: fnop.patch(labels={"n": value}),
    "annotations": lambda value: fnop.patch(annotations={"n": value}),
    "metadata": lambda value: fnop.patch(metadata={"annotations": {"n": value}}),
    "of another": lambda value: fnop.patch(pod(), labels={"n": value}),
    "created": lambda value: fnop.create(marked(value)),
    "applied": lambda value: fnop.apply([marked(value)]),
    "adopted": lambda value: fnop.adopt(marked(value)),
}


def marked(value: Any) -> dict[str, Any]:
    return {**pod(), "metadata": {"name": "a", "labels": {"n": value}}}


@pytest.mark.parametrize("value", [5, True, 1.5, {"a": "b"}])
@pytest.mark.parametrize("name", MARKED)
def test_labels_and_annotations_are_texts(name: str, value: Any) -> None:
    text = said(lambda: MARKED[name](value))
    shown = "dict" if isinstance(value, dict) else value
    assert text.endswith(f"'n' must be a text, not {shown}; write str(...)")
    assert MARKED[name]("5")
    assert MARKED[name](None), "it is removed, or left out"


def test_what_a_patch_writes_of_labels_is_texts() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(patch: Any, **_: Any) -> None:
        patch.metadata["annotations"] = {"x": 1}

    run = Scenario(registry, [example()])
    run.settle()
    (line,) = [say.message for say in run.said if say.level == "error"]
    assert "patch: the annotation 'x' must be a text, not 1; write str(...)" in line
    assert "a mapping of texts, not str" in said(
        lambda: fnop.patch(metadata={"labels": "a"})
    )


def test_a_refusal_does_not_repeat_the_whole_object() -> None:
    """Kubernetes quotes it if a patch makes an object that cannot be decoded."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, retries=1)
    async def create(**_: Any) -> None:
        steps = [{"op": "add", "path": "/metadata/labels", "value": {"n": 5}}]
        await fnop.patch(json=steps)

    run = Scenario(registry, [example(text='a "long" one ' * 300)])
    run.settle()
    (line,) = [say.message for say in run.said if say.level == "error"]
    assert 'Invalid value: "{' in line
    assert len(line) < 500


def test_an_object_that_the_server_would_name_is_not_created() -> None:
    """A repeated handler could not find it, and would make another one."""
    registry = Registry()
    unnamed = {**config(""), "metadata": {"generateName": "x-"}}

    @fnop.on.create(KIND, registry=registry, retries=3, backoff=1)
    async def create(**_: Any) -> None:
        await fnop.create(unnamed)

    run = Scenario(registry, [example()])
    run.settle()
    assert run.objects("configmaps") == []
    assert any("generateName would make a new object" in line for line in run.lines)
    for build in (fnop.create, fnop.apply):
        assert said(partial(build, unnamed)).endswith("the same at every run")
        assert said(partial(build, {**pod(), "metadata": {}})).startswith(
            f"{build.__name__.title()}: the manifest has no metadata.name"
        )
    both = {**pod(), "metadata": {"name": "a", "generateName": "x-"}}
    assert fnop.create(both).manifest == both, "the name counts"
