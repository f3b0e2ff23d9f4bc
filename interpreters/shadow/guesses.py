"""Texts that a secret may have been, as far as the code that looks at it shows.

A recording has a token in the place of a secret. Code that decides by the secret itself
(`mode == "strict"`, `ns, name = reference.split("/")`) decides by the token in a
replay. Another text in its place reveals such code: a text of a usual form, or a
constant of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from fnop.interpreters.check.inputs.likely import constants_in, constants_of
from fnop.interpreters.check.inputs.redeciding import code_of

__all__ = ["guesses"]

# Forms that code takes apart or converts: names, numbers, flags, addresses, JSON.
_USUAL = (
    *("x", "", "1", "true", "false", "a/b", "a.b", "a:b", "a,b", "a@b", "a=b"),
    *("{}", "[]", "https://a:b@c.d/e", "2000-01-01T00:00:00Z", "YQ==", "x" * 300),
)
_MOST = 60
# The search follows closures of closures down to this depth.
_DEPTH_MAX = 4


def guesses(function: Callable[..., Any], names: Iterable[str]) -> list[str]:
    """Texts to try in the place of secrets; `names` are the names of objects at hand.

    >>> text = "strict"
    >>> found = guesses(lambda mode: mode == text or mode == "lax", ["orders"])
    >>> {"strict", "lax", "orders", "a/b"} <= {*found}
    True
    """
    every = (*_constants_of(function), *constants_of(function))
    known = (each for each in every if isinstance(each, str))
    return [*dict.fromkeys((*_USUAL, *names, *known))][:_MOST]


def _constants_of(function: Any, depth: int = 0) -> Iterator[Any]:
    """The constants of a function, and of its closures and globals."""
    code = code_of(function)
    yield from () if code is None else constants_in(code)
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held = cell.cell_contents
        except ValueError:  # it has no value yet
            continue
        if isinstance(held, FunctionType) and depth < _DEPTH_MAX:
            yield from _constants_of(held, depth + 1)
        elif isinstance(held, str):
            yield held
        elif isinstance(held, list | tuple | set | frozenset | dict):
            yield from held
