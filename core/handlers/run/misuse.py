"""Errors in the author's use of fnop, which no retry fixes."""

from __future__ import annotations

import inspect
from types import TracebackType

from fnop.core.values.errors import nearest, text_of
from fnop.effects import builders
from fnop.effects.regexes import regex

__all__ = ["is_misuse", "remedy_of"]

_OWN = ("fnop.effects.", "fnop.core.")
# Python refuses wrong arguments in the frame of the caller.
_BINDING = regex(r"(\w+)\(\) (got|missing|takes) ")


def is_misuse(problem: BaseException) -> bool:
    """Whether an exception of a handler is about its use of fnop.

    It is a `TypeError` that fnop has raised or created. Examples are an effect with
    wrong arguments, a result that is not a plan, or an effect that was not awaited. The
    same code fails again in the same way, whereas an error of another library may pass.

    >>> is_misuse(TypeError("create() got an unexpected keyword argument 'x'"))
    True
    >>> is_misuse(ValueError("no"))
    False
    """
    if isinstance(problem, AttributeError):  # from an answer that was not awaited
        return _raising_module(problem.__traceback__).startswith("fnop.effects.effects")
    if not isinstance(problem, TypeError):
        return False
    if problem.__traceback__ is None or _raising_module(
        problem.__traceback__
    ).startswith(_OWN):
        return True
    found = _BINDING.match(text_of(problem))
    return found is not None and found[1] in builders.__all__


def remedy_of(problem: BaseException) -> str:
    """The end of the sentence about a mistyped argument of an effect.

    >>> remedy_of(TypeError("create() got an unexpected keyword argument 'manifset'"))
    "; did you mean 'manifest'?"
    >>> remedy_of(TypeError("sleep() got an unexpected keyword argument 'x'"))
    '; it takes seconds'
    """
    found = _UNEXPECTED.match(text_of(problem))
    if found is None or found[1] not in builders.__all__:
        return ""
    names = [*inspect.signature(getattr(builders, found[1])).parameters]
    near = nearest(found[2], names)
    return f"; did you mean {near!r}?" if near else f"; it takes {', '.join(names)}"


_UNEXPECTED = regex(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'$")


def _raising_module(traceback: TracebackType | None) -> str:
    """The name of the module that has raised an exception."""
    name = ""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__"))
        traceback = traceback.tb_next
    return name
