"""The place of an operator's state on objects, which a user can choose."""

from __future__ import annotations

import asyncio
import base64
import doctest
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.memory import storage as module
from fnop.interpreters.runtime.protocol import JSON, MERGE_PATCH, ApiRequest
from tests.live import COLLECTION, LiveCluster
from tests.patience import patience
from tests.simulations import DEFINITION, Scenario, example
from tests.stories import MARKER, Story, definition

KIND = "fnopexamples"
ANNOTATION = "example.com/default"
# A status without room for anything but a phase.
CLOSED = {"type": "object", "properties": {"phase": {"type": "string"}}}

BY_PREFIX = fnop.AnnotationStorage("example.com")
BY_FIELD = fnop.StatusStorage("status.example.state")


def read_packed(body: Mapping[str, Any]) -> str | None:
    found = body["metadata"].get("annotations", {}).get("example.com/packed")
    return None if found is None else base64.b64decode(found, validate=True).decode()


def write_packed(text: str | None) -> dict[str, Any]:
    packed = None if text is None else base64.b64encode(text.encode()).decode()
    return {"metadata": {"annotations": {"example.com/packed": packed}}}


PACKED = fnop.Storage(read_packed, write_packed)
STORAGES: list[Any] = [fnop.AutoStorage(), BY_PREFIX, BY_FIELD, PACKED]
NAMES = ["auto", "annotation", "status", "own"]


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert found.failed == 0


@pytest.fixture
def diary() -> list[str]:
    return []


@pytest.fixture
def registry(diary: list[str]) -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> None:
        diary.append("create")

    @fnop.on.update(KIND, registry=registry, id="update")
    def update(diff: fnop.Diff, **_: Any) -> None:
        diary.append(f"update {'.'.join(diff[0].field)}")

    @fnop.on.resume(KIND, registry=registry, id="resume")
    def resume(**_: Any) -> None:
        diary.append("resume")

    return registry


def settled(registry: Registry, settings: Settings, **options: Any) -> Story:
    story = Story(registry, [example(size=1)], settings=settings, **options)
    assert story.settle()
    return story


def state_in(found: Any) -> dict[str, Any]:
    assert isinstance(found, str)
    state: dict[str, Any] = json.loads(found)
    return state


def places(story: Scenario, kind: str = KIND) -> dict[str, Any]:
    """The texts of states on an object, by place."""
    found = story.get(kind)
    assert found is not None
    annotations = found["metadata"].get("annotations") or {}
    status = found.get("status") or {}
    packed = annotations.get("example.com/packed")
    texts = {
        "annotation": annotations.get(ANNOTATION),
        "fallback": annotations.get(MARKER),
        "status": (status.get("example") or {}).get("state"),
        "auto": status.get(MARKER),
        "own": packed and base64.b64decode(packed).decode(),
    }
    return {name: text for name, text in texts.items() if text is not None}


# ------------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("storage", "name"), list(zip(STORAGES, NAMES, strict=True)), ids=NAMES
)
def test_k_8_1_the_state_is_where_the_storage_says_in_one_write(
    registry: Registry, diary: list[str], storage: Any, name: str
) -> None:
    story = settled(registry, Settings(storage=storage))
    assert list(places(story)) == [name]
    assert state_in(places(story)[name])["seen"]
    assert len(story.sent) == 1
    # It is read there: a restart resumes, and an own write triggers no handler.
    story.crash()
    assert story.settle()
    story.edit(KIND, spec={"size": 2})
    assert story.settle()
    assert diary == ["create", "resume", "update spec.size"]


def test_k_8_1_the_name_in_an_annotation_is_the_operators(registry: Registry) -> None:
    story = settled(registry, Settings("billing", storage=BY_PREFIX))
    found = story.get(KIND)
    assert found is not None
    assert list(found["metadata"]["annotations"]) == ["example.com/billing"]


@pytest.mark.parametrize("storage", STORAGES[:3], ids=NAMES[:3])
@pytest.mark.parametrize("field", ["metadata.annotations", "status", "status.example"])
def test_its_own_state_is_no_change_of_a_field_around_it(
    storage: Any, field: str
) -> None:
    registry, seen = Registry(), []

    @fnop.on.field(KIND, field=field, registry=registry)
    def changed(old: Any, new: Any, **_: Any) -> None:
        seen.append((old, new))

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    story = settled(registry, Settings(storage=storage))
    assert seen == []
    story.edit(KIND, metadata={"annotations": {"mine": "yes"}})
    story.user_sets_status({"phase": "a", "example": {"other": 1}})
    assert story.settle()
    assert [str(new).count("uid") for _, new in seen] == [0] * len(seen)
    assert 1 <= len(seen) <= 2


def test_its_own_state_is_no_presence_of_a_field_around_it() -> None:
    registry, seen = Registry(), list[str]()

    @fnop.on.create(KIND, registry=registry, field="status", value=fnop.ABSENT)
    @fnop.on.event(KIND, registry=registry, field="status", value=fnop.ABSENT)
    def absent(**_: Any) -> None:
        seen.append("absent")

    @fnop.on.event(KIND, registry=registry, field="status")
    def present(**_: Any) -> None:
        seen.append("present")

    story = settled(registry, Settings())
    assert list(places(story)) == ["auto"]
    assert seen == ["absent"] * 3


@pytest.mark.parametrize("storage", [BY_FIELD, fnop.AutoStorage()], ids=["", "auto"])
def test_a_status_that_is_not_kept_falls_back_to_the_annotation(
    registry: Registry, diary: list[str], storage: Any
) -> None:
    story = settled(registry, Settings(storage=storage), crd=definition(status=CLOSED))
    assert list(places(story)) == ["fallback"]
    # The user who has chosen a place gets a message; once for the kind.
    story.apply(example("another"))
    assert story.settle()
    warnings = story.said_at("warning")
    assert len(warnings) == (storage is BY_FIELD)
    for line in warnings:
        assert "the annotation fnop.dev/default and not in status.example.state" in line
    story.crash()
    assert story.settle()
    assert diary == ["create", "create", "resume", "resume"]


def test_a_field_in_a_status_without_an_endpoint_of_its_own(
    registry: Registry, diary: list[str]
) -> None:
    settings = Settings(storage=BY_FIELD)
    story = settled(registry, settings, crd=definition(subresource=False))
    assert list(places(story)) == ["status"]
    assert len(story.sent) == 1
    assert diary == ["create"]


def test_kinds_of_kubernetes_have_no_room_in_their_status() -> None:
    registry = Registry()

    @fnop.on.create("pods", registry=registry)
    def create(**_: Any) -> None: ...

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "example-1", "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    story = Story(registry, [pod], settings=Settings(storage=BY_FIELD))
    assert story.settle()
    assert list(places(story, "pods")) == ["fallback"]
    assert story.said_at("warning") == []


# -------------------------------------------------------------- of the author's own


def test_a_storage_that_cannot_read_an_object_leaves_it_alone(
    registry: Registry, diary: list[str]
) -> None:
    spoiled = example(size=1)
    spoiled["metadata"]["annotations"] = {"example.com/packed": "no base64!"}
    story = Story(registry, [spoiled], settings=Settings(storage=PACKED))
    assert story.settle()
    (warning,) = story.said_at("warning")
    assert "its stored state cannot be read and is left as it is" in warning
    assert diary == ["resume"]
    assert story.sent == []


def test_a_storage_that_cannot_write_falls_back_to_the_annotation(
    registry: Registry, diary: list[str]
) -> None:
    def write(text: str | None) -> Any:
        if text and "seen" in text:
            raise OverflowError("too much")
        return write_packed(text)

    story = settled(registry, Settings(storage=fnop.Storage(read_packed, write)))
    assert list(places(story)) == ["fallback"]
    (warning,) = story.said_at("warning")
    assert "the storage has failed with OverflowError: too much" in warning
    assert diary == ["create"]


def test_a_storage_is_given_what_nobody_can_change() -> None:
    def read(body: Any) -> Any:
        body["seen"] = True

    with pytest.raises(ValueError, match=r"read has failed: TypeError.*read-only"):
        Settings(storage=fnop.Storage(read, write_packed))


# ------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        ("", "must be a domain in lower case, such as 'example.com'"),
        ("example.com/", "must be a domain"),
        ("Example.com", "must be a domain"),
        ("-example.com", "must be a domain"),
        ("a" * 260, "has 260 characters, and an annotation's has at most 253"),
        ("kubernetes.io", "is kept for Kubernetes itself"),
        ("apps.k8s.io", "is kept for Kubernetes itself"),
    ],
)
def test_k_8_1_a_prefix_that_no_annotation_has_is_refused(
    prefix: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        fnop.AnnotationStorage(prefix)


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("", "must be one of the status"),
        ("status", "must be one of the status"),
        ("spec.state", "must be one of the status, such as 'status.example.state'"),
        ("status..state", "is not a path"),
        ("status.conditions.state", "is where conditions are"),
    ],
)
def test_k_8_1_a_field_outside_of_the_status_is_refused(
    field: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        fnop.StatusStorage(field)


def test_a_field_can_be_a_list_of_keys() -> None:
    storage = fnop.StatusStorage(("status", "example.com/state"))
    (path, _) = Settings(storage=storage).places.paths
    assert path == ("status", "example.com/state")


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda text: {"a": text, "status": {"b": text}}, "in one request"),
        (lambda text: {"metadata": {"labels": {"a": text}}}, "a place of its own"),
        (lambda text: {"metadata": {"annotations": text}}, "a place of its own"),
        (lambda text: {"status": text}, "a place of its own"),
        (lambda text: {"a": text or ""}, "removes nothing when it is given None"),
        (lambda text: text, "a merge patch is a mapping, not "),
        (lambda text: {"b": text}, "read does not find the text"),
        (lambda text: {"a": text, "c": object()}, "not a JSON value"),
        (
            lambda text: {"a": text} if text else {"b": None},
            "read still finds a text after",
        ),
    ],
)
def test_a_storage_that_does_not_fit_together_is_refused(
    write: Any, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Settings(storage=fnop.Storage(lambda body: body.get("a"), write))


def test_what_is_no_storage_is_refused() -> None:
    wrong: Any = "example.com"
    with pytest.raises(
        TypeError, match=r"'example.com' is not a storage; give fnop.Auto"
    ):
        Settings(storage=wrong)
    with pytest.raises(TypeError, match=r"such as \(fnop.AutoStorage\(\),\)"):
        Settings(former_storages=wrong)


# ------------------------------------------------------------------------- moving


@pytest.mark.parametrize("former", STORAGES, ids=NAMES)
@pytest.mark.parametrize("storage", STORAGES, ids=NAMES)
def test_k_8_13_the_state_moves_with_the_next_write_and_nothing_is_handled_again(
    registry: Registry, diary: list[str], former: Any, storage: Any
) -> None:
    story = settled(registry, Settings(storage=former))
    (was,) = places(story)
    before = len(story.sent)
    moved = Settings(storage=storage, former_storages=(former,))
    story.crash(Program(registry.handlers, moved))
    assert story.settle()
    assert diary == ["create", "resume"]
    assert list(places(story)) == [was]
    assert len(story.sent) == before
    story.edit(KIND, spec={"size": 2})
    assert story.settle()
    assert diary == ["create", "resume", "update spec.size"]
    (now,) = places(story)
    assert now == NAMES[STORAGES.index(storage)]
    # From one annotation to another it is one request; a field is cleared by its own.
    assert len(story.sent) - before <= 2
    # The former place is no longer needed.
    story.crash(Program(registry.handlers, Settings(storage=storage)))
    assert story.settle()
    assert diary[3:] == ["resume"]


def test_k_8_13_a_place_is_cleared_after_the_new_one_has_the_state(
    registry: Registry, diary: list[str]
) -> None:
    """A crash in between loses nothing."""
    story = settled(registry, Settings(storage=BY_PREFIX))
    moved = Settings(storage=BY_FIELD, former_storages=(BY_PREFIX,))
    story.crash(Program(registry.handlers, moved))
    assert story.settle()
    story.sent.clear()
    story.edit(KIND, spec={"size": 2})
    while "status" not in places(story):
        story.take()
    assert set(places(story)) == {"annotation", "status"}
    story.crash()
    assert story.settle()
    assert list(places(story)) == ["status"]
    assert diary.count("create") == diary.count("update spec.size") == 1


def test_without_the_former_place_every_object_is_a_new_one(
    registry: Registry, diary: list[str]
) -> None:
    story = settled(registry, Settings(storage=BY_PREFIX))
    story.crash(Program(registry.handlers, Settings(storage=BY_FIELD)))
    assert story.settle()
    assert diary == ["create", "create"]


# ---------------------------------------------------------------- several operators


def request_of(method: str, path: str, body: Any) -> ApiRequest:
    return ApiRequest(
        method, path, (), body, MERGE_PATCH if method == "PATCH" else JSON
    )


async def until(what: Callable[[], object]) -> None:
    async with asyncio.timeout(patience(20)):
        while not what():
            await asyncio.sleep(0.002)


async def test_k_8_1_two_operators_with_storages_of_their_own_serve_one_kind() -> None:
    """Neither takes what the other writes for a change of the object's author."""
    cluster, diary = LiveCluster(), list[tuple[int, str]]()
    kept: list[fnop.operator] = []
    for manifest, path in (
        (DEFINITION, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        (example(size=1), COLLECTION),
    ):
        request = request_of("POST", path, manifest)
        assert cluster.request(request).status == 201
    for storage in (BY_PREFIX, BY_FIELD, fnop.AutoStorage()):
        registry = Registry()
        settings = Settings(f"operator-{len(kept)}", storage=storage)

        @fnop.on.create(KIND, registry=registry, param=len(kept))
        def create(param: int, **_: Any) -> None:
            diary.append((param, "create"))

        @fnop.on.update(KIND, registry=registry, param=len(kept))
        def update(param: int, new: Any, **_: Any) -> None:
            diary.append((param, json.dumps(new)))

        kept.append(fnop.operator(registry=registry, settings=settings, api=cluster))
    one, two, three = kept
    async with one as first, two as second, three as third:
        for each in (first, second, third):
            await each.ready()
        await until(lambda: len(diary) == 3)
        change = request_of("PATCH", f"{COLLECTION}/example-1", {"spec": {"size": 2}})
        assert cluster.request(change).status == 200
        await until(lambda: len(diary) == 6)
    assert sorted(diary) == [
        (number, what)
        for number in range(3)
        for what in ("create", '{"spec": {"size": 2}}')
    ]
