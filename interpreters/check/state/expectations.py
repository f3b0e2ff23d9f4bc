"""The expectations of an author: predicates on an object and its world."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from traceback import walk_tb
from typing import Any, NamedTuple

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


class Expectation(NamedTuple):
    """A predicate that holds for each object of a kind, once all has come to rest.

    If it is `deleting`, also for objects that are being deleted; and if it holds
    `always`, after each change of the cluster, too.
    """

    kind: str
    holds: Predicate
    deleting: bool = False
    always: bool = False


def expect(
    kind: str, *, deleting: bool = False, always: bool = False
) -> Callable[[Predicate], Predicate]:
    """Declare what holds of each object of a `kind` when all has come to rest.

    The function gets the object, and the world around it; what it answers counts as
    true or false. It stands in the file of a script, or beside the operator:

        @expect("databases")
        def has_its_claim(database, world):
            return f"pvc/{database.name}" in world

    With `deleting` it is asked of objects that are being deleted as well, and with
    `always` after each change of the cluster, also while faults strike. The world has
    the objects, the operator's `requests`, the `changes` of the cluster in their order,
    and each external `model`.

    Raises TypeError for a function that does not take these two.
    """

    def marked(holds: Predicate) -> Predicate:
        name = getattr(holds, "__name__", "the function")
        with suppress(ValueError):  # of one in C nobody knows what it takes
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

    The line is the function's own, or that of another function in its file.
    """
    code = getattr(function, "__code__", None)
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(problem.__traceback__)
    ]
    own = [each for each in frames if code and each[0] == code.co_filename]
    file, line = (own or frames)[-1]
    return f"{described(problem)} ({os.path.basename(file)}, line {line})"
