"""Functions that `fnop.call` names: run, and answered by an outcome."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from fnop.core.errors import PermanentError, TemporaryError
from fnop.effects import Answer, Call, Outcome, Raised
from fnop.effects.values import freeze_json

__all__ = ["called", "raised"]


def called(function: Callable[..., Any], call: Call) -> Outcome:
    """Run a called function in its thread; what it raises is an outcome.

    It is returned, not raised: a StopIteration cannot cross over to the loop, and
    a SystemExit would end the operator.
    """
    try:
        value = function(**call.arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        return Answer(freeze_json(value, f"the answer of {call.function}"))
    except BaseException as problem:
        return raised(problem)


def raised(problem: BaseException) -> Raised:
    """What an exception of a called function is to the handler that called it."""
    name, text = type(problem).__name__, str(problem)
    match problem:
        case TemporaryError():
            return Raised("TemporaryError", text, problem.delay)
        case PermanentError():
            return Raised(name, text, permanent=True)
        case _:
            return Raised(name, text)
