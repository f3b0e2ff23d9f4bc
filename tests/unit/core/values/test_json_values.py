"""Values of authors: what JSON has arrives, and what it has not is named."""

from __future__ import annotations

import ipaddress
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.effects.values import LEVELS_MAX, ReadOnlyDict, canonical, freeze_json
from tests.simulations import Scenario, example


class Colour(str, Enum):  # noqa: UP042  # formatted, it shows its name
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Bare(Enum):
    ONE = 1


class Text(str):
    def __str__(self) -> str:
        return "<text>"


@dataclass
class Size:
    cpu: int


def nested(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


def cyclic() -> dict[str, Any]:
    found: dict[str, Any] = {"a": []}
    found["a"].append(found)
    return found


# ------------------------------------------------------------------ what arrives


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        ({Text("a"): Text("ö")}, {"a": "ö"}),
        ({Level.LOW: Level.LOW}, {"1": 1}),
        ({True: 1, None: 2, 1.5: 3, -7: 4}, {"true": 1, "null": 2, "1.5": 3, "-7": 4}),
        ({"ö": (1, (2.5, None))}, {"ö": [1, [2.5, None]]}),
        (2**63 - 1, 2**63 - 1),
        (2**64, float(2**64)),
        (9223372036854776000, 2.0**63),  # as a server writes that float
        (nested(LEVELS_MAX), nested(LEVELS_MAX)),
    ],
)
def test_it_arrives_as_plain_json(value: Any, found: Any) -> None:
    frozen = freeze_json(value, "value")
    assert frozen == found
    assert canonical(frozen) == canonical(found)
    if type(frozen) is ReadOnlyDict:
        assert {type(key) for key in frozen} == {str}


@pytest.mark.parametrize(
    "make",
    [
        lambda name: str(fnop.target("pods", name=name)),
        lambda name: fnop.get("pods", name=name).target.name,
        lambda name: fnop.list("pods", labels={"a": name}).label_selector,
        lambda name: fnop.list("pods", fields={"a": name}).field_selector,
        lambda name: fnop.event(name, "is there").reason,
        lambda name: fnop.event("There", name).message,
        lambda name: fnop.again(5, name).because,
        lambda name: fnop.patch(status={"a": name}, subresource=name).subresource,
        lambda name: fnop.log("info", name).message,
        lambda name: fnop.freeze(name).reason,
        lambda name: fnop.condition("Ready", True, "Red", name).message,
        lambda name: fnop.condition("Ready", True, name).reason,
        lambda name: fnop.condition(name, True).type,
    ],
)
def test_a_member_of_an_enumeration_is_its_text(make: Callable[[Any], Any]) -> None:
    found = make(Colour.RED)
    assert f"{found}" == make("red")
    assert type(found) is str


def test_the_text_of_an_exception_may_be_no_unicode() -> None:
    found = fnop.exception("Lost", exc=OSError("no file \udcff"))
    assert found.message == "no file ?"


def test_an_id_may_be_a_member_of_an_enumeration() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry, id=Colour.RED)
    async def create(**_: Any) -> int:
        await fnop.execute(fns={Colour.RED: lambda **_: 2})
        return 1

    run = Scenario(registry, [example()])
    assert run.settle()
    found = run.get("fnopexamples")
    assert found is not None
    assert found["status"]["red"] == 1
    assert found["status"]["red/red"] == 2


@pytest.mark.parametrize("given", [5, b"red", "\ud800"])
def test_an_id_that_is_no_text_is_refused(given: Any) -> None:
    def create(**_: Any) -> None: ...

    with pytest.raises(RegistrationError, match="id= is a handler's name, in Unicode"):
        fnop.on.create("fnopexamples", registry=Registry(), id=given)(create)


# -------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({1}, r"v\.a\[0\]: set is not a JSON value; .*, as in sorted\(value\)"),
        (datetime(2026, 1, 2, tzinfo=UTC), r"datetime .*, as in value\.isoformat\(\)"),
        (timedelta(1), r"timedelta .*, as in value\.total_seconds\(\)"),
        (Decimal(1), r"Decimal .*, as in str\(value\)"),
        (uuid.UUID(int=1), r"UUID .*, as in str\(value\)"),
        (Path("a"), r"PosixPath .*, as in str\(value\)"),
        (ipaddress.ip_address("::1"), r"IPv6Address .*, as in str\(value\)"),
        (b"a", r"bytes .*, as in base64"),
        (Bare.ONE, r"Bare .*, as in value\.value"),
        ({}.keys(), r"dict_keys .*, as in list\(value\)"),
        (object(), r"object is not a JSON value; use str, int"),
        (math.nan, r"v\.a\[0\]: nan is not a JSON number; leave it out"),
        (-math.inf, r"v\.a\[0\]: -inf is not a JSON number"),
        (2**63 + 1, r"v\.a\[0\]: an integer of 64 bits .*; write it as a text"),
        (10**400, r"v\.a\[0\]: an integer of 1329 bits"),
        ("\ud800", r"v\.a\[0\]: no Unicode text"),
        ({"\ud800": 1}, r"v\.a\[0\]: the key '\\ud800': no Unicode text"),
        ({(1, 2): 1}, r"v\.a\[0\]: the key tuple is not a string; use str\(\.\.\.\)"),
        ({math.nan: 1}, r"v\.a\[0\]: the key nan is not a string"),
        ({1: "a", "1": "b"}, r"v\.a\[0\]: two of its keys are '1' in JSON"),
        (cyclic(), r"v\.a\[0\]\.a\[0\]: it contains itself"),
        (nested(LEVELS_MAX), r"v\.a\[0\]\[0\].*: it is too deep, with more than 200"),
        (nested(100_000), r"v\.a\[0\]\[0\].*: it is too deep, with more than 200"),
    ],
)
def test_the_place_in_it_and_the_remedy_are_named(value: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        freeze_json({"a": [value]}, "v")


def test_a_cycle_with_something_else_that_is_wrong() -> None:
    found = cyclic()
    found["a"].insert(0, {1})
    with pytest.raises(TypeError, match=r"v\.a\[0\]: set is not a JSON value"):
        freeze_json(found, "v")


def outside(value: Any) -> Any:
    return {"\ud800": value}


def child(value: Any) -> dict[str, Any]:
    return {**example("child"), "spec": value}


def in_the_status(patch: Any, **_: Any) -> None:
    patch.status["x"] = BAD


def in_an_update(patch: Any, **_: Any) -> None:
    patch.spec.update(x=BAD)


def later_in_a_list(patch: Any, **_: Any) -> None:
    found: list[Any] = patch.status["deep"].setdefault("x", [])
    found.append(BAD)


def in_a_label(patch: Any, **_: Any) -> None:
    patch.metadata.labels["fine"] = "a"
    patch.metadata.labels["x"] = 5


def in_a_function(patch: Any, **_: Any) -> None:
    patch.fns.append(lambda body: body["spec"].update(x=BAD))


def in_a_result(**_: Any) -> Any:
    return {"x": BAD}


BAD = {"\ud800": 1}


@pytest.mark.parametrize(
    ("handler", "path", "offset"),
    [
        (in_the_status, "Patch.merge.status.x: the key", 1),
        (in_an_update, "Patch.merge.spec.x: the key", 1),
        (later_in_a_list, "Patch.merge.status.deep.x[0]: the key", 1),
        (in_a_label, "the label 'x' must be a text, not 5", 2),
        (in_a_function, "the object.spec.x: the key", 1),
        (in_a_result, "Return.value.x: the key", 0),
    ],
)
def test_what_is_checked_at_the_end_names_the_author_s_line(
    handler: Any, path: str, offset: int
) -> None:
    registry = Registry()
    fnop.on.create("fnopexamples", registry=registry, retries=1)(handler)
    run = Scenario(registry, [example()])
    assert run.settle()
    (line,) = [each.message for each in run.said if each.level == "error"]
    assert path in line
    assert f"{Path(__file__).name}:{handler.__code__.co_firstlineno + offset}" in line


@pytest.mark.parametrize(
    "make",
    [
        lambda: fnop.patch(status={"x": BAD}),
        lambda: fnop.patch(json=[{"op": "add", "path": "/spec/x", "value": BAD}]),
        lambda: fnop.apply(child(BAD)),
        lambda: fnop.create(child(BAD)),
        lambda: fnop.adopt(child(BAD)),
        lambda: fnop.desired(child(BAD)),
        lambda: fnop.desired(fnop.owned(child(BAD), example())),
        lambda: fnop.desired(status={"x": BAD}),
        lambda: fnop.call(outside, value=BAD),
        lambda: fnop.result(BAD),
        lambda: fnop.remember(x=BAD),
        lambda: fnop.log("info", "x", x=BAD),
        lambda: fnop.event("There", "\ud800"),
        lambda: fnop.condition("Ready", True, "Red", "\ud800"),
        lambda: fnop.again(5, "\ud800"),
    ],
)
def test_an_effect_refuses_it_where_it_is_built(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="no Unicode text"):
        make()


def test_an_answer_names_the_function() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry, retries=1)
    async def ask(**_: Any) -> None:
        await fnop.call(outside, value=1)

    run = Scenario(registry, [example()], calls={f"{__name__}:outside": outside})
    assert run.settle()
    (line,) = [each.message for each in run.said if each.level == "error"]
    assert f"{__name__}:outside" in line
    assert "its answer: the key" in line


def test_a_dataclass_is_written_field_by_field() -> None:
    assert freeze_json({"a": [Size(1)]}, "v") == {"a": [{"cpu": 1}]}
