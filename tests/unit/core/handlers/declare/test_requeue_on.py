"""Handlers that are called again when entries of an index change (`requeue_on=`)."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import RegistrationError
from fnop.testing import Simulation
from tests.simulations import DEFINITION, example
from tests.stories import Story

KIND = "fnopexamples"


def template(name: str, **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def of_template(spec: Any, namespace: str, **_: Any) -> str | None:
    return f"{namespace}/{spec['template']}" if "template" in spec else None


class Copies:
    """An operator that copies templates, and the text that each object has seen."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.calls: list[tuple[str, str, tuple[Any, ...]]] = []
        self.fails = 0

        @fnop.index("configmaps", registry=self.registry)
        def templates(name: str, namespace: str, body: Any, **_: Any) -> Any:
            return {f"{namespace}/{name}": body.get("data", {}).get("text", "")}

        again = {templates: of_template}

        @fnop.on.create(KIND, registry=self.registry, id="copy")
        @fnop.on.update(KIND, registry=self.registry, id="copy", requeue_on=again)
        def copy(
            name: str,
            spec: Any,
            namespace: str,
            reason: str,
            diff: fnop.Diff,
            templates: Any = fnop.INDEX,
            **_: Any,
        ) -> Any:
            found = templates.get(of_template(spec, namespace), ())
            self.calls.append((f"{reason} {name}", *found, diff if reason else ()))
            if self.fails:
                self.fails -= 1
                raise fnop.TemporaryError("not now", delay=1)
            return {"text": "".join(found)}

    def run(self, *manifests: dict[str, Any]) -> Story:
        story = Story(self.registry, [*manifests])
        assert story.settle()
        return story

    def news(self) -> list[str]:
        """The calls since the last look, as `reason name text`."""
        found = [" ".join(map(str, each[:-1])) for each in self.calls]
        self.calls.clear()
        return sorted(found)


@pytest.fixture
def copies() -> Copies:
    return Copies()


ONE, TWO = example("one", template="a"), example("two", template="b")


def test_the_objects_of_the_entry_are_called_for(copies: Copies) -> None:
    run = copies.run(ONE, TWO, template("a", text="x"), template("b", text="y"))
    assert copies.news() == ["create one x", "create two y"]
    run.edit("configmaps", "a", data={"text": "z"})
    assert run.settle()
    assert [(call[0], call[-1]) for call in copies.calls] == [("update one", ())]
    assert copies.news() == ["update one z"]
    assert run.status("one") == {"copy": {"text": "z"}}


def test_an_entry_that_comes_or_goes_is_a_change(copies: Copies) -> None:
    run = copies.run(ONE, TWO)
    assert copies.news() == ["create one", "create two"]
    run.apply(template("a", text="x")).settle()
    assert copies.news() == ["update one x"]
    run.delete("configmaps", "a")
    assert run.settle()
    assert copies.news() == ["update one"]


def test_the_same_value_is_no_change(copies: Copies) -> None:
    run = copies.run(ONE, template("a", text="x"))
    copies.news()
    run.edit("configmaps", "a", data={"other": "y"})
    run.edit("configmaps", "a", data={"text": "x"})
    assert run.settle()
    assert copies.news() == []


def test_another_key_is_a_change_that_is_handled_once(copies: Copies) -> None:
    run = copies.run(ONE, template("a", text="x"), template("b", text="y"))
    copies.news()
    run.edit(KIND, "one", spec={"template": "b"})
    assert run.settle()
    assert copies.news() == ["update one y"]
    run.edit("configmaps", "a", data={"text": "z"})
    assert run.settle()
    assert copies.news() == [], "it is not the object's template any more"
    run.edit(KIND, "one", spec={"template": None})
    assert run.settle()
    assert copies.news() == ["update one"]


def test_what_changes_while_the_operator_is_down_is_handled(copies: Copies) -> None:
    run = copies.run(ONE, TWO, template("a", text="x"), template("b", text="y"))
    copies.news()
    run.stop()
    run.settle()
    run.edit("configmaps", "a", data={"text": "z"})
    run.crash()
    assert run.settle()
    assert copies.news() == ["update one z"]
    run.crash()
    assert run.settle()
    assert copies.news() == [], "it is stored that it has been handled"


def test_a_change_during_a_failing_attempt_is_not_lost(copies: Copies) -> None:
    run = copies.run(ONE, template("a", text="x"))
    copies.news()
    copies.fails = 1
    run.edit("configmaps", "a", data={"text": "y"})
    run.wait(0.5)
    run.edit("configmaps", "a", data={"text": "z"})
    assert run.settle()
    assert copies.news() == ["update one y", "update one z"]
    assert run.status("one") == {"copy": {"text": "z"}}


def test_a_value_that_goes_back_is_no_change_if_nothing_was_done(
    copies: Copies,
) -> None:
    run = copies.run(ONE, template("a", text="x"))
    copies.news()
    copies.fails = 1
    run.edit("configmaps", "a", data={"text": "y"})
    run.wait(0.5)
    run.edit("configmaps", "a", data={"text": "x"})
    assert run.settle()
    assert copies.news() == ["update one y"]
    assert run.status("one") == {"copy": {"text": "x"}}


@pytest.mark.parametrize("form", ["namespace/name", "pair"])
def test_without_a_function_the_key_is_the_object_s_name(form: str) -> None:
    registry, calls = Registry(), list[str]()

    @fnop.index("configmaps", registry=registry)
    def votes(namespace: str, labels: Any, name: str, **_: Any) -> Any:
        about = labels.get("about", "")
        return {f"{namespace}/{about}" if form != "pair" else (namespace, about): name}

    @fnop.on.update(KIND, registry=registry, requeue_on="votes")
    def count(name: str, namespace: str, votes: Any = fnop.INDEX, **_: Any) -> None:
        key = f"{namespace}/{name}" if form != "pair" else (namespace, name)
        calls.append(f"{name} {len(votes.get(key, ()))}")

    run = Story(registry, [example("one"), example("two")])
    assert run.settle()
    assert calls == []
    for name in ("a", "b"):
        vote = template(name)
        vote["metadata"]["labels"] = {"about": "two"}
        run.apply(vote).settle()
    assert calls == ["two 1", "two 2"]


def test_a_field_handler_is_called_again_too() -> None:
    registry, calls = Registry(), list[Any]()

    @fnop.index("configmaps", registry=registry)
    def texts(namespace: str, name: str, body: Any, **_: Any) -> Any:
        return {f"{namespace}/{name}": body["data"]}

    @fnop.on.field(KIND, field="spec.size", registry=registry, requeue_on=texts)
    def sized(old: Any, new: Any, **_: Any) -> None:
        calls.append((old, new))

    run = Story(registry, [example("one", size=1), template("one", a="b")])
    assert run.settle()
    assert calls == [(None, 1)]
    run.edit("configmaps", "one", data={"a": "c"})
    assert run.settle()
    assert calls == [(None, 1), (1, 1)]
    run.edit(KIND, "one", spec={"size": 2})
    assert run.settle()
    assert calls[2:] == [(1, 2)]


def test_an_index_that_is_new_calls_nobody() -> None:
    """An operator's next release observes an index: what is stored lacks it."""
    old, new, calls = Registry(), Copies(), list[str]()

    @fnop.on.update(KIND, registry=old, id="copy")
    def copy(name: str, **_: Any) -> None:
        calls.append(name)

    run = Story(old, [ONE, template("a", text="x")])
    assert run.settle()
    run.crash(Program(new.registry.handlers))
    assert run.settle()
    assert new.news() == []


def test_values_that_are_no_json_are_refused(copies: Copies) -> None:
    registry = Registry()

    @fnop.index("configmaps", registry=registry)
    def odd(namespace: str, name: str, **_: Any) -> Any:
        return {f"{namespace}/{name}": object()}

    @fnop.on.update(KIND, registry=registry, requeue_on=odd)
    def update(**_: Any) -> None:
        """Nothing."""

    run = Story(registry, [example("one"), template("one")])
    assert run.settle()
    assert any("index odd failed" in line for line in run.said_at("error"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "nobody",
            "names an index that is declared before it, not 'nobody'; there are texts",
        ),
        (len, "names an index that is declared before it"),
        ({"texts": 1}, "maps an index to a function of the object"),
        ({}, "takes one index"),
        ({"texts": lambda other, **_: other}, "other"),
    ],
)
def test_what_is_no_index_is_refused(given: Any, message: str) -> None:
    registry = Registry()

    @fnop.index("configmaps", registry=registry)
    def texts(name: str, **_: Any) -> Any:
        return {name: 1}

    with pytest.raises(RegistrationError, match=message):

        @fnop.on.update(KIND, registry=registry, requeue_on=given)
        def update(**_: Any) -> None:
            """Nothing."""


def profile_kind() -> dict[str, Any]:
    """The definition of a kind that the cluster may have or not."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": free},
    }
    names = {"kind": "Profile", "plural": "profiles", "singular": "profile"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "profiles.fnop.test"},
        "spec": {
            "group": "fnop.test",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


PROFILE = {
    "apiVersion": "fnop.test/v1",
    "kind": "Profile",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"days": 1},
}


class Profiles:
    """An operator that looks into an index of a kind that may not be served yet."""

    def __init__(self) -> None:
        self.registry, self.calls = Registry(), list[str]()

        @fnop.index("profiles.fnop.test", registry=self.registry)
        def profiles(namespace: str, name: str, spec: Any, **_: Any) -> Any:
            return {f"{namespace}/{name}": spec["days"]}

        again = {profiles: of_template}

        @fnop.on.create(KIND, registry=self.registry, id="look")
        @fnop.on.update(KIND, registry=self.registry, id="look", requeue_on=again)
        def look(
            name: str, spec: Any, namespace: str, profiles: Any = fnop.INDEX, **_: Any
        ) -> None:
            found = profiles.get(of_template(spec, namespace), ())
            self.calls.append(" ".join(map(str, (name, *found))))

    def news(self) -> list[str]:
        found, self.calls = self.calls, []
        return sorted(found)


@pytest.mark.parametrize("is_down", [False, True])
def test_values_that_were_not_known_at_the_call_are_a_change(is_down: bool) -> None:
    looking = Profiles()
    objects = [example("one", template="a"), example("two", template="b")]
    sim = Simulation(looking.registry, crds=[DEFINITION], objects=objects)
    sim.wait(60)
    assert looking.news() == ["one", "two"]
    if is_down:
        sim.stop()
    sim.apply(profile_kind())
    sim.apply(PROFILE)
    if is_down:
        sim.restart()
    sim.wait(600)
    assert looking.news() == ["one 1"]
    sim.restart().wait(60)
    assert looking.news() == []


def test_what_was_handled_before_stays_so_while_the_values_are_unknown() -> None:
    looking = Profiles()
    objects = [example("one", template="a"), PROFILE]
    crds = [DEFINITION, profile_kind()]
    sim = Simulation(looking.registry, crds=crds, objects=objects).settle()
    assert looking.news() == ["one 1"]
    sim.stop()
    sim.delete("customresourcedefinitions/profiles.fnop.test").wait(60)
    sim.restart().wait(60)
    assert looking.news() == []
    sim.stop()
    sim.apply(profile_kind()).apply(PROFILE)
    sim.restart().wait(60)
    assert looking.news() == []


def test_the_results_of_parts_stay_in_their_places() -> None:
    parts = Registry()

    @fnop.index("configmaps", registry=parts)
    def templates(name: str, namespace: str, body: Any, **_: Any) -> Any:
        return {f"{namespace}/{name}": body["data"]["text"]}

    @fnop.on.create(KIND, registry=parts, id="copy")
    @fnop.on.update(
        KIND, registry=parts, id="copy", requeue_on={templates: of_template}
    )
    def copy(
        spec: Any, namespace: str, templates: Any = fnop.INDEX, **_: Any
    ) -> dict[str, str]:
        text = "".join(templates.get(of_template(spec, namespace), ()))

        @fnop.subhandler(id="part")
        def part(**_: Any) -> dict[str, str]:
            return {"part": text}

        return {"whole": text}

    run = Story(parts, [ONE, template("a", text="x")])
    assert run.settle()
    run.edit("configmaps", "a", data={"text": "y"})
    assert run.settle()
    assert run.status("one") == {"copy": {"whole": "y"}, "copy/part": {"part": "y"}}


@pytest.mark.parametrize(
    ("filters", "calls"),
    [
        ({"new": "a"}, ["one", "one"]),
        ({"new": "b"}, ["two"]),
        ({"value": "b"}, ["two"]),
        ({"old": "a"}, ["one"]),
        ({"old": "b", "new": "a"}, []),
    ],
)
def test_filters_of_values_look_at_the_present_one(
    filters: Any, calls: list[str]
) -> None:
    registry, found = Registry(), list[str]()

    @fnop.index("configmaps", registry=registry)
    def texts(namespace: str, name: str, body: Any, **_: Any) -> Any:
        return {f"{namespace}/{name}": body["data"]}

    @fnop.on.field(
        KIND,
        field="spec.template",
        registry=registry,
        requeue_on={texts: of_template},
        **filters,
    )
    def called(name: str, **_: Any) -> None:
        found.append(name)

    run = Story(registry, [ONE, TWO, template("a", x="1")])
    assert run.settle()
    run.edit("configmaps", "a", data={"x": "2"})
    assert run.settle()
    assert found == calls


@pytest.mark.parametrize("waits", [True, False])
def test_a_handler_that_waits_begins_anew(waits: bool) -> None:
    registry, calls = Registry(), list[str]()

    @fnop.index("configmaps", registry=registry)
    def texts(namespace: str, name: str, body: Any, **_: Any) -> Any:
        return {f"{namespace}/{name}": body["data"]["text"]}

    @fnop.on.create(KIND, registry=registry, id="look")
    @fnop.on.update(KIND, registry=registry, id="look", requeue_on={texts: of_template})
    def look(
        name: str,
        spec: Any,
        namespace: str,
        retry: int,
        texts: Any = fnop.INDEX,
        **_: Any,
    ) -> Any:
        found = texts.get(of_template(spec, namespace), ())
        calls.append(" ".join((name, str(retry), *found)))
        if found:
            return None
        if waits:
            return fnop.again(after=3600, because="no template")
        raise fnop.TemporaryError("no template", delay=3600)

    run = Story(registry, [ONE, TWO])
    run.wait(60)
    assert sorted(calls) == ["one 0", "two 0"]
    run.apply(template("a", text="x")).wait(60)
    assert calls[2:] == ["one 0 x"]


def test_a_function_of_keys_that_awaits_is_refused() -> None:
    registry = Registry()

    @fnop.index("configmaps", registry=registry)
    def texts(name: str, **_: Any) -> Any:
        return {name: 1}

    async def keys(**_: Any) -> str:
        return ""

    with pytest.raises(RegistrationError, match="answers at once"):

        @fnop.on.update(KIND, registry=registry, requeue_on={texts: keys})
        def update(**_: Any) -> None:
            """Nothing."""
