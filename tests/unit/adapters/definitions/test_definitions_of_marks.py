"""Marks of pydantic and annotated_types: a definition expresses them, or is refused.

The law: the model reads every value that the server admits, and the server admits every
value that the model writes.
"""

from __future__ import annotations

import itertools
import math
import re
import uuid
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import date, datetime
from typing import Annotated, Any

import annotated_types
import pydantic
import pydantic.networks
import pydantic.types
import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WrapSerializer,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

import fnop
from fnop.adapters.definitions.classes import DefinitionProblem, definitions_of
from tests.conformance.servers import DEFINITIONS
from tests.conformance.suite import Simulated

UUIDS = [f"c0ffee00-0000-{each}000-8000-000000000000" for each in range(10)]
VALUES: list[Any] = [
    *(True, -1, 0, 1, 0.5, 10**6),
    *("", "a", "A", "aB1", "é", "5", "٣", " x ", "a\n", "YQ==", "YQ", "/w==", "_w=="),
    *("{}", "1", "/tmp", "os.path", "http://a.b", "a@b.c", "1.2.3.4", "1.2.3.4/8"),
    *("2026-01-02", "0000-01-02", "2026-01-02T03:04:05Z", "0000-01-02T03:04:05Z"),
    *("2026-01-02T03:04:05+99:99", "2026-01-02T03:04:05x5Z", "2026-01-02T03:04:05"),
    *("2026-01-02T03:04:05.123+05:30", "4242424242424242", *UUIDS),
    *("c0ffee000000-4000-8000-000000000000", uuid.UUID(int=1).hex),
    *([], [1], ["a"], {}, {"a": 1}),
]


def served(model: Any) -> Callable[[Any], int]:
    """The status of a server's answer to an object with a field of a model."""
    cls = make_dataclass("Thing", [("spec", model)])
    (definition,) = definitions_of([fnop.definition("things.v1.example.com")(cls)])
    server, numbers = Simulated(), itertools.count()
    assert server.raw("POST", DEFINITIONS, definition)[0] == 201
    path = "/apis/example.com/v1/namespaces/default/things"

    def create(value: Any) -> int:
        metadata = {"name": f"thing-{next(numbers)}"}
        body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata}
        return server.raw("POST", path, {**body, "spec": {"a": value}})[0]

    return create


def of_field(hint: Any, config: ConfigDict | None = None) -> Any:
    return pydantic.create_model("Made", __config__=config, a=(hint, ...))


def refusal_of(model: Any) -> str:
    with pytest.raises(DefinitionProblem) as found:
        served(model)
    assert "\n" not in str(found.value)
    return str(found.value)


def check_law(model: Any) -> None:
    """Check the law for all values."""
    create = served(model)
    for value in VALUES:
        # For a text with a format, a server takes any list (kube-openapi: type.go).
        if isinstance(value, list) or create(value) != 201:
            continue
        one = model(a=value)
        dumped = one.model_dump(mode="json")
        assert create(dumped["a"]) == 201, (value, dumped)
        assert model(**dumped) == one, (value, dumped)
    for value in VALUES:
        try:
            dumped = model(a=value).model_dump(mode="json")
        except (ValueError, TypeError):
            continue
        # A moment without a zone is invalid for a server, but pydantic's datetime
        # accepts it.
        is_naive = isinstance(getattr(model(a=value), "a", None), datetime) and (
            model(a=value).a.tzinfo is None
        )
        assert is_naive or create(dumped["a"]) == 201, (value, dumped)


TYPES = {
    **{
        name: getattr(module, name)
        for module in (pydantic.types, pydantic.networks)
        for name in module.__all__
    },
    **{
        f"{name}[float]": getattr(annotated_types, name)[float]
        for name in ("IsFinite", "IsNotFinite", "IsNan", "IsNotNan", "IsInfinite")
    },
    **{
        f"{name}[str]": getattr(annotated_types, name)[str]
        for name in ("LowerCase", "UpperCase", "IsDigits")
    },
    "IsNotInfinite[float]": annotated_types.IsNotInfinite[float],
    "Json[int]": pydantic.Json[int],
    "ascii": Annotated[str, StringConstraints(ascii_only=True)],
    "bytes": bytes,
    "date": date,
    "datetime": datetime,
    "uuid": uuid.UUID,
    "strict date": Annotated[date, Field(strict=True)],
    "strict set": Annotated[set[int], Field(strict=True)],
    "timezone": Annotated[datetime, annotated_types.Timezone(...)],
    "omitted": list[pydantic.OnErrorOmit[int]],
}


# Those that a definition says; any other may be refused.
SAID = (
    *("UUID1", "UUID4", "UUID8", "Base64Bytes", "Base64UrlBytes", "AwareDatetime"),
    *("PositiveInt", "FiniteFloat", "StrictStr", "IsFinite[float]", "IsNotNan[float]"),
    *("ascii", "bytes", "date", "datetime", "uuid"),
)


@pytest.mark.parametrize("name", TYPES)
def test_each_type_is_said_exactly_or_refused(name: str) -> None:
    try:
        model = of_field(TYPES[name])
    except Exception:
        return  # no type of a field
    problem = problem_of(model)
    if problem is None:
        check_law(model)
    else:
        assert name not in SAID
        assert problem.startswith(("Made.a: ", f"{name}."))
        assert "; " in problem


def problem_of(model: Any) -> str | None:
    try:
        served(model)
    except DefinitionProblem as problem:
        return str(problem)
    return None


@pytest.mark.parametrize(
    ("hint", "default", "text"),
    [
        (bytes, b"a", "a"),
        (bytes, b"", ""),
        (pydantic.Base64Bytes, b"\xfb\xff", "+/8="),
        (pydantic.Base64UrlBytes, b"\xfb\xff", "-_8="),
        (pydantic.Base64Bytes, b"", ""),
        (list[bytes], [b"a"], ["a"]),
        (dict[str, list[pydantic.Base64Bytes]], {"x": [b"\xfb"]}, {"x": ["+w=="]}),
        (tuple[bytes, ...], (b"a", b"b"), ["a", "b"]),
    ],
)
def test_the_default_of_bytes_is_the_text_that_the_model_reads(
    hint: Any, default: Any, text: Any
) -> None:
    model = pydantic.create_model("Made", a=(hint, default))
    cls = make_dataclass("Thing", [("spec", model)])
    (definition,) = definitions_of([fnop.definition("things.v1.example.com")(cls)])
    (version,) = definition["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["a"]["default"] == text
    assert model(a=text) == model()


def test_bytes_that_no_text_stands_for_are_refused() -> None:
    model = pydantic.create_model("Made", a=(list[bytes], [b"\xff"]))
    assert "its default has the bytes b'\\xff'" in refusal_of(model)


def above(value: Any) -> Any:
    if value < 2:
        raise ValueError("too small")
    return value


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        (Annotated[int, AfterValidator(above)], "judges it by AfterValidator"),
        (Annotated[int, BeforeValidator(above)], "judges it by BeforeValidator"),
        (Annotated[int, annotated_types.Predicate(above)], "judges it by Predicate"),
        (Annotated[int, Field(ge=1), AfterValidator(above)], "by AfterValidator"),
        (list[Annotated[int, AfterValidator(above)]], "judges it by AfterValidator"),
        (Annotated[int, PlainSerializer(str)], "writes it by PlainSerializer"),
        (Annotated[int, WrapSerializer(lambda v, h: h(v))], "by WrapSerializer"),
        (pydantic.Base64Str, "take pydantic.Base64Bytes"),
        (Annotated[int, Field(exclude_if=bool)], r"does not write it \(exclude=\)"),
        (
            Annotated[pydantic.Json[int], fnop.schema(minimum=1)],
            "reads it from a text in JSON",
        ),
        (
            Annotated[int, AfterValidator(above), fnop.schema(description="Big.")],
            "judges it by AfterValidator",
        ),
        (
            Annotated[
                str, StringConstraints(strip_whitespace=True), Field(min_length=1)
            ],
            r"changes a text before it judges it \(strip_whitespace\)",
        ),
    ],
    ids=lambda each: re.sub(r" at 0x\w+", "", str(each)),
)
def test_code_that_no_schema_says_is_refused(hint: Any, problem: str) -> None:
    with pytest.raises(DefinitionProblem, match=rf"^Made\.a: .*{problem}"):
        served(of_field(hint))


@pytest.mark.filterwarnings("ignore:.json_encoders. is deprecated")
@pytest.mark.parametrize(
    ("hint", "config", "problem"),
    [
        (Annotated[str, Field(min_length=1)], {"str_strip_whitespace": True}, "str_st"),
        (str, {"str_to_lower": True, "str_max_length": 2}, "str_to_lower"),
        (uuid.UUID, {"strict": True}, "is strict"),
        (bytes, {"ser_json_bytes": "base64"}, "ser_json_bytes"),
        (datetime, {"ser_json_temporal": "seconds"}, "ser_json_temporal"),
        (int, {"json_encoders": {int: str}}, "json_encoders"),
    ],
    ids=lambda each: re.sub(r" at 0x\w+", "", str(each)),
)
def test_settings_that_no_schema_says_are_refused(
    hint: Any, config: Any, problem: str
) -> None:
    assert problem in refusal_of(of_field(hint, config))


class Judging(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def must_be_large(cls, value: int) -> int:
        return int(above(value))


class JudgingAll(BaseModel):
    a: int

    @field_validator("*")
    @classmethod
    def must_be_large(cls, value: int) -> int:
        return int(above(value))


class Writing(BaseModel):
    a: int

    @field_serializer("a")
    def as_text(self, value: int) -> str:
        return str(value)


class Whole(BaseModel):
    a: int

    @model_validator(mode="after")
    def must_be_large(self) -> Whole:
        above(self.a)
        return self


class WritingWhole(BaseModel):
    a: int

    @model_serializer
    def as_text(self) -> dict[str, str]:
        return {"a": str(self.a)}


class Extras(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    a: int


class SchemaOfItsOwn(BaseModel):
    a: int

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(source)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (Extras, "Extras.__pydantic_extra__: the model judges fields"),
        (SchemaOfItsOwn, "SchemaOfItsOwn: the model judges it by __get_pydantic_core"),
        (Judging, "Judging.a: the model judges it by must_be_large"),
        (JudgingAll, "JudgingAll.a: the model judges it by must_be_large"),
        (Writing, "Writing.a: the model writes it by as_text"),
        (Whole, "Whole: the model judges it by must_be_large"),
        (WritingWhole, "WritingWhole: the model writes it by as_text"),
    ],
)
def test_decorators_that_no_schema_says_are_refused(model: Any, problem: str) -> None:
    assert refusal_of(model).startswith(problem)


class Said(BaseModel):
    a: Annotated[int, fnop.schema(minimum=2)]

    @field_validator("a")
    @classmethod
    def must_be_large(cls, value: int) -> int:
        return int(above(value))


@fnop.schema(rules=[fnop.rule("self.a >= 2")])
class SaidWhole(BaseModel):
    a: int

    @model_validator(mode="after")
    def must_be_large(self) -> SaidWhole:
        above(self.a)
        return self


@pytest.mark.parametrize(
    "model",
    [
        Said,
        SaidWhole,
        of_field(Annotated[int, AfterValidator(above), fnop.schema(minimum=2)]),
    ],
)
def test_what_the_author_says_stands_for_code(model: Any) -> None:
    assert check_law_of_admitted(model)


def check_law_of_admitted(model: Any) -> int:
    create = served(model)
    admitted = [each for each in VALUES if create(each) == 201]
    assert all(math.isfinite(model(a=each).a) for each in admitted)
    return len(admitted)
