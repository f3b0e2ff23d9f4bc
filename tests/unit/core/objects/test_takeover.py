"""Takeover from Kopf: no creation is handled twice, and no finalizer stays."""

from __future__ import annotations

import doctest
import json
from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import kind_of
from fnop.core.memory import takeover
from fnop.core.memory.observation import essence_of
from fnop.core.memory.stored_state import Stored
from fnop.core.memory.takeover import annotation_names, taken_over
from fnop.core.values.body import Body
from tests.simulations import Scenario, example

KIND = "fnopexamples"
PREFIX = "kopf.zalando.org"
FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
SETTINGS = Settings(takes_over=PREFIX)


def handled(essence: dict[str, Any], **annotations: Any) -> dict[str, Any]:
    """An example as a Kopf operator leaves it."""
    found = example(**essence["spec"])
    last = json.dumps(essence, separators=(",", ":")) + "\n"
    found["metadata"]["annotations"] = {
        f"{PREFIX}/last-handled-configuration": last,
        **{f"{PREFIX}/{name}": json.dumps(v) for name, v in annotations.items()},
    }
    found["metadata"]["finalizers"] = ["example.com/other", FINALIZER]
    return found


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def diary(registry: Registry) -> list[Any]:
    """The handlers' views."""
    diary: list[Any] = []

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        diary.append("create")

    @fnop.on.resume(KIND, registry=registry)
    def resume(**_: Any) -> None:
        diary.append("resume")

    @fnop.on.update(KIND, registry=registry)
    def update(old: Any, new: Any, **_: Any) -> None:
        diary.append(("update", old["spec"], new["spec"]))

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        diary.append("delete")

    return diary


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(takeover).failed == 0


@pytest.mark.parametrize(
    ("prefix", "handler", "names"),
    [
        (PREFIX, "create_fn", ("create_fn", "create_fn")),
        (PREFIX, "outer.<locals>.fn", ("outer._locals_.fn",) * 2),
        (PREFIX, "a" * 64, ("a" * 56 + "-5Keq3A", None)),
        (PREFIX, "a" * 47, ("a" * 47, "a" * 39 + "-L2I79Q")),
        (
            PREFIX,
            "create_fn/" + "x" * 60,
            ("create_fn." + "x" * 46 + "-GlVsjg", "create_fn." + "x" * 29 + "-kOeA1w"),
        ),
        (
            "a-lengthy-operator-prefix-for-my-company.example.com",
            "update_handler/some.field",
            ("update_handler.some.field", "upd-x2-a.w"),
        ),
    ],
)
def test_annotations_have_the_names_that_kopf_gives_them(
    prefix: str, handler: str, names: tuple[str, str | None]
) -> None:
    for found, name in zip(annotation_names(prefix, handler), names, strict=True):
        assert name is None or found == f"{prefix}/{name}"


def test_what_was_handled_is_resumed_and_the_finalizer_is_exchanged(
    registry: Registry, diary: list[Any]
) -> None:
    run = Scenario(registry, [handled({"spec": {"size": 1}})], settings=SETTINGS)
    assert run.settle()
    assert diary == ["resume"]
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["example.com/other", "fnop.dev/default"]
    # The way back stays open.
    assert f"{PREFIX}/last-handled-configuration" in found["metadata"]["annotations"]
    run.crash()
    assert run.settle()
    assert diary == ["resume", "resume"]


def test_a_change_that_nobody_has_handled_is_an_update(
    registry: Registry, diary: list[Any]
) -> None:
    stale = handled({"spec": {"size": 1}})
    stale["spec"] = {"size": 2}
    run = Scenario(registry, [stale], settings=SETTINGS)
    assert run.settle()
    assert ("update", {"size": 1}, {"size": 2}) in diary
    assert "create" not in diary


def test_a_deletion_that_kopf_was_to_handle_is_handled(
    registry: Registry, diary: list[Any]
) -> None:
    body = handled({"spec": {"size": 1}})
    body["metadata"]["finalizers"] = [FINALIZER]
    run = Scenario(registry, [body], settings=SETTINGS)
    run.delete(KIND)
    assert run.settle()
    assert diary == ["delete"]
    assert run.get(KIND) is None


def test_a_finalizer_without_need_goes(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        """No deletion handler: nothing to wait for."""

    run = Scenario(registry, [handled({"spec": {}})], settings=SETTINGS)
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["example.com/other"]


def test_handlers_that_have_succeeded_in_a_creation_are_not_repeated(
    registry: Registry,
) -> None:
    diary: list[str] = []
    for name in ("first", "second"):

        def create(name: str, param: str, **_: Any) -> None:
            diary.append(param)

        fnop.on.create(KIND, registry=registry, id=name, param=name)(create)
    body = example(size=1)
    record = {"started": "2026-01-01T00:00:00.000000+00:00", "purpose": "create"}
    body["metadata"]["annotations"] = {
        f"{PREFIX}/first": json.dumps({**record, "success": True, "failure": False}),
        f"{PREFIX}/second": json.dumps({**record, "success": False, "retries": 2}),
    }
    run = Scenario(registry, [body], settings=SETTINGS)
    assert run.settle()
    assert diary == ["second"]


@pytest.mark.parametrize("text", ["no JSON", "[1]", ""])
def test_what_cannot_be_read_counts_as_nothing(
    registry: Registry, diary: list[Any], text: str
) -> None:
    body = example(size=1)
    name = f"{PREFIX}/last-handled-configuration"
    body["metadata"]["annotations"] = {name: text}
    run = Scenario(registry, [body], settings=SETTINGS)
    assert run.settle()
    assert diary == ["create"]


def test_unless_it_is_asked_to_fnop_leaves_a_kopf_operator_alone(
    registry: Registry, diary: list[Any]
) -> None:
    """Both may serve one kind."""
    run = Scenario(registry, [handled({"spec": {"size": 1}})])
    assert run.settle()
    assert diary == ["create"]
    found = run.get(KIND)
    assert found is not None
    assert FINALIZER in found["metadata"]["finalizers"]


def test_the_bookkeeping_of_a_kopf_operator_is_no_part_of_the_essence() -> None:
    annotations = {
        "my.org/kopf-managed": "yes",
        "my.org/last-handled-configuration": "{}",
        "kopf.zalando.org/x": "{}",
        "kept": "yes",
    }
    body = Body({"metadata": {"name": "x", "annotations": annotations}})
    assert essence_of(body) == {"metadata": {"annotations": {"kept": "yes"}}}


# ----------------------------------------------------------- kept somewhere else


def moved(where: str) -> dict[str, Any]:
    """An object that a Kopf operator with other storages has handled."""
    found = handled({"spec": {"size": 1}})
    last = found["metadata"]["annotations"].pop(f"{PREFIX}/last-handled-configuration")
    match where:
        case "key":
            found["metadata"]["annotations"][f"{PREFIX}/mine"] = last
        case "status":
            found["status"] = {"kopf": {"last-handled-configuration": last}}
        case "field":
            found["status"] = {"own": {"state": {"last-handled-configuration": last}}}
        case "progress":
            record = {"started": "2026-01-01T00:00:00", "success": True}
            names = ("create", "resume")
            progress = {f"diary.<locals>.{name}": record for name in names}
            found["status"] = {"kopf": {"progress": progress}}
        case _:
            raise AssertionError(where)
    return found


@pytest.mark.parametrize(
    ("where", "settings"),
    [
        ("key", SETTINGS.replace(takes_over_key="mine")),
        ("status", SETTINGS),
        ("field", SETTINGS.replace(takes_over_field="status.own.state")),
        ("progress", SETTINGS),
    ],
)
def test_other_storages_of_kopf_are_read(
    registry: Registry, diary: list[Any], where: str, settings: Settings
) -> None:
    body = Body({**moved(where), "metadata": {**moved(where)["metadata"], "uid": "u"}})
    kind = kind_of(Resource("fnop.dev", "v1", KIND, "FnopExample"), registry.handlers)
    kopf = settings.predecessor
    assert kopf is not None
    names = [each.id for each in kind.changes]
    found = taken_over(body, kopf, kind.observation, names)
    assert isinstance(found, Stored)
    assert found.seen is not None


def test_a_handled_object_without_a_record_is_an_error_and_no_creation(
    registry: Registry, diary: list[Any]
) -> None:
    run = Scenario(registry, [moved("key")], settings=SETTINGS)
    assert run.settle()
    assert diary == []
    (line,) = [say.message for say in run.said if say.level == "error"]
    assert "takes_over_key=" in line
    assert run.objects("events"), "the object tells it, too"
    run.edit(KIND, spec={"size": 2})
    assert run.settle()
    assert [each[0] for each in diary] == ["update"]
    run.delete(KIND).settle()
    assert diary[-1] == "delete"


def test_a_creation_that_kopf_has_begun_is_gone_on_with(
    registry: Registry, diary: list[Any]
) -> None:
    begun = {"started": "2026-01-01T00:00:00", "purpose": "create", "success": False}
    found = moved("key")
    found["metadata"]["annotations"] = {f"{PREFIX}/create": json.dumps(begun)}
    run = Scenario(registry, [found], settings=SETTINGS)
    assert run.settle()
    assert diary == ["create"]
