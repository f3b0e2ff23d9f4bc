"""Definitions of kinds whose classes are Structs of msgspec."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
import pytest

import fnop
from fnop.adapters.definitions.classes import definitions_of
from fnop.adapters.definitions.problems import DefinitionProblem
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import Simulation


class Backup(msgspec.Struct, frozen=True, rename="camel"):
    keep_days: Annotated[int, msgspec.Meta(ge=1, le=9)] = 7
    schedule: Annotated[str, msgspec.Meta(pattern=r"^[0-9]+$", max_length=5)] = "1"


class Spec(msgspec.Struct, frozen=True):
    size: int
    """How large it is."""
    engine: Literal["postgres", "mysql"] = "postgres"
    backup: Backup | None = None
    hosts: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    since: datetime | None = None


@fnop.definition("structs.v1.example.com", conditions=False)
class Thing(msgspec.Struct, frozen=True):
    spec: Spec
    status: dict[str, Any] | None = None


@dataclass(frozen=True)
class PlainBackup:
    keepDays: Annotated[int, fnop.schema(minimum=1, maximum=9)] = 7
    schedule: Annotated[str, fnop.schema(pattern="^[0-9]+\\n?$", max_length=5)] = "1"


@dataclass(frozen=True)
class PlainSpec:
    size: int
    """How large it is."""
    engine: Literal["postgres", "mysql"] = "postgres"
    backup: PlainBackup | None = None
    hosts: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    since: datetime | None = None


@fnop.definition("plains.v1.example.com", conditions=False)
@dataclass(frozen=True)
class Plain:
    spec: PlainSpec
    status: dict[str, Any] | None = None


def schema_of(cls: type) -> Any:
    (found,) = definitions_of([cls])
    return found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_a_struct_has_the_schema_of_an_equal_dataclass() -> None:
    assert (
        schema_of(Thing)["properties"]["spec"]
        == (schema_of(Plain)["properties"]["spec"])
    )


def test_handlers_get_structs_of_what_the_server_has_accepted() -> None:
    registry, seen = Registry(), list[Spec]()

    @fnop.on.create(Thing, registry=registry)
    def made(spec: Spec, **_: Any) -> None:
        seen.append(spec)

    simulation = Simulation(registry)
    thing = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"size": 3, "backup": {"keepDays": 2}},
    }
    simulation.apply(thing).settle()
    assert seen == [Spec(3, backup=Backup(keep_days=2))]
    with pytest.raises(AssertionError, match="keepDays"):
        simulation.edit("structs/a", spec={"backup": {"keepDays": 10}})


class Listed(msgspec.Struct, array_like=True):
    a: int = 0


class Tagged(msgspec.Struct, tag="x"):
    a: int = 0


class Wanting(msgspec.Struct):
    a: int | None


class Spanning(msgspec.Struct):
    a: timedelta = timedelta()


class Misnamed(msgspec.Struct):
    a: Annotated[int, fnop.schema(name="b")] = 0


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        (Listed, "array_like=True"),
        (Tagged, "tag"),
        (Wanting, "removes a null"),
        (Spanning, "msgspec writes a timedelta as 'PT5M'"),
        (Misnamed, r"msgspec\.field\(name='b'\)"),
    ],
)
def test_what_msgspec_reads_otherwise_is_refused(inner: Any, why: str) -> None:
    outer = msgspec.defstruct("Outer", [("spec", inner)], module=__name__)
    with pytest.raises(DefinitionProblem, match=why):
        definitions_of([fnop.definition("outers.v1.example.com")(outer)])
