"""The parameters of the author's functions.

Plain functions, lambdas, bound methods, partials and callable objects are read in the
same way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter
from types import CodeType
from typing import Any

__all__ = [
    "definition_of",
    "is_awaited",
    "layers",
    "parameters_of",
    "takes_values",
    "texts_in",
]


def parameters_of(fn: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters that a caller may pass: all except those that a partial has bound.

    Raises `ValueError` for built-in functions without a signature, such as `bool`.

    >>> bound = functools.partial(lambda spec, limit, **_: True, limit=3)
    >>> [each.name for each in parameters_of(bound)]
    ['spec', '_']
    """
    bound: set[str] = set()
    inner: Any = fn
    while isinstance(inner, functools.partial):
        bound |= inner.keywords.keys()
        inner = inner.func
    found = inspect.signature(fn).parameters.values()
    return tuple(each for each in found if each.name not in bound)


def texts_in(fn: Callable[..., Any]) -> frozenset[str]:
    """The texts in a function's code, such as the keys that it looks up.

    >>> sorted(texts_in(lambda **given: given["userinfo"].get("name")))
    ['name', 'userinfo']
    """
    *_, inner = layers(fn)
    left, found = [getattr(inner, "__code__", None)], set[str]()
    while left:
        code = left.pop()
        for each in code.co_consts if code is not None else ():
            if isinstance(each, str):
                found.add(each)
            elif isinstance(each, tuple):
                found.update(item for item in each if isinstance(item, str))
            elif isinstance(each, CodeType):
                left.append(each)
    return frozenset(found)


def takes_values(fn: Callable[..., Any], number: int) -> bool:
    """Whether a function can be called with exactly `number` positional values.

    >>> takes_values(lambda body: None, 1), takes_values(lambda **_: None, 1)
    (True, False)
    """
    try:
        signature = inspect.signature(fn)
    except ValueError:
        return True  # a built-in function without a signature
    try:
        signature.bind(*range(number))
    except TypeError:
        return False
    return True


def layers(fn: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield the function and those that it wraps; the author's own is the last.

    Wrappers are partials, decorators made with `functools.wraps`, and objects.
    """
    inner: Any = fn
    while True:
        yield inner
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        elif inspect.isroutine(inner) or isinstance(inner, type):
            return
        else:
            inner = type(inner).__call__


def definition_of(fn: Any) -> tuple[str, int]:
    """The file and the line of the author's function; "" and 0 if unknown."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    fn = inspect.unwrap(fn)
    fn = getattr(fn, "__func__", fn)
    code = getattr(fn, "__code__", None)
    if code is None:  # a callable object
        code = getattr(type(fn).__call__, "__code__", None)
    return ("", 0) if code is None else (code.co_filename, code.co_firstlineno)


def is_awaited(fn: Callable[..., Any]) -> bool:
    """Whether the function's result must be awaited.

    >>> async def later(): ...
    >>> is_awaited(functools.partial(later)), is_awaited(print)
    (True, False)
    """
    return any(map(inspect.iscoroutinefunction, layers(fn)))
