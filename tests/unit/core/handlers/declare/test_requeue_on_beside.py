"""Calls by an index next to other handlers, other processes, and other changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.traces import Wrote
from fnop.core.values.now import Now
from fnop.testing import Simulation
from tests.simulations import DEFINITION, ROOT, example
from tests.stories import Story

KIND = "fnopexamples"


def source(name: str, **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def texts_in(registry: Registry) -> Callable[..., Any]:
    """An index of the texts of ConfigMaps by their names."""

    @fnop.index("configmaps", registry=registry)
    def texts(name: str, body: Any, **_: Any) -> Any:
        data = body.get("data", {})
        return {name: data["text"]} if "text" in data else {}

    return texts


def template_of(spec: Any, **_: Any) -> Any:
    return spec["template"]


class Beside:
    """A handler that copies the text of its template, next to one that may fail."""

    def __init__(self, *, retries: int | None = None) -> None:
        self.registry, self.calls = Registry(), list[str]()
        self.fails: dict[str, BaseException] = {}
        texts = texts_in(self.registry)
        again = {texts: template_of}

        @fnop.on.create(KIND, registry=self.registry, id="copy")
        @fnop.on.update(
            KIND, registry=self.registry, id="copy", requeue_on=again, retries=retries
        )
        def copy(spec: Any, retry: int, texts: Any = fnop.INDEX, **_: Any) -> Any:
            text = "".join(texts.get(spec["template"], ()))
            self.calls.append(f"{text} {retry}")
            if "copy" in self.fails:
                raise self.fails["copy"]
            return {"text": text}

        @fnop.on.update(KIND, registry=self.registry)
        def other(**_: Any) -> None:
            if "other" in self.fails:
                raise self.fails.pop("other")

    def run(self) -> Simulation:
        objects = [example("one", template="a", size=1), source("a", text="x")]
        sim = Simulation(self.registry, crds=DEFINITION, objects=objects).settle()
        assert self.news() == ["x 0"]
        return sim

    def news(self) -> list[str]:
        found, self.calls = self.calls, []
        return found


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_change_after_the_call_of_a_change_that_is_not_over(
    restarts: bool, fails: bool
) -> None:
    """Another handler of that change is tried again later."""
    beside = Beside()
    sim = beside.run()
    beside.fails["other"] = fnop.TemporaryError("not now", delay=100)
    if fails:
        beside.fails["copy"] = fnop.PermanentError("never")
    sim.edit("fnopexamples/one", spec={"size": 2}).wait(5)
    assert beside.news() == ["x 0"]
    beside.fails.pop("copy", None)
    sim.edit("configmaps/a", data={"text": "y"})
    if restarts:
        sim.restart()
    sim.settle()
    assert set(beside.news()) == {"y 0"}
    assert sim["fnopexamples/one"].status["copy"] == {"text": "y"}
    sim.restart().settle()
    assert beside.news() == []


@pytest.mark.parametrize("retries", [None, 3])
def test_attempts_survive_an_orderly_stop(retries: int | None) -> None:
    beside = Beside(retries=retries or 5)
    sim = beside.run()
    sim.stop()
    beside.fails["copy"] = fnop.TemporaryError("not now", delay=100)
    sim.edit("configmaps/a", data={"text": "y"})
    sim.restart().wait(2)
    sim.stop()
    assert beside.news() == ["y 0"]
    sim.restart().wait(90)
    assert beside.news() == []
    sim.wait(1000)
    assert beside.news() == [f"y {n}" for n in range(1, retries or 5)]


def test_a_value_that_moves_to_another_key_is_a_change() -> None:
    registry, calls = Registry(), list[Any]()
    texts, keys = texts_in(registry), ["a", "b"]

    @fnop.on.update(KIND, registry=registry, requeue_on={texts: lambda **_: keys})
    def look(texts: Any = fnop.INDEX, **_: Any) -> None:
        calls.append(["".join(texts.get(key, ())) for key in keys])

    objects = [example("one"), source("a", text="x"), source("b")]
    sim = Simulation(registry, crds=DEFINITION, objects=objects).settle()
    sim.stop()
    sim.edit("configmaps/a", data={"text": None})
    sim.edit("configmaps/b", data={"text": "x"})
    sim.restart().settle()
    assert calls == [["", "x"]]


def test_one_and_true_are_different_values() -> None:
    registry, calls = Registry(), list[Any]()

    @fnop.index("configmaps", registry=registry)
    def flags(name: str, data: Any = None, *, body: Any, **_: Any) -> Any:
        return {name: json.loads(body["data"]["flag"])}

    @fnop.on.update(KIND, registry=registry, requeue_on={flags: lambda **_: "a"})
    def look(flags: Any = fnop.INDEX, **_: Any) -> None:
        calls.extend(flags["a"])

    run = Story(registry, [example("one"), source("a", flag="1")])
    assert run.settle()
    for flag in ("true", "1", "1.0"):
        run.edit("configmaps", "a", data={"flag": flag})
        assert run.settle()
    assert list(map(repr, calls)) == ["True", "1"]


OF_A_SET = """
import fnop, sys
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.traces import Wrote
from fnop.core.values.now import Now
from tests.unit.core.handlers.declare.test_requeue_on_beside import *
registry = Registry()
texts = texts_in(registry)
@fnop.on.update(KIND, registry=registry, requeue_on={texts: lambda **_: set("abcdef")})
def look(**_): pass
objects = [example("one"), *(source(each, text=each) for each in "abcdef")]
sim = Simulation(registry, crds=DEFINITION, objects=objects).settle()
print(sorted(value for key, value in sim["fnopexamples/one"].annotations.items()))
print(sim["fnopexamples/one"].status["fnop.dev/default"].partition("uid")[0])
"""


def test_a_set_of_keys_has_the_same_digest_in_each_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", OF_A_SET],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
    assert "/@index/texts/" in found.pop()


@pytest.mark.parametrize("what", ["result", "source"])
def test_a_loop_by_an_index_is_slowed_down(what: str) -> None:
    registry, calls = Registry(), list[int]()

    @fnop.index(KIND if what == "result" else "configmaps", registry=registry)
    def numbers(name: str, body: Any, **_: Any) -> Any:
        if what == "result":
            return {name: body.get("status", {}).get("count", {}).get("n", 0)}
        return {name: int(body["data"]["n"])} if "n" in body.get("data", {}) else {}

    @fnop.on.update(
        KIND, registry=registry, id="count", requeue_on={numbers: lambda **_: "one"}
    )
    async def count(numbers: Any = fnop.INDEX, **_: Any) -> Any:
        calls.append(numbers["one"][0])
        if what == "result":
            return {"n": calls[-1] + 1}
        found = await fnop.get("configmaps", name="one")
        await fnop.patch(found, data={"n": str(calls[-1] + 1)})
        return None

    objects = [example("one", size=1), source("one", n="0")]
    sim = Simulation(registry, crds=DEFINITION, objects=objects).settle()
    sim.edit("fnopexamples/one", spec={"size": 2})
    if what == "source":
        sim.edit("configmaps/one", data={"n": "5"})
    sim.wait(600)
    assert 10 < len(calls) < 40
    (warning,) = (each for each in sim.log if "again and again" in each)
    assert "count@numbers is called for the index numbers" in warning


def test_the_result_of_a_handler_whose_part_has_failed_is_not_stored() -> None:
    registry = Registry()
    texts = texts_in(registry)

    @fnop.on.update(
        KIND, registry=registry, id="build", requeue_on={texts: template_of}
    )
    def build(**_: Any) -> Any:
        @fnop.subhandler(id="texts")
        def part(**_: Any) -> None:
            raise fnop.PermanentError("no")

        return {"whole": True}

    run = Story(registry, [example("one", template="a"), source("a", text="x")])
    assert run.settle()
    run.edit("configmaps", "a", data={"text": "y"})
    assert run.settle()
    assert run.status("one") == {}


def test_a_refused_result_fails_the_call_by_the_index() -> None:
    registry, calls = Registry(), list[int]()
    texts = texts_in(registry)
    schema = json.loads(json.dumps(DEFINITION))
    version = schema["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "copy": {
                "type": "object",
                "maxProperties": 1,
                "additionalProperties": {"type": "integer"},
            }
        },
    }

    @fnop.on.update(
        KIND, registry=registry, id="copy", requeue_on={texts: template_of}, retries=2
    )
    def copy(retry: int, **_: Any) -> Any:
        calls.append(retry)
        return {"a": 1, "b": 2}

    objects = [example("one", template="a"), source("a", text="x")]
    sim = Simulation(registry, crds=schema, objects=objects).settle()
    sim.edit("configmaps/a", data={"text": "y"}).settle()
    assert calls == [0, 1]
    (line, *_) = (each for each in sim.errors if "refused" in each)
    assert "copy@texts" in line
    assert not any("copy@texts succeeded" in each for each in sim.log)


class Writers:
    """An observer of the handlers whose changes are in the operator's writes."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        for each in commands:
            if isinstance(each, Wrote):
                self.names += [name for name, _ in each.fields]


def test_a_recording_names_the_call_that_has_made_the_result() -> None:
    beside, writers = Beside(), Writers()
    objects = [example("one", template="a"), source("a", text="x")]
    settings = Settings(traces=True)
    run = Story(beside.registry, objects, settings=settings, observers=[writers])
    assert run.settle()
    run.edit("configmaps", "a", data={"text": "y"})
    assert run.settle()
    assert writers.names == ["copy", "copy@texts"]


@dataclass(frozen=True)
class Spec:
    template: str


def test_the_function_of_keys_takes_typed_arguments() -> None:
    registry, calls = Registry(), list[str]()
    texts = texts_in(registry)

    def typed(spec: Spec, **_: Any) -> str:
        return spec.template

    @fnop.on.update(KIND, registry=registry, requeue_on={texts: typed})
    def look(name: str, **_: Any) -> None:
        calls.append(name)

    run = Story(registry, [example("one", template="a"), source("a", text="x")])
    assert run.settle()
    run.edit("configmaps", "a", data={"text": "y"})
    assert run.settle()
    assert calls == ["one"]


def test_the_keys_stay_while_their_function_fails() -> None:
    registry, calls, fails = Registry(), list[str](), list[bool]()
    texts = texts_in(registry)

    def keys(spec: Any, **_: Any) -> Any:
        if fails:
            raise ValueError("no")
        return spec["template"]

    @fnop.on.field(KIND, field="spec.size", registry=registry, requeue_on={texts: keys})
    def look(texts: Any = fnop.INDEX, **_: Any) -> None:
        calls.append("".join(texts.get("a", ())))

    objects = [example("one", template="a", size=1), source("a", text="x")]
    run = Story(registry, objects)
    assert run.settle()
    fails.append(True)
    run.edit(KIND, "one", spec={"other": 1})
    assert run.settle()
    assert calls == ["x"]
    run.edit("configmaps", "a", data={"text": "y"})
    assert run.settle()
    assert calls == ["x", "y"]


def test_a_filter_may_ask_for_an_index() -> None:
    registry, calls = Registry(), list[str]()
    texts = texts_in(registry)

    def wanted(value: str, texts: Any = fnop.INDEX, **_: Any) -> bool:
        return bool(value) and bool(texts)

    @fnop.on.update(
        KIND,
        registry=registry,
        labels={"tier": wanted},
        requeue_on={texts: template_of},
    )
    def look(name: str, **_: Any) -> None:
        calls.append(name)

    one, two = (example(each, template="a") for each in ("one", "two"))
    one["metadata"]["labels"] = {"tier": "gold"}
    run = Story(registry, [one, two, source("a", text="x")])
    assert run.settle()
    run.edit("configmaps", "a", data={"text": "y"})
    assert run.settle()
    assert calls == ["one"]
    assert run.said_at("error") == []
