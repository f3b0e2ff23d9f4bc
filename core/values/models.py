"""Objects read as the classes of an author: dataclasses, TypedDicts, and models.

`fnop crd` makes a schema from the same types, so objects that the API server has
accepted fit them. An older object may not: `Unfit` names the place. A model of pydantic
or a Struct of msgspec reads itself; this module imports no library.

The schema's rules about null apply here, too. The server drops a null if null is not a
valid value. So a null field counts as missing (Kubernetes: Defaulting and Nullable).
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import inspect
import re
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

from fnop.core.kubernetes.durations import duration
from fnop.core.values.errors import PermanentError, joined, text_of
from fnop.effects.hints import UNIONS, admits_none, named, unwrapped
from fnop.effects.regexes import regex
from fnop.effects.values import ReadOnlyDict, ReadOnlyList, read_only, shown

__all__ = [
    "Reader",
    "Unfit",
    "UnfitBefore",
    "is_read",
    "or_none",
    "or_unwritten",
    "reader_of",
]

Reader: TypeAlias = Callable[[Any], Any]
Path: TypeAlias = tuple[str | int, ...]


class Unfit(PermanentError):
    """A value does not fit a type; `path` is its place in the value that was read.

    A handler that asks for the type fails permanently: no retry changes the object.
    """

    # The present object, or the object before its change.
    of: ClassVar[Literal["present", "former"]] = "present"

    def __init__(
        self,
        why: str,
        path: Path = (),
        *,
        missing: bool = False,
        others: tuple[Unfit, ...] = (),
    ) -> None:
        super().__init__(why)
        self.why, self.path = why, path
        # A field is missing, and the present fields may fit.
        self.missing = missing
        # The misfits in other places.
        self.others = others

    def under(self, *path: str | int) -> Unfit:
        """Return the same misfit for the enclosing value."""
        others = tuple(each.under(*path) for each in self.others)
        place = (*path, *self.path)
        return Unfit(self.why, place, missing=self.missing, others=others)

    @classmethod
    def joined(cls, found: Iterable[Unfit]) -> Unfit:
        """Return the first of several misfits, which holds all others."""
        first, *rest = [part for each in found for part in each.parts]
        missing, others = first.missing, tuple(rest)
        return Unfit(first.why, first.path, missing=missing, others=others)

    @property
    def parts(self) -> tuple[Unfit, ...]:
        """This and all other misfits, each by itself."""
        own = Unfit(self.why, self.path, missing=self.missing) if self.others else self
        return (own, *self.others)

    @property
    def field(self) -> str:
        """The path as a text.

        >>> Unfit("it is missing", ("users", 0, "name")).field
        'users[0].name'
        """
        parts = (f"[{e}]" if isinstance(e, int) else f".{e}" for e in self.path)
        return "".join(parts).removeprefix(".")

    def __str__(self) -> str:
        return f"{self.field}: {self.why}" if self.path else self.why


class UnfitBefore(Unfit):
    """The object before its change does not fit, and the present object does."""

    of = "former"

    @classmethod
    def because_of(cls, problem: Unfit) -> UnfitBefore:
        """The misfit of the argument `old`."""
        found = problem.under("old")
        return cls(found.why, found.path, others=found.others)

    def __str__(self) -> str:
        return f"{super().__str__()}; annotated as '... | None', old is None then"


def is_read(hint: Any) -> bool:
    """Whether a type is more than JSON: then values are read according to it.

    >>> is_read(int), is_read(dict[str, Any]), is_read(list[date]), is_read(str | None)
    (False, False, True, False)
    """
    inner = unwrapped(hint).hint
    origin, args = get_origin(inner) or inner, get_args(inner)
    if origin is Literal:
        return False
    if any(is_read(each) for each in args if each is not ...):
        return True
    if not isinstance(origin, type):
        return False
    if _is_typed_dict(origin):
        return any(map(is_read, _hints_of(origin).values()))
    return (
        origin in _LISTS[1:] or _is_class(origin) or _plain_reader(origin) is not None
    )


def reader_of(hint: Any) -> Reader:
    """The reader of a type: from a JSON value to a value of it.

    It raises `Unfit` for a value that does not fit. Raises `TypeError` for a type that
    has no JSON form.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Backup:
    ...     schedule: str
    ...     keep: int = 7
    >>> read = reader_of(list[Backup])
    >>> read([{"schedule": "0 0 * * *"}])
    [Backup(schedule='0 0 * * *', keep=7)]
    >>> try: read([{"keep": 1}])
    ... except Unfit as problem: print(problem)
    [0].schedule: it is missing, and Backup needs it
    """
    try:
        return _known_reader(hint)
    except TypeError:  # it has no JSON form, or a mark that cannot be hashed
        return _reader_of(hint)


def _reader_of(hint: Any) -> Reader:
    inner = unwrapped(hint).hint
    if not is_read(inner):
        return _reader_of_json(inner)
    origin, args = get_origin(inner) or inner, get_args(inner)
    if origin in UNIONS:
        return _reader_of_union(args)
    if origin in _LISTS:
        return _reader_of_list(_LISTS_MADE[origin], args)
    if origin in _MAPPINGS:
        return _reader_of_mapping(args)
    if isinstance(origin, type):
        if (read := _plain_reader(origin)) is not None:
            return read
        if issubclass(origin, Enum):
            return _reader_of_enum(origin)
        if _is_typed_dict(origin):
            return _reader_of_typed_dict(origin)
        if hasattr(origin, "__pydantic_validator__"):
            return _reader_of_pydantic(origin)
        if hasattr(origin, "__struct_fields__"):
            return _reader_of_struct(origin)
        if dataclasses.is_dataclass(origin):
            return _reader_of_dataclass(origin)
    raise TypeError(f"{_name_of(hint)} has no form in JSON")


_known_reader = lru_cache(maxsize=1024)(_reader_of)


def _is_class(cls: type) -> bool:
    """Whether it is a class with fields, or an enumeration."""
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, Enum)
        or hasattr(cls, "__pydantic_validator__")
        or hasattr(cls, "__struct_fields__")
    )


def _is_typed_dict(cls: type) -> bool:
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def _hints_of(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _name_of(hint: Any) -> str:
    return getattr(hint, "__qualname__", None) or str(hint)


# -------------------------------------------------------------------- plain JSON

# The names of JSON types, and the Python types of their values.
_JSON: Mapping[Any, tuple[str, tuple[type, ...]]] = {
    str: ("a text", (str,)),
    bool: ("a boolean", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (float, int)),
}


def _reader_of_json(hint: Any) -> Reader:
    """The reader of a JSON type: the value is checked and stays as it is."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return _reader_of_values(args)
    if origin in UNIONS:
        return _reader_of_union(args)
    if isinstance(hint, abc.Hashable) and hint in _JSON:
        return _checked(*_JSON[hint])
    if origin in _LISTS:
        return _reader_of_list(_LISTS_MADE[origin], args)
    if origin in _MAPPINGS:
        return _reader_of_mapping(args)
    return read_only


def _checked(word: str, types: tuple[type, ...]) -> Reader:
    first, second = types[0], types[-1]

    def read(value: Any) -> Any:
        kind = type(value)
        if kind is first or kind is second:
            return value
        if kind is float and first is int and value.is_integer():
            return int(value)
        raise Unfit(f"{_show_value(value)} is not {word}")

    return read


def _reader_of_values(values: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value in values:
            return value
        known = joined([repr(each) for each in values])
        raise Unfit(f"{_show_value(value)} is not one of {known}")

    return read


def _show_value(value: Any) -> str:
    """A value for an error message: it may be long, or hold a secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else shown(value)


# ---------------------------------------------------------- types that are texts


def _parse_moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.upper())  # z and t are valid, too
    if found.tzinfo is None:
        raise ValueError("a moment without a time zone")
    return found


def _parse_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _parse_duration(text: str) -> timedelta:
    return timedelta(seconds=duration(text))


_TEXTS: Mapping[type, tuple[str, Callable[[str], Any]]] = {
    datetime: ("a moment, such as 2030-01-01T00:00:00Z", _parse_moment),
    date: ("a date, such as 2030-01-01", date.fromisoformat),
    timedelta: ("a duration, such as 1h30m", _parse_duration),
    bytes: ("base64", _parse_base64),
}


def _plain_reader(cls: type) -> Reader | None:
    """The reader of a type that is a text in JSON; None for other types."""
    made: Callable[[str], Any]
    if (cls.__module__, cls.__name__) == ("uuid", "UUID"):
        word, made = "a UUID", cls
    elif cls in _TEXTS:
        word, made = _TEXTS[cls]
    else:
        return None

    def read(value: Any) -> Any:
        if isinstance(value, str):
            try:
                return made(value)
            except (ValueError, binascii.Error, OverflowError):
                pass
        raise Unfit(f"{_show_value(value)} is not {word}")

    return read


def _reader_of_enum(cls: type[Enum]) -> Reader:
    known = {each.value: each for each in cls}

    def read(value: Any) -> Any:
        if isinstance(value, abc.Hashable) and value in known:
            return known[value]
        values = joined([repr(each) for each in known])
        raise Unfit(f"{_show_value(value)} is not one of {values}")

    return read


# -------------------------------------------------------------------- containers

_LISTS_MADE: Mapping[Any, Callable[[list[Any]], Any]] = {
    list: ReadOnlyList,
    abc.Sequence: ReadOnlyList,
    abc.MutableSequence: ReadOnlyList,
    abc.Iterable: ReadOnlyList,
    abc.Collection: ReadOnlyList,
    tuple: tuple,
    set: frozenset,
    frozenset: frozenset,
    abc.Set: frozenset,
}
_LISTS = tuple(_LISTS_MADE)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)


def _reader_of_list(made: Callable[[list[Any]], Any], args: tuple[Any, ...]) -> Reader:
    inner = reader_of(args[0]) if args else read_only

    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise Unfit(f"{_show_value(value)} is not a list")
        found, unfit = [], []
        for place, each in enumerate(value):
            try:
                found.append(inner(each))
            except Unfit as problem:
                unfit.append(problem.under(place))
        if unfit:
            raise Unfit.joined(unfit)
        return made(found)

    return read


def _reader_of_mapping(args: tuple[Any, ...]) -> Reader:
    inner = reader_of(args[1]) if args else read_only

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unfit(f"{_show_value(value)} is not an object")
        found, unfit = {}, []
        for name, each in value.items():
            try:
                found[name] = inner(each)
            except Unfit as problem:
                unfit.append(problem.under(name))
        if unfit:
            raise Unfit.joined(unfit)
        return ReadOnlyDict(found)

    return read


def _reader_of_union(args: tuple[Any, ...]) -> Reader:
    """The first type that fits a value; None fits null only."""
    readers = [reader_of(each) for each in args if each not in (None, NoneType)]
    takes_null = len(readers) < len(args)
    if len(readers) == 1 and not takes_null:
        return readers[0]

    def read(value: Any) -> Any:
        if value is None and takes_null:
            return None
        problem: Unfit | None = None
        for each in readers:
            try:
                return each(value)
            except Unfit as found:
                problem = problem or found
        raise problem or Unfit("it is not null")

    return read


# ----------------------------------------------------------------------- classes


def _reader_of_typed_dict(cls: Any) -> Reader:
    """Unknown fields stay in it: it is the object itself, read only if it must be."""
    readers = {
        named(name, hint): reader_of(hint)
        for name, hint in _hints_of(cls).items()
        if is_read(hint)
    }

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unfit(f"{_show_value(value)} is not an object")
        found = dict(read_only(value))
        for name, inner in readers.items():
            if found.get(name) is not None:
                try:
                    found[name] = inner(found[name])
                except Unfit as problem:
                    raise problem.under(name) from None
        return ReadOnlyDict(found)

    return read


class _Missing(Enum):
    """The consequence if an object lacks a field, or has a null in its place."""

    DEFAULT = "the class has a default"
    DEFAULT_OR_NULL = "the class has a default, which a null replaces"
    NONE = "it is None"
    EMPTY = "it counts as an empty object"
    UNFIT = "the object does not fit"


def or_none(read: Reader) -> Reader:
    """The reader of a value that may not fit: then it is None."""

    def read_or_none(value: Any) -> Any:
        try:
            return read(value)
        except Unfit:
            return None

    return read_or_none


def or_unwritten(read: Reader) -> Reader:
    """The reader of a status that is None until it has all fields of its class.

    A status is written piece by piece, so no schema requires its fields.
    """

    def read_or_none(value: Any) -> Any:
        try:
            return read(value)
        except Unfit as problem:
            if problem.missing and len(problem.path) == 1:
                return None
            raise

    return read_or_none


class _Field(NamedTuple):
    """A field of a dataclass: the names of its key and attribute, and its reader."""

    key: str
    attribute: str
    read: Reader
    missing: _Missing


def _fields_of_dataclass(cls: Any) -> list[_Field]:
    hints = _hints_of(cls)
    found = []
    for each in dataclasses.fields(cls):
        if each.init:
            hint = hints[each.name]
            read = _reader_in(cls, each.name, hint)
            missing = _missing_kind(cls, each, hint)
            found.append(_Field(named(each.name, hint), each.name, read, missing))
    return found


def _reader_of_dataclass(cls: Any) -> Reader:
    fields = _fields_of_dataclass(cls)

    def read_all(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unfit(f"{_show_value(value)} is not an object")
        given: dict[str, Any] = {}
        unfit: list[Unfit] = []
        for name, attribute, read, missing in fields:
            found = value.get(name)
            if found is None and missing is _Missing.EMPTY:
                found = {}
            if found is None:
                if missing is _Missing.UNFIT:
                    why = f"it is missing, and {cls.__qualname__} needs it"
                    unfit.append(Unfit(why, (name,), missing=True))
                elif missing is _Missing.NONE or (
                    missing is _Missing.DEFAULT_OR_NULL and name in value
                ):
                    given[attribute] = None
                continue
            try:
                given[attribute] = read(found)
            except Unfit as problem:
                unfit.append(problem.under(name))
        if unfit:
            raise Unfit.joined(unfit)
        return _make_object(cls, given)

    return read_all


def _make_object(cls: Any, given: Mapping[str, Any]) -> Any:
    """Create an object of a class, whose own `__post_init__` may refuse it."""
    try:
        return cls(**given)
    except Exception as problem:
        raise _misfit_of_class(cls, problem) from problem


def _reader_in(cls: type, name: str, hint: Any) -> Reader:
    """The reader of a field of a class."""
    is_status = name == "status" and "__fnop_definition__" in vars(cls)
    read = reader_of(hint)
    return or_unwritten(read) if is_status and admits_none(hint) else read


def _missing_kind(cls: type, field: dataclasses.Field[Any], hint: Any) -> _Missing:
    missing = dataclasses.MISSING
    if field.default is not missing or field.default_factory is not missing:
        return _Missing.DEFAULT_OR_NULL if admits_none(hint) else _Missing.DEFAULT
    if admits_none(hint):
        return _Missing.NONE
    if field.name == "status" and "__fnop_definition__" in vars(cls):
        return _Missing.EMPTY  # no schema requires a status
    return _Missing.UNFIT


def _reader_of_pydantic(cls: Any) -> Reader:
    def read(value: Any) -> Any:
        try:
            return cls.__pydantic_validator__.validate_python(value)
        except Exception as problem:
            errors = getattr(problem, "errors", None)
            if errors is None:
                raise _misfit_of_class(cls, problem) from problem
            several = errors()
            found = (Unfit(_lower_first(e["msg"]), tuple(e["loc"])) for e in several)
            raise Unfit.joined(found) from problem

    return read


# The end of msgspec's error messages: `... - at `$.users[0].name``.
_AT = regex(r"(.*) - at `\$(.*)`", re.DOTALL)
_STEP = regex(r"\.([^.\[]+)|\[(\d+)\]")


def _reader_of_struct(cls: Any) -> Reader:
    # The library module that defines the class.
    library: Any = inspect.getmodule(type(cls))

    def read(value: Any) -> Any:
        try:
            return library.convert(value, cls)
        except Exception as problem:
            if not isinstance(problem, ValueError):
                raise _misfit_of_class(cls, problem) from problem
            found = _AT.fullmatch(str(problem))
            why, where = found.groups() if found else (str(problem), "")
            path = (name or int(n) for name, n in _STEP.findall(where))
            raise Unfit(_lower_first(why), tuple(path)) from problem

    return read


def _misfit_of_class(cls: type, problem: Exception) -> Unfit:
    """The misfit for an error in the author's own code of a class."""
    told = text_of(problem)
    if not isinstance(problem, (ValueError, PermanentError)):
        told = f"{type(problem).__name__}: {told}"
    return Unfit(f"{cls.__qualname__} refuses it: {told}")


def _lower_first(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"
