"""Telling that the author's code fails on an object, once for each state of it."""

from __future__ import annotations

from fnop.core.state.context import Context
from fnop.core.state.record import Known
from fnop.core.values.errors import described

__all__ = ["complain"]


def complain(context: Context, known: Known, line: str, problem: BaseException) -> None:
    """Say once for each state of the object that the author's code fails on it."""
    about = f"{known.body.version} {line}"
    if about in known.complaints:
        return
    text = described(problem)
    context.say("error", f"{line}: {text}", error=text, exception=problem)
    context.failed()
    version = f"{known.body.version} "
    kept = [each for each in known.complaints if each.startswith(version)]
    now = context.known or known
    context.put(now._replace(complaints=(*kept, about)))
