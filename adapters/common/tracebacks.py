"""Tracebacks as far as they concern the author's code."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from fnop.adapters.common.loading import is_authors_code

__all__ = ["begin_at_author", "has_author", "is_of_fnop", "steps_of"]


def begin_at_author(problem: BaseException) -> None:
    """Let the traceback of an error begin at the first line of the author's code.

    So do the tracebacks of its causes, and of the errors in a group. One without such a
    line stays whole: it is about a fault in fnop.
    """
    for each in _related(problem):
        first = next(filter(_is_authors, steps_of(each)), None)
        each.with_traceback(first or each.__traceback__)  # also if its class is frozen


def has_author(problem: BaseException) -> bool:
    """Whether the traceback of an error has a line of the author's code."""
    return any(map(_is_authors, steps_of(problem)))


def steps_of(problem: BaseException) -> Iterator[TracebackType]:
    """The frames of a traceback, outermost first."""
    step = problem.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def is_of_fnop(step: TracebackType) -> bool:
    """Whether a frame belongs to fnop."""
    return str(step.tb_frame.f_globals.get("__name__")).startswith("fnop.")


def _is_authors(step: TracebackType) -> bool:
    frame = step.tb_frame
    return is_authors_code(
        frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    )


def _related(problem: BaseException) -> Iterator[BaseException]:
    """An error, its causes, and the members of groups; each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [problem]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += (each.__cause__, each.__context__)
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
