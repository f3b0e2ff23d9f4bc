"""Other values that an input of a handler could have had, as far as code shows.

They have the same type: numbers around a number, texts with another number in them,
lists with one element more or less, an object under deletion. Constants in the author's
code are likely, too: the code compares its inputs with them.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from fnop.interpreters.check.inputs.redeciding import code_of

__all__ = [
    "constants_at",
    "constants_in",
    "constants_of",
    "one_more",
    "other_objects",
    "others_of",
]

# The number of a module's constants that are tried.
CONSTANTS_MAX = 80
_TEXT_MAX, _LONG = 60, 300
_TIMES = ("2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z")
_QUANTITY = re.compile(r"(\d+)([A-Za-z]{1,2})")
_UNITS = ("Ti", "Gi", "Mi", "m", "h", "s")
_HEAD = ("apiVersion", "kind", "metadata")
_SOMEBODY: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "other",
    "uid": "other",
}


def others_of(value: Any, known: Sequence[Any] = ()) -> Iterator[Any]:
    """Other values of the same type, the likeliest first; `known` are constants.

    >>> [*others_of(True)], [*others_of("a1")][:2], [*others_of([1])][:2]
    ([False], ['a2', 'a0'], [[], [1, 2]])
    """
    match value:
        case bool():
            yield not value
        case int() | float():
            # Other values are below zero only if `value` is: code that counts down may
            # rely on it.
            yield from (value + 1, max(value - 1, min(value, 0)), 0, 1)
            yield from (2 * value + 1, value + 1000)
            for each in known:
                if isinstance(each, int):
                    yield from (each, each + 1, each - 1)
        case str():
            yield from _other_texts(value)
            yield from (e for e in known if isinstance(e, str) and e != value)
        case list():
            yield from _other_lists(value, known)
        case dict():
            yield from _other_mappings(value, known)
        case None:
            yield from known
        case _:
            pass


def _other_texts(value: str) -> Iterator[str]:
    number = re.search(r"\d+", value)
    if number:
        found = int(number[0])
        for other in (found + 1, max(0, found - 1), 0, 10_000):
            yield f"{value[: number.start()]}{other}{value[number.end() :]}"
    quantity = _QUANTITY.fullmatch(value)
    if quantity:
        yield from (f"{quantity[1]}{unit}" for unit in _UNITS if unit != quantity[2])
        yield from (f"10000{unit}" for unit in _UNITS)
    yield from (f"{value}-2", "", *_TIMES, f"{value}{'x' * _LONG}")


def _other_lists(value: list[Any], known: Sequence[Any]) -> Iterator[Any]:
    if value:
        yield []
        for other in others_of(value[0]):
            yield [*value, other]
            yield [other, *value[1:]]
        yield from (value[1:], value[:-1], value[::-1])
    yield from ([*value, each] for each in known)


def _other_mappings(value: dict[str, Any], known: Sequence[Any]) -> Iterator[Any]:
    yield {}
    for key in value:
        yield {name: each for name, each in value.items() if name != key}
    for key in known:
        if isinstance(key, str) and key not in value:
            yield {**value, key: "x"}


def other_objects(found: Any, owner: Any = None) -> Iterator[Any]:
    """The object under deletion, without owners, with other owners, and bare.

    `owner` is an object that may own it.
    """
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        return
    meta = found["metadata"]
    yield {**found, "metadata": {**meta, "deletionTimestamp": _TIMES[1]}}
    several: list[list[Any]] = [[], [_SOMEBODY]]
    if isinstance(owner, dict) and "uid" in owner.get("metadata", {}):
        head = {key: owner.get(key) for key in ("apiVersion", "kind")}
        named = {key: owner["metadata"].get(key) for key in ("name", "uid")}
        several.append([{**head, **named, "controller": True}])
    for owners in several:
        yield {**found, "metadata": {**meta, "ownerReferences": owners}}
    yield {
        key: found[key] for key in ("apiVersion", "kind", "metadata") if key in found
    }


def one_more(found: Sequence[Any]) -> Iterator[Any]:
    """An object like the first one, of another name, if these are objects.

    >>> next(one_more([{"metadata": {"name": "a"}}]))
    {'metadata': {'name': 'a-2'}}
    """
    first = found[0] if found else None
    if isinstance(first, dict) and isinstance(first.get("metadata"), dict):
        name = f"{first['metadata'].get('name')}-2"
        yield {**first, "metadata": {**first["metadata"], "name": name}}


# ------------------------------------------------------------------- the constants


def constants_of(function: Callable[..., Any]) -> list[Any]:
    """The texts and numbers in a function, and others of its module.

    >>> constants_of(lambda size: size == 7)[:1]
    [7]
    """
    names: Mapping[str, Any] = getattr(function, "__globals__", {})
    code = code_of(function)
    if code is None:
        return []
    found = dict.fromkeys(constants_in(code))
    for name, each in names.items():
        if isinstance(each, FunctionType):
            if each.__code__.co_filename == code.co_filename:
                found.update(dict.fromkeys(constants_in(each.__code__)))
        elif not name.startswith("__"):
            found.update(dict.fromkeys(_plain_constants(each)))
    return [*found][:CONSTANTS_MAX]


@cache
def constants_at(code: CodeType, line: int) -> list[Any]:
    """The texts and numbers in one line of code, which compares its inputs with them.

    >>> code = (lambda mode: mode == "strict").__code__
    >>> constants_at(code, code.co_firstlineno)
    ['strict']
    """
    found: dict[Any, None] = {}
    here = 0
    for each in dis.get_instructions(code):
        here = each.starts_line or here
        if here == line and each.opname == "LOAD_CONST":
            found.update(dict.fromkeys(_plain_constants(each.argval)))
    return [*found]


def constants_in(code: CodeType) -> Iterator[Any]:
    """The texts and numbers in code, and in the functions that it defines."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from constants_in(each)
        else:
            yield from _plain_constants(each)


def _plain_constants(value: Any) -> Iterator[Any]:
    """The texts and numbers in a constant."""
    match value:
        case bool():
            pass
        case int():
            yield value
        case str() if len(value) <= _TEXT_MAX and "\n" not in value:
            yield value
            if "^" in value or "$" in value:  # texts that a pattern matches
                yield value.strip("^$.*+")
        case tuple() | list() | set() | frozenset() | dict():
            yield from (each for each in value if isinstance(each, (str, int)))
        case _:
            pass
