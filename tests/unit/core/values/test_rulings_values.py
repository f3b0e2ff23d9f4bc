"""Views, reads and stored values: the rulings R7, R8, R26 and R27."""

from __future__ import annotations

import json
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.memory.observation import Observation, see
from fnop.core.memory.stored_state import Stored, read_stored, write_stored
from fnop.core.values.body import Body
from fnop.core.values.diff import diff
from fnop.effects.values import digest, same_json
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.simulations import Scenario, example

KIND = "fnopexamples"
MARKER = "fnop.dev/default"


@pytest.fixture
def registry() -> Registry:
    return Registry()


# -------------------------------------------------------------------------- R7


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),  # the server turns 1.0 into 1
        (0, -0.0, True),
        (True, 1, False),
        (False, 0, False),
        (None, False, False),
        ("1", 1, False),
        (2**53, float(2**53), True),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": [True]}, {"a": [1]}, False),
    ],
)
def test_r7_numbers_compare_by_value_and_a_bool_is_none(
    one: Any, other: Any, same: bool
) -> None:
    assert same_json(one, other) is same
    assert (diff(one, other) == ()) is same
    assert (digest(one) == digest(other)) is same


def test_r7_a_number_that_the_server_writes_anew_is_no_update(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        seen.append("create")

    @fnop.on.update(KIND, registry=registry)
    def update(diff: Any, **_: Any) -> None:
        seen.append(diff)

    run = Scenario(registry, [example(size=1.0)])
    assert run.settle()
    run.edit(KIND, spec={"size": 1})
    assert run.settle()
    assert seen == ["create"]
    run.edit(KIND, spec={"size": True})
    assert run.settle()
    assert len(seen) == 2


# -------------------------------------------------------------------------- R8


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "data": {"of": name},
    }


def test_r8_get_and_list_are_live_and_absence_is_none(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        for kind in ("configmaps", "cm", "ConfigMap", "configmaps.v1"):
            found = await fnop.get(kind, name="one")
            assert found is not None
            assert found["data"] == {"of": "one"}
        seen.append(await fnop.get("configmaps", name="absent"))
        every = await fnop.list("configmaps", labels={"app": "x"})
        seen.append([each.metadata.name for each in every])
        await fnop.create(config_map("made", app="x"))
        every = await fnop.list("configmaps", labels={"app": "x"})
        seen.append(sorted(each.metadata.name for each in every))

    objects = [config_map("one", app="x"), config_map("two"), example()]
    run = Scenario(registry, objects)
    assert run.settle()
    assert seen == [None, ["one"], ["made", "one"]]


def test_r8_a_refusal_is_raised_in_the_handler(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        try:
            await fnop.create({**config_map("a"), "data": {"no key": "1"}})
        except fnop.Refused as problem:
            seen.append((problem.status, problem.reason))
        with pytest.raises(fnop.Refused, match="serves no kind"):
            await fnop.get("unheardof", name="x")

    run = Scenario(registry, [example()])
    assert run.settle()
    assert seen == [(422, "Invalid")]


# ------------------------------------------------------------------------- R26

# What the first release writes, as it stands on objects: it stays readable.
RELEASED = {
    "v": 1,
    "uid": "u-1",
    "seen": {"": "1:0f5c0b1b", "/spec/size": "1:aa"},
    "was": {"": {"spec": {"size": 1}}},
    "creating": True,
    "progress": {
        "first": {"aim": "create:1:0f", "retries": 2, "finished": "success"},
        "second": {
            "aim": "create:1:0f",
            "started": "2026-01-01T00:00:00.000000Z",
            "until": "2026-01-01T00:01:00.000000Z",
            "message": "not yet",
            "waits": True,
        },
    },
    "results": {"first": {"a": 1}},
}


def test_r26_a_state_of_the_first_release_is_read_and_written_back_the_same() -> None:
    stored = read_stored(json.dumps(RELEASED), "u-1")
    assert isinstance(stored, Stored)
    assert stored.progress["second"].waits
    assert json.loads(write_stored(stored, "u-1")) == RELEASED


def test_r26_a_release_that_knows_less_reads_it_all_the_same() -> None:
    """Rolled back, fields of a newer release of the same version say nothing."""
    newer = {**RELEASED, "extra": [1], "progress": {"a": {"aim": "x", "later": 1}}}
    stored = read_stored(json.dumps(newer), "u-1")
    assert isinstance(stored, Stored)
    assert stored.progress["a"].aim == "x"


# ------------------------------------------------------------------------- R27


def test_r27_a_handler_that_is_added_changes_nobody_else_s_cause(
    registry: Registry,
) -> None:
    seen: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    def handle(reason: str, **_: Any) -> None:
        seen.append(reason)

    run = Scenario(registry, [example(size=1)])
    assert run.settle()
    more = Registry()
    for handler in registry.handlers:
        more.add(handler)

    @fnop.on.field(KIND, registry=more, field="spec.other")
    @fnop.on.update(KIND, registry=more, id="late")
    def late(old: Any, new: Any, **_: Any) -> None:
        seen.append(f"late {old} {new}")

    run.crash(Program(more.handlers))
    assert run.settle()
    assert seen == ["create"]


def test_r27_equal_digests_resume_and_the_next_write_keeps_the_essence(
    registry: Registry,
) -> None:
    """A handler that looks at `old` comes later: what it needs is stored from then."""

    @fnop.on.update(KIND, registry=registry)
    def update(**_: Any) -> None:
        """Looks at nothing."""

    run = Scenario(registry, [example(size=1)])
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert "was" not in json.loads(found["status"][MARKER])
    seen: list[Any] = []
    curious = Registry()

    @fnop.on.update(KIND, registry=curious)
    def look(old: Any, new: Any, **_: Any) -> None:
        seen.append((old and old["spec"], new["spec"]))

    run.crash(Program(curious.handlers))
    assert run.settle()
    assert seen == []
    run.edit(KIND, spec={"size": 2})
    assert run.settle()
    run.edit(KIND, spec={"size": 3})
    assert run.settle()
    assert seen == [({"size": 1}, {"size": 2}), ({"size": 2}, {"size": 3})]


def test_r27_a_change_whose_past_is_not_known_is_an_update_from_nothing(
    registry: Registry,
) -> None:
    """It came while no operator ran that had stored what was before."""

    @fnop.on.update(KIND, registry=registry)
    def update(**_: Any) -> None:
        """Looks at nothing."""

    run = Scenario(registry, [example(size=1)])
    assert run.settle()
    seen: list[Any] = []
    curious = Registry()

    @fnop.on.update(KIND, registry=curious)
    def look(old: Any, new: Any, **_: Any) -> None:
        seen.append((old, new["spec"]))

    path = run.path(KIND, "example-1")
    change = {"spec": {"size": 2}}
    run.crash(Program(curious.handlers))
    merge = "application/merge-patch+json"
    run.request(ApiRequest("PATCH", path, (), change, merge))
    assert run.settle()
    assert seen == [(None, {"size": 2})]


def test_r27_a_digest_carries_the_version_of_its_algorithm() -> None:
    seen = see(Body({"spec": {"a": 1}}), Observation(((),)))
    assert all(value.startswith("1:") for value in seen.digests.values())


@pytest.mark.parametrize("name", ["labels", "annotations"])
def test_marks_of_both_places_are_merged(name: str) -> None:
    given: dict[str, Any] = {"metadata": {name: {"a": "1", "c": "3"}}}
    more: dict[str, Any] = {name: {"b": "2", "c": "3", "d": None}}
    assert fnop.patch(**given, **more).merge == {
        "metadata": {name: {"a": "1", "b": "2", "c": "3", "d": None}}
    }
    other: Any = fnop.patch(metadata={"labels": {"a": "1"}}, annotations={"b": "2"})
    assert other.merge["metadata"] == {"labels": {"a": "1"}, "annotations": {"b": "2"}}


def test_a_mark_with_two_values_is_refused() -> None:
    with pytest.raises(ValueError, match=r"give 'a' two values; give it once"):
        fnop.patch(metadata={"labels": {"a": "1"}}, labels={"a": "2"})
    with pytest.raises(ValueError, match="give all labels in one place"):
        fnop.patch(metadata={"labels": None}, labels={"a": "2"})
    with pytest.raises(ValueError, match="give all labels in one place"):
        fnop.patch(metadata=None, labels={"a": "2"})
