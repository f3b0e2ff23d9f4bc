"""The marks of annotated_types and pydantic in types, as keywords of a schema.

They are recognised by their names and attributes, as neither library is imported here.
A mark without a keyword is refused: the API server would store values that the model
refuses, or reads as other values.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fnop.adapters.definitions.patterns import Untranslatable, go_of_python, go_of_rust
from fnop.core.api.definitions import Schema

__all__ = [
    "change_of",
    "is_of_pydantic",
    "is_said",
    "judges_itself",
    "keywords_of",
    "objection_to",
    "strictness_of",
    "text_of_bytes",
    "uuid_pattern",
    "writes_itself",
]

_LIBRARIES = ("annotated_types", "msgspec", "pydantic")
# Marks that a schema expresses by their attributes, and marks that refuse nothing that
# a server admits. JSON has no infinity, and omitted fields are read all the same.
_SAID = {
    *("Gt", "Ge", "Lt", "Le", "Interval", "MultipleOf", "MinLen", "MaxLen", "Len"),
    *("StringConstraints", "FieldInfo", "_PydanticGeneralMetadata", "UuidVersion"),
    "Meta",
}
_HARMLESS = {
    *("DocInfo", "Unit", "Strict", "AllowInfNan", "FailFast", "Discriminator", "Tag"),
    *("WithJsonSchema", "SkipJsonSchema", "SkipValidation", "Examples"),
    *("SerializeAsAny", "_OnErrorOmit"),
}
_WRITERS = ("PlainSerializer", "WrapSerializer")
_ALWAYS_TRUE = (math.isfinite,)
_NEVER_TRUE = (math.isnan, math.isinf)
_SIZES = {"array": "Items", "object": "Properties"}
_CHANGES = ("strip_whitespace", "to_lower", "to_upper")
# The texts that a model reads as bytes (RFC 4648).
_BASE64 = {
    "Base64Encoder": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    "Base64UrlEncoder": "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?$",
}
_ASCII = r"^[\x00-\x7F]*$"


def text_of_bytes(value: bytes, pattern: str | None) -> str | None:
    """The text from which a model reads bytes; None if no such text exists.

    >>> text_of_bytes(b"a", None), text_of_bytes(b"a", _BASE64["Base64Encoder"])
    ('a', 'YQ==')
    """
    if pattern == _BASE64["Base64Encoder"]:
        return b64encode(value).decode()
    if pattern == _BASE64["Base64UrlEncoder"]:
        return urlsafe_b64encode(value).decode()
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def is_of_pydantic(mark: Any) -> bool:
    """Whether only pydantic reads a mark."""
    return type(mark).__module__.partition(".")[0] == "pydantic"


def is_said(marks: Iterable[Any]) -> bool:
    """Whether the author declares by `fnop.schema` what the server admits."""
    return any(
        each.rules or dict(each.keywords).keys() - {"description", "nullable"}
        for each in marks
        if isinstance(each, Schema)
    )


def objection_to(mark: Any, *, said: bool) -> str | None:
    """Why no schema can express a mark, and the remedy; None without an objection.

    `said` means that the author declares by `fnop.schema` what a validator admits.
    """
    kind = mark if isinstance(mark, type) else type(mark)
    name = kind.__name__
    is_foreign = kind.__module__.partition(".")[0] in _LIBRARIES
    if not is_foreign and not hasattr(mark, "__get_pydantic_core_schema__"):
        return None
    if name == "FieldInfo":
        found = (objection_to(each, said=said) for each in mark.metadata)
        return next(filter(None, found), None)
    if name == "Json":
        return (
            "the model reads it from a text in JSON, and a schema has the type itself; "
            "leave Json out"
        )
    if said or name in _SAID or name in _HARMLESS:
        return None
    if name in ("Predicate", "Not") and _holds_for_json(mark):
        return None
    if name == "EncodedBytes" and _encoder(mark) in _BASE64:
        return None
    if name == "EncodedStr":
        return (
            "the model reads texts from it, and an API server cannot tell whether the "
            "bytes in it are one; take pydantic.Base64Bytes"
        )
    if name in _WRITERS:
        return writes_itself(name)
    return judges_itself(name)


def judges_itself(name: str) -> str:
    """The objection to an author's code that judges the values that a model reads."""
    return (
        f"the model judges it by {name}, which a schema cannot say; say what the API "
        "server admits by fnop.schema(pattern=..., rules=[...]) next to it, or leave "
        f"{name} out"
    )


def writes_itself(name: str) -> str:
    """The objection to an author's code that makes the values that a model writes."""
    return (
        f"the model writes it by {name}, so that an API server may refuse what it "
        "writes; leave it out, or say by fnop.schema(pattern=..., rules=[...]) what is "
        "written"
    )


def _holds_for_json(predicate: Any) -> bool:
    function = getattr(predicate, "func", None)
    negated = getattr(function, "func", None)
    return function in _ALWAYS_TRUE or negated in _NEVER_TRUE


def _encoder(mark: Any) -> str:
    return str(getattr(mark.encoder, "__name__", ""))


def strictness_of(marks: Iterable[Any], config: Mapping[str, Any]) -> bool:
    """Whether a model refuses a text in place of a value of another type."""
    found = [
        each.strict
        for mark in marks
        for each in (mark, *(getattr(mark, "metadata", None) or ()))
        if isinstance(getattr(each, "strict", None), bool)
    ]
    return bool(found[-1] if found else config.get("strict"))


def change_of(marks: Iterable[Any], config: Mapping[str, Any]) -> str | None:
    """A change of a text that a model makes before it judges it."""
    found = [
        each
        for each in _CHANGES
        for mark in marks
        if type(mark).__module__.startswith("pydantic") and getattr(mark, each, None)
    ]
    of_all = [f"str_{each}" for each in _CHANGES if config.get(f"str_{each}")]
    return next(iter([*found, *of_all]), None)


def keywords_of(
    mark: Any, kind: str, config: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """The keywords of a mark for a schema of a type.  Raises `Untranslatable`."""
    if type(mark).__module__.partition(".")[0] not in _LIBRARIES:
        return
    for inner in getattr(mark, "metadata", None) or ():  # pydantic's Field(...)
        yield from keywords_of(inner, kind, config)
    sizes = _SIZES.get(kind, "Length")
    for attribute, keywords in (
        ("ge", ("minimum",)),
        ("gt", ("minimum", "exclusiveMinimum")),
        ("le", ("maximum",)),
        ("lt", ("maximum", "exclusiveMaximum")),
        ("multiple_of", ("multipleOf",)),
        ("min_length", (f"min{sizes}",)),
        ("max_length", (f"max{sizes}",)),
        ("description", ("description",)),
    ):
        value = getattr(mark, attribute, None)
        if value is None or (attribute == "min_length" and value == 0):
            continue
        limit, *flags = keywords
        yield limit, value
        yield from ((flag, True) for flag in flags)
    if (pattern := _pattern(mark, config)) is not None:
        yield "pattern", pattern


def _pattern(mark: Any, config: Mapping[str, Any]) -> str | None:
    """The pattern of a mark, in the API server's syntax."""
    given, is_ascii = getattr(mark, "pattern", None), getattr(mark, "ascii_only", None)
    if given is not None and is_ascii:
        raise Untranslatable(
            "it is about ASCII besides, and a schema has one pattern; let the pattern "
            "say it, without ascii_only"
        )
    is_of_msgspec = type(mark).__module__.partition(".")[0] == "msgspec"
    is_of_python = is_of_msgspec or config.get("regex_engine") == "python-re"
    if isinstance(given, str) and is_of_python:
        given = re.compile(given)
    if isinstance(given, re.Pattern):
        return go_of_python(given)
    if given is not None:
        return go_of_rust(given)
    if is_ascii:
        return _ASCII
    if type(mark).__name__ == "EncodedBytes":
        return _BASE64.get(_encoder(mark))
    version = getattr(mark, "uuid_version", None)
    return None if version is None else uuid_pattern(str(version))


def uuid_pattern(version: str = "[0-9A-Fa-f]") -> str:
    """The pattern of the UUIDs of a version, with all dashes, as models read them."""
    digit = "[0-9A-Fa-f]"
    return (
        f"^{digit}{{8}}-{digit}{{4}}-{version}{digit}{{3}}-{digit}{{4}}-{digit}{{12}}$"
    )
