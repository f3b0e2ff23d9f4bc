"""Changes that come while handlers are unfinished: they belong to one handling.

Kopf 1.45 detects a change against the last-handled configuration, which it writes when
all handlers have ended.
"""

from __future__ import annotations

from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.unit.adapters.kopf.simulated import KIND, Simulated, example, simulated

Diary = list[Any]


def edit(run: Simulated, **change: Any) -> Simulated:
    """Patch the object as a user; the operator has not reacted yet."""
    path = run.path("example-1")
    found = run.sim.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
    assert found.status == 200, found
    return run


def test_an_edit_of_an_unfinished_creation_is_a_part_of_it(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="slow", registry=registry)
    def slow(retry: int, spec: kopf.Spec, **_: Any) -> None:
        diary.append(("slow", retry, spec.get("size")))
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=100)

    @kopf.on.create(KIND, id="quick", registry=registry)
    def quick(spec: kopf.Spec, **_: Any) -> None:
        diary.append(("quick", spec.get("size")))

    @kopf.on.update(KIND, id="updated", registry=registry)
    def updated(**_: Any) -> None:
        diary.append("updated")

    with simulated(registry) as run:
        run.apply(example(size=1)).settle(50)
        edit(run, spec={"size": 2}).settle(200)
        assert diary == [("slow", 0, 1), ("quick", 1), ("slow", 1, 2)]
        # The next change is an update, of the object as the creation has left it.
        run.edit(spec={"size": 3})
        assert diary[3:] == ["updated"]


def test_a_finished_handler_is_not_called_for_edits_of_the_same_handling(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="slow", registry=registry)
    def slow(retry: int, diff: Any, **_: Any) -> None:
        diary.append(("slow", retry, [each.new for each in diff]))
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=100)

    @kopf.on.update(KIND, id="quick", registry=registry)
    def quick(**_: Any) -> None:
        diary.append("quick")

    with simulated(registry, example(size=1)) as run:
        edit(run, spec={"size": 2}).settle(50)
        edit(run, spec={"size": 3}).settle(200)
        assert diary == [("slow", 0, [2]), "quick", ("slow", 1, [3])]


def test_a_change_that_is_reverted_meanwhile_is_over(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="slow", registry=registry)
    def slow(retry: int, **_: Any) -> None:
        diary.append(retry)
        raise kopf.TemporaryError("not yet", delay=100)

    with simulated(registry, example(size=1)) as run:
        edit(run, spec={"size": 2}).settle(50)
        edit(run, spec={"size": 1}).settle(500)
        assert diary == [0]
        names = {*run.get()["metadata"]["annotations"]}
        assert names == {"kopf.zalando.org/last-handled-configuration"}


def test_the_next_handler_sees_what_the_one_before_has_written(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="first", registry=registry)
    def first(patch: kopf.Patch, **_: Any) -> None:
        diary.append("first")
        patch.metadata.annotations["first"] = "was here"

    @kopf.on.update(KIND, id="second", registry=registry)
    def second(annotations: Any, **_: Any) -> None:
        diary.append(("second", annotations.get("first")))

    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2})
        assert diary == [("first"), ("second", "was here")]


def test_attempts_are_counted_across_restarts(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="slow", registry=registry)
    def slow(retry: int, **_: Any) -> None:
        diary.append(retry)
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=10)

    with simulated(registry) as run:
        run.apply(example()).settle(15)
        cluster = run.sim.cluster
    assert diary == [0, 1]
    with simulated(registry, cluster=cluster) as run:
        assert diary[2:] == [2]


def test_an_object_that_no_handler_has_selected_is_new_when_one_does(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="updated", labels={"a": kopf.PRESENT}, registry=registry)
    def updated(**_: Any) -> None:
        diary.append("updated")

    @kopf.on.event(KIND, id="seen", registry=registry)
    def seen(**_: Any) -> None:
        """Be interested in all objects."""

    with simulated(registry, example()) as run:
        run.edit(metadata={"labels": {"a": "b"}})
        assert diary == []
        run.edit(spec={"size": 2})
        assert diary == ["updated"]


@pytest.mark.parametrize("is_held", [False, True])
def test_an_optional_handler_is_called_with_the_finalizer_alone(
    registry: OperatorRegistry, diary: Diary, is_held: bool
) -> None:
    @kopf.on.delete(KIND, id="optional", optional=True, registry=registry)
    def optional(**_: Any) -> None:
        diary.append("optional")

    if is_held:

        @kopf.on.delete(KIND, id="needed", registry=registry)
        def needed(**_: Any) -> None:
            diary.append("needed")

    with simulated(registry, example()) as run:
        own = run.get()["metadata"].get("finalizers") or []
        run.edit(metadata={"finalizers": [*own, "example.com/hold"]})
        run.delete()
        assert diary == (["optional", "needed"] if is_held else [])


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("storage", ["annotations", "status"])
def test_a_deletion_leaves_no_record_on_an_object_that_others_hold(
    registry: OperatorRegistry, diary: Diary, storage: str, is_held: bool
) -> None:
    @kopf.on.delete(KIND, id="first", registry=registry)
    def first(**_: Any) -> None:
        diary.append("first")

    @kopf.on.delete(KIND, id="second", registry=registry)
    def second(retry: int, **_: Any) -> None:
        diary.append(("second", retry))
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=100)

    settings = kopf.OperatorSettings()
    if storage == "status":
        settings.persistence.progress_storage = kopf.StatusProgressStorage()
    with simulated(registry, example(), settings=settings) as run:
        if is_held:
            own = run.get()["metadata"]["finalizers"]
            run.edit(metadata={"finalizers": [*own, "example.com/hold"]})
        run.delete()
        assert diary == ["first", ("second", 0), ("second", 1)]
        assert run.errors() == []
        found = run.get()
        if not is_held:
            assert found is None
            return
        assert found["metadata"]["finalizers"] == ["example.com/hold"]
        names = {*found["metadata"]["annotations"]}
        assert names == {"kopf.zalando.org/last-handled-configuration"}
        assert not ((found.get("status") or {}).get("kopf") or {}).get("progress")
