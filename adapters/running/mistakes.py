"""Folding of programming errors in the log of a running operator.

fnop retries a handler that fails by a programming error again and again, for each of
its objects. The log shows the traceback once, each object once, and then a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fnop.core.seam.commands import Say
from fnop.core.values.errors import CallFailed
from fnop.effects.structs import replace

__all__ = ["Mistakes"]

# Errors that mean a mistake in the program; errors of values and connections may pass.
_PROGRAMMING = (
    TypeError,
    NameError,
    AttributeError,
    LookupError,
    AssertionError,
    ImportError,
    NotImplementedError,
    RecursionError,
)
# The largest number of remembered errors, and of objects with one. The texts may never
# repeat.
_KNOWN_MAX = 10_000


class Mistakes:
    """Pass log lines on by `say`, except for programming errors that are known.

    Errors are the same if their handler and their text are. A known error is passed on
    at the level debug, without its traceback. The 10th, the 100th, the 1,000th
    occurrence and so on is shown, with the count.
    """

    def __init__(self, say: Callable[[Say], None]) -> None:
        self._say = say
        self._times: Counter[tuple[str | None, ...]] = Counter()

    def say(self, say: Say) -> None:
        """Pass a line on, or fold it."""
        self._say(self._fold_repeats(say) if _is_mistake(say) else say)

    def _fold_repeats(self, say: Say) -> Say:
        uid = None if say.subject is None else say.subject.uid
        key = (say.handler, say.error)
        times = self._count(key)
        if times == 1:
            self._count((*key, uid))
            return say
        say = replace(say, exception=None)
        if self._count((*key, uid)) == 1:
            return say  # this object has not been named yet
        if say.ended is not None and not say.ended.retried:
            return say  # the last line about it
        if str(times).strip("0") != "1":
            return replace(say, level="debug")
        return replace(say, message=f"{say.message} ({times:,} times by now)")

    def _count(self, key: tuple[str | None, ...]) -> int:
        if key not in self._times and len(self._times) >= _KNOWN_MAX:
            del self._times[next(iter(self._times))]
        self._times[key] += 1
        return self._times[key]


def _is_mistake(say: Say) -> bool:
    problem = say.exception
    if isinstance(problem, CallFailed) and problem.__cause__ is not None:
        problem = problem.__cause__
    return say.error is not None and isinstance(problem, _PROGRAMMING)
