"""From Python types to structural schemas, as the API server requires them.

A structural schema gives each value one type and knows no references. So some types
have no schema: unions of types, and recursive classes. These are refused in a sentence
that names the class, the field, and the remedy.
"""

from __future__ import annotations

import math
import uuid
from collections import abc
from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from enum import Enum, Flag
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from fnop.adapters.definitions.patterns import Untranslatable
from fnop.adapters.definitions.type_defaults import (
    default_of,
    plain_value,
    without_defaults,
)
from fnop.adapters.definitions.type_fields import (
    Field,
    description_of,
    fields_of,
    is_model,
    is_record,
    is_root_model,
    is_struct,
    keeps_unknown,
    model_config,
)
from fnop.adapters.definitions.type_marks import (
    change_of,
    is_of_pydantic,
    is_said,
    keywords_of,
    objection_to,
    strictness_of,
    uuid_pattern,
)
from fnop.adapters.definitions.type_places import Node, Place
from fnop.core.api.definitions import OPTIONS, Rule, Schema, schema_marks
from fnop.core.values.errors import joined
from fnop.effects.hints import admits_none, unwrapped
from fnop.effects.structs import replace

__all__ = ["OBJECT", "rule_of", "schema_of_class"]

_KEEPS = "x-kubernetes-preserve-unknown-fields"
_ANYTHING: Node = {_KEEPS: True}
OBJECT: Node = {"type": "object", _KEEPS: True}
_NUMBER_OR_TEXT: Node = {"x-kubernetes-int-or-string": True}

_PLAIN: dict[Any, Node] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
}
_ZONE = "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
# Python's years begin with 1, the server's with 0.
_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
# The texts that pydantic reads: formats admit more texts, and bytes are any text.
_IN_MODELS: dict[Any, Node] = {
    bytes: {"type": "string"},
    datetime: {
        **_PLAIN[datetime],
        "pattern": rf"^{_YEAR}-[0-9-]{{5}}[Tt][0-9:]{{8}}(\.[0-9]+)?{_ZONE}$",
    },
    date: {**_PLAIN[date], "pattern": f"^{_YEAR}-"},
    uuid.UUID: {**_PLAIN[uuid.UUID], "pattern": uuid_pattern()},
}
_LISTS = (list, tuple, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_UNIONS = (Union, UnionType)
# The type of a schema by the type of the values that are listed in it.
_ENUMERABLE = {str: "string", bool: "boolean", int: "integer", float: "number"}


def schema_of_class(
    cls: type, around: tuple[type, ...] = (), *, without: Collection[str] = ()
) -> Node:
    """The schema of a class with fields, except for those in `without`.

    Raises `DefinitionProblem`.
    """
    node: Node = {"type": "object"}
    if text := description_of(cls):
        node["description"] = text
    if keeps_unknown(cls):
        node[_KEEPS] = True
    properties: Node = {}
    fields = [each for each in fields_of(cls) if each.name not in without]
    for field in fields:
        place = Place(cls, field.attribute, (*around, cls))
        if field.name in properties:
            raise place.problem(f"another field is {field.name}, too; rename one")
        properties[field.name] = _property(field, place)
    if required := [each.name for each in fields if each.required]:
        node["required"] = required
    if properties:
        node["properties"] = properties
    for mark in schema_marks(cls):
        _add(node, mark, Place(cls, "", around))
    return node


def _property(field: Field, place: Place) -> Node:
    node = _schema_of(field.hint, place, field.marks)
    if field.description:
        node["description"] = field.description
    if field.default is not None:
        value = default_of(field.default.value, place, node)
        node["default"] = without_defaults(value, node)
    return node


# --------------------------------------------------------------------------- types


def _schema_of(hint: Any, place: Place, more: tuple[Any, ...] = ()) -> Node:
    """The schema of a type, with its marks, and `more` marks of its field."""
    inner, its, _, aliases = unwrapped(hint)
    marks = (*its, *more)
    for alias in aliases:
        if alias in place.around:
            raise place.problem(_ENDLESS.format(alias))
    around = (*place.around, *aliases)
    is_marked = place.is_marked or any(map(is_of_pydantic, marks))
    place = replace(place, around=around, is_marked=is_marked)
    _check_marks(inner, marks, place)
    node = _bare_schema_of(inner, place)
    for mark in marks:
        _add(node, mark, place)
    if change := _needless_change(node, change_of(marks, model_config(place.cls))):
        raise place.problem(
            f"the model changes a text before it judges it ({change}), and an API "
            "server does not; leave it out, and change the text in the handler"
        )
    return node


def _needless_change(node: Node, change: str | None) -> str | None:
    """The change, if a text is judged after it."""
    is_text = node.get("type") == "string" and not node.keys() & {"format", "enum"}
    is_judged = node.keys() & {"pattern", "minLength", "maxLength"}
    return change if is_text and is_judged else None


def _check_marks(hint: Any, marks: tuple[Any, ...], place: Place) -> None:
    """Refuse marks that no schema expresses, unless the author declares one."""
    said = is_said(marks)
    for objection in filter(None, (objection_to(each, said=said) for each in marks)):
        raise place.problem(objection)
    if not place.is_of_model:
        return
    if _is_textual(hint) and strictness_of(marks, model_config(place.cls)):
        raise place.problem(
            f"the model is strict, and reads no {_hint_text(hint)} from what a handler "
            "has, which is JSON; write Field(strict=False), or take a type of JSON"
        )
    lengths = ("min_length", "max_length")
    is_long = any(
        getattr(m, each, None) for m in _iter_marks(marks) for each in lengths
    )
    if hint is bytes and is_long:
        raise place.problem(_OF_BYTES)


def _iter_marks(marks: tuple[Any, ...]) -> Iterator[Any]:
    """The marks, and those inside of pydantic's Field(...)."""
    for mark in marks:
        yield mark
        yield from getattr(mark, "metadata", None) or ()


_OF_BYTES = (
    "its length is that of its bytes, and an API server counts the letters of "
    "their base64, or of their text; leave it out, or say it by fnop.schema"
)


def _is_textual(hint: Any) -> bool:
    """Whether JSON has a text or a list for it, but Python a type of its own."""
    origin = get_origin(hint) or hint
    is_enum = isinstance(hint, type) and issubclass(hint, Enum)
    is_plain = isinstance(hint, abc.Hashable) and hint in _OF_OWN
    return is_enum or is_plain or origin is tuple or origin in _SETS


_OF_OWN = (bytes, datetime, date, timedelta, uuid.UUID)


_ENDLESS = (
    "{} is inside of itself, and a structural schema has an end; take Any for the "
    "inner one, or a class for each level"
)


def _bare_schema_of(hint: Any, place: Place) -> Node:
    if (node := _plain_schema_of(hint, place)) is not None:
        return node
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin in _UNIONS:
        return _union_schema(args, place)
    if origin is Literal:
        return _choice_schema([each for each in args if each is not None], place)
    if origin in _LISTS:
        return {"type": "array", "items": _list_schema(origin, args, place)}
    if origin in _SETS:
        items = _list_schema(origin, args, place)
        return {"type": "array", "items": items, "x-kubernetes-list-type": "set"}
    if origin in _MAPPINGS:
        return _mapping_schema(args, place)
    if (node := _class_schema_of(hint, place)) is not None:
        return node
    if is_record(origin):
        raise place.problem(
            f"{_hint_text(hint)} is a generic class, whose parameters are not "
            "followed; take a class with the types written out"
        )
    raise place.problem(
        f"{_hint_text(hint)} has no schema; take a dataclass, a TypedDict, or a type "
        "that JSON has, and Any for a value of any form"
    )


def _class_schema_of(hint: Any, place: Place) -> Node | None:
    """The schema of an Enum or of a class with fields; None for other types."""
    if isinstance(hint, type) and issubclass(hint, Flag):
        raise place.problem(
            f"{_hint_text(hint)} has flags, whose sums are values as well; take a set "
            "of an Enum"
        )
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice_schema([each.value for each in hint], place)
    if is_root_model(hint):
        return _root_schema(hint, place)
    return _record_schema(hint, place) if is_record(hint) else None


def _plain_schema_of(hint: Any, place: Place) -> Node | None:
    if _is_aware(hint):
        hint = datetime
    if not isinstance(hint, abc.Hashable) or hint not in _PLAIN:
        return None
    node = _IN_MODELS.get(hint) if place.is_of_model else None
    return {**(node or _PLAIN[hint]), **_config_keywords(hint, place)}


# The limits of all texts of a model, by the settings of pydantic.
_OF_TEXTS = {"str_min_length": "minLength", "str_max_length": "maxLength"}


def _config_keywords(hint: Any, place: Place) -> Node:
    """Keywords of a plain type by the settings of the model around it."""
    if hint is timedelta and (is_model(place.cls) or is_struct(place.cls)):
        library = "pydantic" if is_model(place.cls) else "msgspec"
        raise place.problem(
            f"{library} writes a timedelta as 'PT5M', and the API server takes '5m' "
            "(format duration); take an int of seconds, or a dataclass"
        )
    if hint in _WRITTEN and (setting := _setting_of(hint, place)):
        raise place.problem(
            f"by {setting} in its config the model writes no {_WRITTEN[hint]}; leave "
            "it out"
        )
    config = model_config(place.cls) if hint is str else {}
    limits = {word: config.get(name) for name, word in _OF_TEXTS.items()}
    return {word: limit for word, limit in limits.items() if limit}


# The form in which an API server stores a value, and the settings that change it.
_WRITTEN = {bytes: "plain text", datetime: "text of RFC 3339", date: "text of RFC 3339"}


def _setting_of(hint: Any, place: Place) -> str | None:
    """The setting of a model by which it writes a value in another form."""
    plain = {"ser_json_bytes": "utf8", "val_json_bytes": "utf8"}
    if hint is not bytes:
        plain = {"ser_json_temporal": "iso8601"}
    config = model_config(place.cls)
    return next((k for k, v in plain.items() if config.get(k, v) != v), None)


def _is_aware(hint: Any) -> bool:
    """Whether it is pydantic's datetime with a time zone, as the format requires."""
    module, name = (getattr(hint, each, "") for each in ("__module__", "__name__"))
    return name == "AwareDatetime" and str(module).startswith("pydantic")


def _root_schema(cls: type, place: Place) -> Node:
    """The schema of a root model, which is its root's schema, as in objects."""
    if cls in place.around:
        raise place.problem(_ENDLESS.format(cls.__qualname__))
    (root,) = fields_of(cls)
    inner = Place(cls, root.attribute, (*place.around, cls))
    text = description_of(cls)
    return _property(replace(root, default=None, description=text), inner)


def _record_schema(cls: type, place: Place) -> Node:
    if cls in place.around:
        raise place.problem(_ENDLESS.format(cls.__qualname__))
    return schema_of_class(cls, place.around)


def _list_schema(origin: Any, args: tuple[Any, ...], place: Place) -> Node:
    if origin is tuple and args and not (len(args) == 2 and args[1] is ...):
        raise place.problem(
            "a tuple with a type for each place has no structural schema; take "
            "tuple[X, ...] or list[X], or a class with a field for each"
        )
    return _element_schema(args[0], place) if args else dict(_ANYTHING)


def _element_schema(hint: Any, place: Place) -> Node:
    """The schema of an entry of a list or a mapping, which cannot be missing."""
    node = _schema_of(hint, place)
    if admits_none(hint) and node != _ANYTHING:
        if "enum" in node:
            raise place.problem(
                f"the entries {_hint_text(hint)} are listed values or None, and a "
                "server takes no null beside listed values; leave None out"
            )
        node["nullable"] = True
    return node


def _mapping_schema(args: tuple[Any, ...], place: Place) -> Node:
    if not args:
        return dict(OBJECT)
    keys = _schema_of(args[0], place)
    if keys.get("type") != "string":
        raise place.problem(
            f"the keys of a mapping are texts, and {_hint_text(args[0])} is none; take "
            "dict[str, X]"
        )
    if is_model(place.cls) and keys != {"type": "string"}:
        raise place.problem(
            f"the model reads no other keys than {_hint_text(args[0])}, and a schema "
            "cannot say which keys there are; take dict[str, X], or a class with a "
            "field for each"
        )
    values = _element_schema(args[1], place)
    if values == _ANYTHING:
        return dict(OBJECT)
    return {"type": "object", "additionalProperties": values}


def _choice_schema(values: list[Any], place: Place) -> Node:
    """The schema of a choice among some values."""
    if not values:
        raise place.problem("it has no values; write them, or take str")
    found = {_ENUMERABLE.get(type(plain_value(each))) for each in values}
    for each in map(plain_value, values):
        if isinstance(each, float) and not math.isfinite(each):
            raise place.problem(
                f"the value {each!r} is nothing that JSON has; leave it out"
            )
    if len(found) != 1 or None in found:
        raise place.problem(
            f"the values {joined([repr(each) for each in values])} are not of one "
            "type, as a schema has it; list texts only, or numbers only"
        )
    return {"type": found.pop(), "enum": [plain_value(each) for each in values]}


def _union_schema(args: tuple[Any, ...], place: Place) -> Node:
    """The schema of a union, if one schema can express it.

    None is ignored: a field that may be None is a field that may be missing
    (`fnop.adapters.definitions.type_fields`).
    """
    found = [_schema_of(each, place) for each in args if each not in (None, NoneType)]
    if len(found) == 1:
        return found[0]
    kinds = {each.get("type") for each in found}
    if all(each.keys() == {"type", "enum"} for each in found) and len(kinds) == 1:
        values = [value for each in found for value in each["enum"]]
        return {**found[0], "enum": [*dict.fromkeys(values)]}
    bare = [each for each in found if each.keys() == {"type"}]
    if len(bare) == len(found) and kinds == {"integer", "string"}:
        return dict(_NUMBER_OR_TEXT)
    if len(bare) == len(found) and kinds == {"integer", "number"}:
        return {"type": "number"}
    shown = " | ".join(_hint_text(each) for each in args)
    raise place.problem(
        f"{shown} is a choice between types, which a structural schema cannot say; "
        "take one type, a class with an optional field for each, fnop.IntOrString for "
        "a number or a text, or Any"
    )


def _hint_text(hint: Any) -> str:
    if isinstance(hint, type) and not get_args(hint):
        return hint.__qualname__ if hint is not NoneType else "None"
    return str(hint)


# --------------------------------------------------------------------------- marks

_NUMBERS, _TEXTS = ("integer", "number"), ("string",)
_OBJECTS = ("x-kubernetes-map-type", "x-kubernetes-embedded-resource", _KEEPS)
# The types that a keyword applies to; for other types the server ignores it.
_ABOUT: dict[str, tuple[str, ...]] = {
    "format": (*_NUMBERS, *_TEXTS),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        _NUMBERS,
    ),
    **dict.fromkeys(("pattern", "minLength", "maxLength"), _TEXTS),
    **dict.fromkeys(("minItems", "maxItems"), ("array",)),
    **dict.fromkeys(("minProperties", "maxProperties"), ("object",)),
    **dict.fromkeys(
        ("x-kubernetes-list-type", "x-kubernetes-list-map-keys"), ("array",)
    ),
    **dict.fromkeys(_OBJECTS, ("object",)),
}


def _add(node: Node, mark: Any, place: Place) -> None:
    """Add the keywords of a mark to the schema of a type. Raises `DefinitionProblem`.

    Marks of unknown libraries are ignored, as Python requires.
    """
    if isinstance(mark, Schema):
        keywords = dict(mark.keywords)
        if mark.rules:
            rules = [*node.get("x-kubernetes-validations", ()), *mark.rules]
            node["x-kubernetes-validations"] = [
                each if isinstance(each, dict) else rule_of(each) for each in rules
            ]
    else:
        keywords = _keywords_of(mark, node, place)
        lengths = keywords.keys() & {"minLength", "maxLength"}
        if node.get("format") == "byte" and lengths:
            raise place.problem(_OF_BYTES)
    for keyword, value in keywords.items():
        _check_keyword(node, keyword, place)
        _check_value(keyword, value, place)
    is_number = node.get("type") == "number"
    keywords = (_number_keywords if is_number else _integer_keywords)(keywords, place)
    for keyword, value in keywords.items():
        if keyword == "x-kubernetes-embedded-resource" and "properties" not in node:
            node[_KEEPS] = True  # the server requires one or the other
        node[keyword] = [*value] if isinstance(value, tuple) else value


def _keywords_of(mark: Any, node: Node, place: Place) -> Node:
    try:
        return dict(keywords_of(mark, node.get("type", ""), model_config(place.cls)))
    except Untranslatable as problem:
        raise place.problem(f"its pattern: {problem}") from None


_INT64_MAX = 2**63 - 1


def _integer_keywords(keywords: Node, place: Place) -> Node:
    """Keywords without the limits that all integers of 64 bits keep.

    A server has limits as float64 and compares integers with the int64 of these. 2**63
    becomes the least integer, and all others are above it (kube-openapi: MaximumInt).
    Raises `DefinitionProblem` for limits that this changes.
    """
    found = dict(keywords)
    top, low = found.get("maximum"), found.get("minimum")
    if top is not None and top + 1 - found.get("exclusiveMaximum", 0) > _INT64_MAX:
        found = {k: v for k, v in found.items() if k not in _UPPER}
    if low is not None and low - 1 + found.get("exclusiveMinimum", 0) < -_INT64_MAX - 1:
        found = {k: v for k, v in found.items() if k not in _LOWER}
    for keyword in ("maximum", "minimum", "multipleOf"):
        value = found.get(keyword, 0)
        if float(value) != value or value % 1 or value > _INT64_MAX:
            raise place.problem(
                f"{OPTIONS[keyword]}={value} is rounded by an API server; take a whole "
                "number that a float holds, such as 2**53"
            )
    return found


def _number_keywords(keywords: Node, place: Place) -> Node:
    """Keywords whose limits hold for whole numbers, too.

    A server compares these with the whole part of a limit. So 0 is not less than a
    minimum of 0.5, and 2 is not below an exclusive maximum of 2.5 (kube-openapi:
    MinimumInt). If that matters, the limit is the float next to it.
    """
    found = dict(keywords)
    for limit, flag, outwards in (
        ("minimum", "exclusiveMinimum", -math.inf),
        ("maximum", "exclusiveMaximum", math.inf),
    ):
        value, is_exclusive = found.get(limit, 0), bool(found.get(flag))
        if value > _INT64_MAX:
            raise place.problem(
                f"{OPTIONS[limit]}={value} has more than 64 bits, to which an API "
                "server cuts it for whole numbers; take a smaller one, or none"
            )
        if value % 1 and (value * outwards < 0) != is_exclusive:
            found[limit] = math.nextafter(
                value, -outwards if is_exclusive else outwards
            )
            found.pop(flag, None)
            found |= {} if is_exclusive else {flag: True}
    if found.get("multipleOf", 1) % 1:
        raise place.problem(
            f"multiple_of={found['multipleOf']} is cut to a whole number by an API "
            "server when it divides one; take an int of a smaller unit"
        )
    return found


_UPPER, _LOWER = ("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")
_WORDS = {"array": "lists", "object": "objects", "string": "texts"}


def _check_keyword(node: Node, keyword: str, place: Place) -> None:
    """Refuse a keyword for other types; a keyword for objects makes it an object."""
    kinds = {node.get("type", "")}
    if keyword in _OBJECTS and kinds == {""}:
        node["type"] = "object"
        return
    if _NUMBER_OR_TEXT.items() <= node.items():
        kinds = {"integer", "string"}
    about = _ABOUT.get(keyword)
    if about is not None and kinds.isdisjoint(about):
        words = joined([*dict.fromkeys(_WORDS.get(each, "numbers") for each in about)])
        (kind,) = kinds
        shown = f"of type {kind}" if kind else "of any type"
        raise place.problem(
            f"{OPTIONS[keyword]}= is about {words}, and this is {shown}; leave it out"
        )


def _check_value(keyword: str, value: Any, place: Place) -> None:
    """Refuse values that JSON lacks: infinity, NaN, a Decimal, a datetime."""
    is_number = not isinstance(value, float) or math.isfinite(value)
    if not is_number or not isinstance(value, _OF_JSON):
        raise place.problem(
            f"{OPTIONS[keyword]}={value!r:.60} is nothing that JSON has; give a finite "
            "number, a text or a list, or leave it out where there is no limit"
        )


_OF_JSON = (NoneType, bool, int, float, str, list, tuple)


def rule_of(rule: Rule) -> Node:
    """An entry of `x-kubernetes-validations`."""
    found = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old_self,
    }
    return {name: value for name, value in found.items() if value is not None}
