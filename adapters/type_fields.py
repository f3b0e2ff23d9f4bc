"""The fields of an author's classes: dataclasses, TypedDicts, models of pydantic.

pydantic is never imported here: a class is a model of it only where the author's own
file has imported it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from textwrap import dedent
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from fnop.core.api.definitions import Given, Schema

__all__ = [
    "DefinitionProblem",
    "Field",
    "Unwrapped",
    "description_of",
    "fields_of",
    "is_record",
    "keeps_unknown",
    "unwrapped",
]

_UNIONS = (Union, UnionType)
_QUALIFIERS = (Required, NotRequired, Final)


class DefinitionProblem(Exception):
    """No definition can be made of a class; the text is one sentence for its author."""


class Field(NamedTuple):
    """A field of a class.

    `name` is its name in objects, `attribute` that in the class. `marks` are about its
    type, beside those in it. Objects may lack one that is not `required`; `default` is
    its value then.
    """

    name: str
    attribute: str
    hint: Any
    marks: tuple[Any, ...]
    required: bool
    default: Given | None
    description: str


def is_record(cls: Any) -> bool:
    """Whether a type is a class with fields."""
    return isinstance(cls, type) and (
        dataclasses.is_dataclass(cls) or _is_typed_dict(cls) or _is_model(cls)
    )


def fields_of(cls: type) -> list[Field]:
    """The fields of such a class, in their order.  Raises `DefinitionProblem`."""
    if _is_model(cls):
        found = _of_model(cls)
    elif _is_typed_dict(cls):
        found = _of_typed_dict(cls)
    else:
        found = _of_dataclass(cls)
    texts = _texts_below_fields(cls)
    return [
        each._replace(description=texts.get(each.attribute) or each.description)
        for each in found
    ]


def description_of(cls: type) -> str:
    """The docstring that the author has written for the class itself; "" for none."""
    text = vars(cls).get("__doc__")
    # A dataclass without one has its signature there.
    if not isinstance(text, str) or text.startswith(f"{cls.__name__}("):
        return ""
    return inspect.cleandoc(text)


def keeps_unknown(cls: type) -> bool:
    """Whether a model of pydantic accepts fields that it does not name."""
    config = getattr(cls, "model_config", None) if _is_model(cls) else None
    return isinstance(config, dict) and config.get("extra") == "allow"


# --------------------------------------------------------------------------- types


class Unwrapped(NamedTuple):
    """A type without what is said about it, and that: marks, qualifiers."""

    hint: Any
    marks: tuple[Any, ...]
    qualifiers: frozenset[Any]


def unwrapped(hint: Any) -> Unwrapped:
    """The type inside of Annotated, Required, aliases and the like.

    >>> unwrapped(Required[Annotated[int, "few"]]).marks
    ('few',)
    """
    marks: tuple[Any, ...] = ()
    qualifiers: set[Any] = set()
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            marks = (*hint.__metadata__, *marks)
            hint = hint.__origin__
        elif origin in _QUALIFIERS:
            qualifiers.add(origin)
            (hint,) = get_args(hint)
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":  # Python 3.12: type X = ...
            hint = hint.__value__
        else:
            return Unwrapped(hint, marks, frozenset(qualifiers))


def _admits_none(hint: Any) -> bool:
    inner = unwrapped(hint).hint
    if get_origin(inner) in _UNIONS:
        return any(map(_admits_none, get_args(inner)))
    if get_origin(inner) is Literal:
        return None in get_args(inner)
    return inner in (None, NoneType)


def _field(
    name: str,
    hint: Any,
    default: Given | None,
    *,
    required: bool,
    alias: str | None = None,
    marks: tuple[Any, ...] = (),
    description: str = "",
) -> Field:
    """A field; what may be None may be missing, and None is no default.

    A field without `nullable` never holds null: the API server prunes nulls before it
    fills in defaults ("Defaulting and Nullable" in Kubernetes' page on custom
    resources). So absence is the one way to say None, and X | None is no more than a
    field that is not required.
    """
    for each in (*unwrapped(hint).marks, *marks):
        if isinstance(each, Schema):
            alias, default = each.name or alias, each.default or default
    if default is not None and default.value is None:
        default, required = None, False
    needed = required and default is None and not _admits_none(hint)
    return Field(alias or name, name, hint, marks, needed, default, description)


def _made(factory: Callable[[], Any], cls: type, name: str) -> Given:
    """The default that a factory of the author's makes."""
    try:
        return Given(factory())
    except Exception as problem:
        raise DefinitionProblem(
            f"{cls.__qualname__}.{name}: the factory of its default fails: {problem}; "
            "let it need nothing, or write the default itself"
        ) from problem


def _hints(cls: type) -> dict[str, Any]:
    """The types of the fields, with forward references resolved."""
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError as problem:
        where = _place_of(cls, problem.name or "")
        raise DefinitionProblem(
            f"{where}: its type names {problem.name}, which is not known at the top of "
            "its module; define or import it there, and not under TYPE_CHECKING alone"
        ) from problem
    except (AttributeError, SyntaxError, TypeError) as problem:
        raise DefinitionProblem(
            f"{cls.__qualname__}: its types cannot be read: {problem}; write them as "
            "Python has them"
        ) from problem


def _place_of(cls: type, name: str) -> str:
    """The field whose type has the name: `Database.spec`."""
    for owner in cls.__mro__:
        for field, text in vars(owner).get("__annotations__", {}).items():
            if name in re.findall(r"\w+", str(text)):
                return f"{owner.__qualname__}.{field}"
    return cls.__qualname__


# --------------------------------------------------------------------- dataclasses


def _of_dataclass(cls: Any) -> Iterator[Field]:
    hints = _hints(cls)
    for each in dataclasses.fields(cls):
        if each.default is not dataclasses.MISSING:
            default: Given | None = Given(each.default)
        elif each.default_factory is not dataclasses.MISSING:
            default = _made(each.default_factory, cls, each.name)
        else:
            default = None
        yield _field(each.name, hints[each.name], default, required=each.init)


# -------------------------------------------------------------------- typed mappings


def _is_typed_dict(cls: type) -> bool:
    """Whether it is one of `typing`, or of `typing_extensions`."""
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def _of_typed_dict(cls: Any) -> Iterator[Field]:
    for name, hint in _hints(cls).items():
        # Where the types are texts, Python itself does not see their qualifiers.
        qualifiers = unwrapped(hint).qualifiers
        required = Required in qualifiers or (
            NotRequired not in qualifiers and name in cls.__required_keys__
        )
        yield _field(name, hint, None, required=required)


# ----------------------------------------------------------------- models of pydantic


def _is_model(cls: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def _of_model(cls: Any) -> Iterator[Field]:
    cls.model_rebuild(raise_errors=False)
    if not cls.__pydantic_complete__:
        _hints(cls)  # tells which name is not known
        raise DefinitionProblem(
            f"{cls.__qualname__}: pydantic cannot resolve its types; define what they "
            "name at the top of its module"
        )
    for name, info in cls.model_fields.items():
        given = None
        if not info.is_required():
            make = partial(info.get_default, call_default_factory=True)
            given = _made(make, cls, name)
        yield _field(
            name,
            info.annotation,
            given,
            required=info.is_required(),
            alias=info.serialization_alias or info.alias,
            marks=tuple(info.metadata),
            description=info.description or "",
        )


# ------------------------------------------------------- texts below fields


def _texts_below_fields(cls: type) -> Mapping[str, str]:
    """The string literals below fields, which editors show as their docstrings.

    Those of a TypedDict's bases are not found, which Python forgets.
    """
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        found |= _texts_in_source(each)
    return found


@lru_cache(maxsize=1024)
def _texts_in_source(cls: type) -> Mapping[str, str]:
    if "__annotations__" not in vars(cls):
        return {}
    try:
        tree = ast.parse(dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return {}  # its source is not at hand
    match tree.body:
        case [ast.ClassDef(body=body)]:
            return {
                field.target.id: inspect.cleandoc(text.value.value)
                for field, text in pairwise(body)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            }
        case _:
            return {}
