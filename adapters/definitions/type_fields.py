"""The fields of an author's classes.

These are dataclasses, TypedDicts, models of pydantic and Structs of msgspec. pydantic
is not imported here: a class can belong to it only if the author's own file has
imported it.
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
from typing import (
    Any,
    NotRequired,
    Required,
    get_type_hints,
)

from msgspec import Struct

from fnop.adapters.definitions.problems import DefinitionProblem
from fnop.adapters.definitions.type_marks import is_said, judges_itself, writes_itself
from fnop.core.api.definitions import Given, Schema, schema_marks
from fnop.effects.hints import admits_none, unwrapped
from fnop.effects.structs import replace

__all__ = [
    "Field",
    "description_of",
    "fields_of",
    "is_model",
    "is_record",
    "is_root_model",
    "is_struct",
    "keeps_unknown",
    "model_config",
]


class Field(Struct, frozen=True):
    """A field of a class.

    `name` is its name in objects, `attribute` the name in the class. `marks` are about
    its type, in addition to the marks in the type. Objects may lack a field that is not
    `required`; `default` is its value then.
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
        dataclasses.is_dataclass(cls)
        or _is_typed_dict(cls)
        or (is_model(cls) and not is_root_model(cls))
        or is_struct(cls)
    )


def fields_of(cls: type) -> list[Field]:
    """The fields of such a class, in their order.  Raises `DefinitionProblem`."""
    if is_model(cls):
        found = _model_fields(cls)
    elif _is_typed_dict(cls):
        found = _typed_dict_fields(cls)
    elif is_struct(cls):
        found = _struct_fields(cls)
    else:
        found = _dataclass_fields(cls)
    texts = _texts_below_fields(cls)
    return [
        replace(each, description=texts.get(each.attribute) or each.description)
        for each in found
    ]


def description_of(cls: type) -> str:
    """The docstring that the author has written for the class itself; or ""."""
    text = vars(cls).get("__doc__")
    # A dataclass without a docstring has its signature as `__doc__`.
    if not isinstance(text, str) or text.startswith(f"{cls.__name__}("):
        return ""
    return inspect.cleandoc(text)


def keeps_unknown(cls: type) -> bool:
    """Whether a model of pydantic accepts unknown fields."""
    return model_config(cls).get("extra") == "allow"


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
    """A field; if it may be None it may be missing, and None is not a default.

    A field without `nullable` never holds null: the API server prunes nulls before it
    fills in defaults ("Defaulting and Nullable" in Kubernetes' page on custom
    resources). So only a missing field means None, and X | None is just a field that is
    not required.
    """
    for each in (*unwrapped(hint).marks, *marks):
        if isinstance(each, Schema):
            alias, default = each.name or alias, each.default or default
    if default is not None and default.value is None:
        default, required = None, False
    needed = required and default is None and not admits_none(hint)
    return Field(alias or name, name, hint, marks, needed, default, description)


def _default_of_factory(
    make: Callable[[], Any], factory: Any, cls: type, name: str
) -> Given:
    """The default that an author's factory makes: the same at each call.

    Raises `DefinitionProblem` for other factories: the server gives one default to all
    objects.
    """
    try:
        made, others = make(), [make() for _ in range(_CALLS)]
    except Exception as problem:
        raise DefinitionProblem(
            f"{cls.__qualname__}.{name}: the factory of its default fails: {problem}; "
            "let it need nothing, or write the default itself"
        ) from problem
    if _reads_clock(factory) or any(_parts(made) != _parts(each) for each in others):
        raise DefinitionProblem(
            f"{cls.__qualname__}.{name}: the factory of its default makes another "
            "value each time, and a definition has one for all objects; write `X | "
            "None = None`, and let a handler fill it in"
        )
    return Given(made)


# The number of further calls of a factory: some draw a random value only sometimes.
_CALLS = 8
# Functions whose results stay the same for a while.
_CLOCKS = frozenset(("today", "now", "utcnow", "time_ns", "localtime", "gmtime"))


def _reads_clock(factory: Any) -> bool:
    """Whether a factory reads the time, which two calls may not show."""
    while isinstance(factory, partial):
        factory = factory.func
    code = getattr(factory, "__code__", None)
    names = (getattr(factory, "__name__", ""), *(code.co_names if code else ()))
    return not _CLOCKS.isdisjoint(names)


def _parts(value: Any) -> Any:
    """A value with the fields of instances, which may define no equality."""
    if isinstance(value, Mapping):
        return {key: _parts(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(_parts, value)]
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return type(value), [_parts(getattr(value, each.name)) for each in fields]
    if is_model(type(value)):
        return type(value), [_parts(each) for _, each in value]
    if is_struct(type(value)):
        names = type(value).__struct_fields__
        return type(value), [_parts(getattr(value, each)) for each in names]
    return value


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


def _dataclass_fields(cls: Any) -> Iterator[Field]:
    hints = _hints(cls)
    for each in dataclasses.fields(cls):
        if each.default is not dataclasses.MISSING:
            default: Given | None = Given(each.default)
        elif each.default_factory is not dataclasses.MISSING:
            factory = each.default_factory
            default = _default_of_factory(factory, factory, cls, each.name)
        else:
            default = None
        yield _field(each.name, hints[each.name], default, required=each.init)


# -------------------------------------------------------------------- typed mappings


def _is_typed_dict(cls: type) -> bool:
    """Whether it is a TypedDict of `typing`, or of `typing_extensions`."""
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def _typed_dict_fields(cls: Any) -> Iterator[Field]:
    for name, hint in _hints(cls).items():
        # If the types are texts, Python itself does not see their qualifiers.
        qualifiers = unwrapped(hint).qualifiers
        required = Required in qualifiers or (
            NotRequired not in qualifiers and name in cls.__required_keys__
        )
        yield _field(name, hint, None, required=required)


# ------------------------------------------------------------------ Structs of msgspec


def is_struct(cls: Any) -> bool:
    """Whether a class is a Struct of msgspec."""
    return isinstance(cls, type) and hasattr(cls, "__struct_fields__")


def _struct_fields(cls: Any) -> Iterator[Field]:
    msgspec: Any = sys.modules["msgspec"]
    config = cls.__struct_config__
    if config.array_like:
        raise DefinitionProblem(
            f"{cls.__qualname__}: with array_like=True it is a list, and an object has "
            "fields with names; leave that out"
        )
    if config.tag is not None:
        raise DefinitionProblem(
            f"{cls.__qualname__}: its tag is no field of the class; take a field with "
            "a Literal instead, without tag="
        )
    hints, nothing = _hints(cls), msgspec.NODEFAULT
    for each in msgspec.structs.fields(cls):
        hint, where = hints[each.name], f"{cls.__qualname__}.{each.name}"
        default = None if each.default is nothing else Given(each.default)
        if each.default_factory is not nothing:
            factory = each.default_factory
            default = _default_of_factory(factory, factory, cls, each.name)
        if each.required and admits_none(hint):
            raise DefinitionProblem(
                f"{where}: the Struct wants it, and the API server removes a null; "
                "give it the default None"
            )
        found = _field(
            each.name, hint, default, required=each.required, alias=each.encode_name
        )
        if found.name != each.encode_name:
            raise DefinitionProblem(
                f"{where}: msgspec reads it as {each.encode_name!r}, and the mark says "
                f"{found.name!r}; write msgspec.field(name={found.name!r})"
            )
        yield found


# ----------------------------------------------------------------- models of pydantic


def is_model(cls: Any) -> bool:
    """Whether pydantic reads and writes the class, as a model or its dataclass."""
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None
        and isinstance(cls, type)
        and (issubclass(cls, pydantic.BaseModel) or "__pydantic_fields__" in vars(cls))
    )


def is_root_model(cls: Any) -> bool:
    """Whether objects of a class consist of its root's type alone."""
    return is_model(cls) and getattr(cls, "__pydantic_root_model__", False)


def model_config(cls: Any) -> Mapping[str, Any]:
    """The settings of a class that pydantic reads; empty for any other class."""
    if not is_model(cls):
        return {}
    found = getattr(cls, "model_config", None) or vars(cls).get("__pydantic_config__")
    return found if isinstance(found, Mapping) else {}


def _model_fields(cls: Any) -> Iterator[Field]:
    infos = _pydantic_fields(cls)
    _check_code_of_all(cls)
    _check_extras(cls)
    computed = cls.__pydantic_decorators__.computed_fields
    if computed and keeps_unknown(cls):
        raise DefinitionProblem(
            f"{cls.__qualname__}.{next(iter(computed))}: it is computed, and the model "
            "would read it back as an extra field; take extra='ignore'"
        )
    names = {name: _Names.of(cls, name, info) for name, info in infos.items()}
    for name, info in infos.items():
        _check_names(cls, name, names)
        given = _model_default(cls, name, info)
        is_nullable = any(
            dict(each.keywords).get("nullable") for each in _schema_marks(info)
        )
        if info.is_required() and not is_nullable and admits_none(info.annotation):
            raise DefinitionProblem(
                f"{cls.__qualname__}.{name}: the model wants it, and the API server "
                "removes a null; give it the default None, or "
                "fnop.schema(nullable=True)"
            )
        _check_code(cls, name, info)
        if info.is_required() and _is_excluded(info):
            raise DefinitionProblem(
                f"{cls.__qualname__}.{name}: the model reads it, and does not write it "
                "(exclude=), so that the API server would refuse what the model "
                "writes; give it a default, or leave exclude= out"
            )
        found = _field(
            name,
            info.annotation,
            given,
            required=info.is_required(),
            alias=names[name].written,
            marks=tuple(info.metadata),
            description=info.description or "",
        )
        yield replace(found, required=info.is_required()) if is_nullable else found


def _model_default(cls: Any, name: str, info: Any) -> Given | None:
    """The default of a model's field; None if the model wants a value."""
    if info.default_factory is not None:
        make = partial(info.get_default, call_default_factory=True)
        return _default_of_factory(make, info.default_factory, cls, name)
    return None if info.is_required() else Given(info.get_default())


def _is_excluded(info: Any) -> bool:
    return bool(info.exclude or getattr(info, "exclude_if", None))


# The author's decorators, by the names under which pydantic keeps them, and the effect
# of each.
_OF_FIELDS = {
    "validators": judges_itself,
    "field_validators": judges_itself,
    "field_serializers": writes_itself,
}
_OF_MODELS = {
    "root_validators": judges_itself,
    "model_validators": judges_itself,
    "model_serializers": writes_itself,
}


def _check_code(cls: Any, name: str, info: Any) -> None:
    """Refuse a field that an author's code reads or writes, without a given schema."""
    if is_said(_schema_marks(info)):
        return
    for kind, objection in _OF_FIELDS.items():
        for each, found in getattr(cls.__pydantic_decorators__, kind).items():
            if {name, "*"} & {*found.info.fields}:
                raise DefinitionProblem(f"{cls.__qualname__}.{name}: {objection(each)}")


def _check_code_of_all(cls: Any) -> None:
    """Refuse a model that an author's code reads or writes as a whole."""
    if is_said(schema_marks(cls)):
        return
    for kind, objection in _OF_MODELS.items():
        for each in getattr(cls.__pydantic_decorators__, kind):
            raise DefinitionProblem(f"{cls.__qualname__}: {objection(each)}")
    for each in cls.__mro__:
        own = vars(each).get(_SCHEMA_OF_ITS_OWN)
        if own is not None and not each.__module__.startswith("pydantic"):
            problem = judges_itself(_SCHEMA_OF_ITS_OWN)
            raise DefinitionProblem(f"{cls.__qualname__}: {problem}")
    if model_config(cls).get("json_encoders"):
        problem = writes_itself("json_encoders")
        raise DefinitionProblem(f"{cls.__qualname__}: {problem}")


_SCHEMA_OF_ITS_OWN = "__get_pydantic_core_schema__"


def _check_extras(cls: Any) -> None:
    """Refuse a model that judges unknown fields."""
    found = [
        inspect.get_annotations(each).get("__pydantic_extra__")
        for each in cls.__mro__
        if not each.__module__.startswith("pydantic")
    ]
    if keeps_unknown(cls) and any(found):
        raise DefinitionProblem(
            f"{cls.__qualname__}.__pydantic_extra__: the model judges fields that it "
            "does not name, and an API server keeps any; take a field with a dict"
        )


def _pydantic_fields(cls: Any) -> Mapping[str, Any]:
    """The fields as pydantic has them, with their types resolved."""
    if hasattr(cls, "model_rebuild"):
        cls.model_rebuild(raise_errors=False)
    if not cls.__pydantic_complete__:
        _hints(cls)  # reports which name is not known
        raise DefinitionProblem(
            f"{cls.__qualname__}: pydantic cannot resolve its types; define what they "
            "name at the top of its module"
        )
    found: Mapping[str, Any] = cls.__pydantic_fields__
    return found


class _Names(Struct, frozen=True):
    """The names under which a model reads a field, and the one that it writes."""

    read: tuple[str, ...]
    written: str
    # The places inside other fields from which it reads this field.
    paths: tuple[Any, ...]

    @classmethod
    def of(cls, model: Any, name: str, info: Any) -> _Names:
        config = model_config(model)
        alias = info.validation_alias or info.alias
        by_name = config.get("populate_by_name") or config.get("validate_by_name")
        choices = getattr(alias, "choices", (alias,))
        if alias is None or config.get("validate_by_alias") is False:
            choices = (name,)
        elif by_name:
            choices = (*choices, name)
        parts = [getattr(each, "path", (each,)) for each in choices]
        writes = info.serialization_alias or info.alias
        written = name if config.get("serialize_by_alias") is False else writes or name
        return cls(
            tuple(each[0] for each in parts if len(each) == 1),
            next((m.name for m in _schema_marks(info) if m.name), None) or written,
            tuple(each for each in parts if len(each) > 1),
        )


def _schema_marks(info: Any) -> Iterator[Schema]:
    for each in (*unwrapped(info.annotation).marks, *info.metadata):
        if isinstance(each, Schema):
            yield each


def _check_names(cls: Any, name: str, names: Mapping[str, _Names]) -> None:
    """Refuse a field that the model reads from another name than it writes.

    The definition has one name, and the API server prunes any other.
    """
    where, own = f"{cls.__qualname__}.{name}", names[name]
    if own.paths:
        path = ".".join(map(str, own.paths[0]))
        raise DefinitionProblem(
            f"{where}: the model reads it from inside another field ({path}), and does "
            "not write it there; give that field a class of its own"
        )
    if own.written not in own.read:
        read = " or ".join(map(repr, own.read))
        alias = own.read[0] if own.written == name else own.written
        raise DefinitionProblem(
            f"{where}: the model reads it as {read} and writes it as {own.written!r}, "
            f"and a definition has one name; write pydantic's alias={alias!r} alone, "
            "and serialize_by_alias=True in the model's config"
        )
    for other, its in names.items():
        if other != name and its.written in own.read:
            raise DefinitionProblem(
                f"{where}: the model would read it from {its.written!r}, which is the "
                f"field {other}; leave that alias out"
            )


# ------------------------------------------------------- texts below fields


def _texts_below_fields(cls: type) -> Mapping[str, str]:
    """The string literals below fields, which editors show as their docstrings.

    Those below fields of a TypedDict's bases are not found, as Python does not keep the
    bases.
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
        return {}  # its source is not available
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
