"""The options of a log handler, which select containers and their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.filters import Callback
from fnop.core.values.errors import RegistrationError
from fnop.core.values.patterns import matches
from fnop.effects.regexes import regex
from fnop.effects.values import check_seconds, shown

__all__ = ["Begin", "LogSelection", "begin_of", "log_selection_of"]

# The lines that are read first: "now" or "start", seconds, or from a given time.
Begin = str | float | datetime

_SINCE = ("now", "start")
_NAME = regex(r"[a-z0-9*?-]+")


class LogSelection(Struct, frozen=True):
    """The lines that lead to a call of a handler.

    `containers` are patterns of names. Lines must match `regex`; at most `rate` of them
    pass per second. `since` defines the start of the first reading: a `Begin`, or a
    function of the pod that returns one. With `multiline`, several lines can be one
    event: the lines of a traceback, or the lines from one match of a pattern to the
    next.
    """

    containers: tuple[str, ...] = ("*",)
    regex: re.Pattern[str] | None = None
    since: Begin | Callback = "now"
    rate: float | None = None
    multiline: re.Pattern[str] | bool = False

    def takes(self, container: str) -> bool:
        """Whether the handler reads containers of this name."""
        return any(matches(each, container) for each in self.containers)

    def shares(self, other: LogSelection) -> bool:
        """Whether two handlers may read one stream."""
        same = self.since == other.since and self.multiline == other.multiline
        return same and not isinstance(self.since, Callback)


def log_selection_of(
    options: Mapping[str, Any], label: str, callback: Callable[[Any, str], Callback]
) -> LogSelection:
    """Return a decorator's options; raise `RegistrationError` for impossible ones."""
    return LogSelection(
        _parse_containers(options.get("container"), label),
        _parse_pattern(options.get("regex"), "regex", label),
        _parse_since(options.get("since"), label, callback),
        _parse_rate(options.get("rate"), label),
        _parse_multiline(options.get("multiline"), label),
    )


def begin_of(found: Any) -> Begin:
    """Return the value of `since=`, or of its function's result; a text may be a time.

    Raises `ValueError` or `TypeError` for any other value.

    >>> begin_of("start"), begin_of(None), begin_of(60), begin_of("2026-01-31T12:00Z")
    ('start', 'now', 60.0, datetime.datetime(2026, 1, 31, 12, 0, \
tzinfo=datetime.timezone.utc))
    """
    if found is None or found in _SINCE:
        return found or "now"
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found)
        except ValueError:
            raise ValueError(_invalid_since(found)) from None
    if isinstance(found, datetime):
        if found.tzinfo is None:
            raise ValueError(f"since= is a time with its zone, not {found}")
        return found
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise TypeError(_invalid_since(found))
    check_seconds(found, "since=")
    return float(found)


def _invalid_since(found: Any) -> str:
    return f'since= is "now", "start", seconds or a time, not {shown(found)}'


def _parse_since(
    found: Any, label: str, callback: Callable[[Any, str], Callback]
) -> Begin | Callback:
    if callable(found):
        return callback(found, "since")
    try:
        return begin_of(found)
    except (TypeError, ValueError) as problem:
        raise RegistrationError(f"{label}: {problem}") from None


def _parse_containers(found: Any, label: str) -> tuple[str, ...]:
    if found is None:
        return ("*",)
    names = (found,) if isinstance(found, str) else found
    if not isinstance(names, Sequence) or not all(
        isinstance(each, str) and each for each in names
    ):
        raise RegistrationError(
            f"{label}: container= is a name, or a pattern such as 'app-*', or several "
            f"in a list, not {shown(found)}"
        )
    if not names:
        raise RegistrationError(f"{label}: container= names no container")
    for each in names:
        if not _NAME.fullmatch(each):
            raise RegistrationError(
                f"{label}: container={shown(each)} fits no container: names have "
                "small letters, digits and '-', and patterns '*' and '?'"
            )
    return tuple(names)


def _parse_pattern(found: Any, name: str, label: str) -> re.Pattern[str] | None:
    if found is None:
        return None
    if isinstance(found, re.Pattern) and isinstance(found.pattern, str):
        return found
    if not isinstance(found, str):
        raise RegistrationError(
            f"{label}: {name}= is a regular expression, not {shown(found)}"
        )
    try:
        return re.compile(found)
    except re.error as problem:
        raise RegistrationError(
            f"{label}: {name}={shown(found)} is not a regular expression: {problem}"
        ) from None


def _parse_rate(found: Any, label: str) -> float | None:
    if found is None:
        return None
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if not is_number or not 0 < found < float("inf"):
        raise RegistrationError(
            f"{label}: rate= is a number of lines a second, above zero, not "
            f"{shown(found)}"
        )
    return float(found)


def _parse_multiline(found: Any, label: str) -> re.Pattern[str] | bool:
    if isinstance(found, bool):
        return found
    return _parse_pattern(found, "multiline", label) or False
