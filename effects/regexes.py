"""Regular expressions that are compiled when they are first used.

Python compiles one in up to 5 ms. fnop has dozens, and most of them are for errors that
seldom occur: together they were a twentieth of the CPU time of a start.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["regex"]


class _Regex:
    """Stands for a pattern, and takes on its methods as they are used."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)  # from now on it costs no call of this function
        return found


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, but compile it later.

    >>> digits = regex("[0-9]+")
    >>> digits.fullmatch("12").group(), digits.fullmatch("x")
    ('12', None)
    """
    return cast("re.Pattern[AnyStr]", _Regex(pattern, flags))
