"""The expectations of an author: predicates on an object and its world."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from traceback import walk_tb
from typing import Any

from msgspec import Struct

from fnop.core.values.body import View
from fnop.core.values.errors import described
from fnop.interpreters.check.state.pictures import Picture

__all__ = [
    "Expectation",
    "Predicate",
    "error_in",
    "expect",
    "expectations_in",
]

_MARK = "__fnop_expects__"


Predicate = Callable[[View, Picture], Any]


class Expectation(Struct, frozen=True):
    """A predicate that holds for each object of a kind, once everything has settled.

    If it is `deleting`, it also holds for objects under deletion. If it holds `always`,
    it also holds after each change of the cluster.
    """

    kind: str
    holds: Predicate
    deleting: bool = False
    always: bool = False


def expect(
    kind: str, *, deleting: bool = False, always: bool = False
) -> Callable[[Predicate], Predicate]:
    """Declare what holds for each object of a `kind` once everything has settled.

    The function gets the object, and the world around it; its result counts as true or
    false. It is in the file of a script, or next to the operator:

        @expect("databases")
        def has_its_claim(database, world):
            return f"pvc/{database.name}" in world

    With `deleting` it is also called for objects that are being deleted. With `always`
    it is also called after each change of the cluster, even while faults strike. The
    world has the objects, the operator's `requests`, the `changes` of the cluster in
    their order, and each external `model`.

    Raises TypeError for a function that does not take these two.
    """

    def marked(holds: Predicate) -> Predicate:
        name = getattr(holds, "__name__", "the function")
        with suppress(ValueError):  # the arguments of a C function are unknown
            try:
                inspect.signature(holds).bind(None, None)
            except TypeError:
                raise TypeError(
                    f"@expect({kind!r}): {name} takes the object, and the world around "
                    f"it: def {name}(obj, world)"
                ) from None
        setattr(holds, _MARK, Expectation(kind, holds, deleting, always))
        return holds

    return marked


def expectations_in(names: Mapping[str, Any]) -> tuple[Expectation, ...]:
    """The expectations among the names of a module."""
    return tuple(
        getattr(each, _MARK)
        for each in names.values()
        if callable(each) and hasattr(each, _MARK)
    )


def error_in(function: Callable[..., Any], problem: BaseException) -> str:
    """An error of an author's function, with the line: `KeyError: 'a' (s.py, line 4)`.

    The line is in the function itself, or in another function of its file.
    """
    code = getattr(function, "__code__", None)
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(problem.__traceback__)
    ]
    own = [each for each in frames if code and each[0] == code.co_filename]
    file, line = (own or frames)[-1]
    return f"{described(problem)} ({os.path.basename(file)}, line {line})"
