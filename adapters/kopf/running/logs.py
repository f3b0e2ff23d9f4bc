"""Kopf's loggers: `kopf.objects` for objects, `kopf.activities.*` for the rest.

Operators filter these names and the sentences in them, so both are as in Kopf.
"""

from __future__ import annotations

import copy
import enum
import json
import logging
import math
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

from fnop.adapters.common.tracebacks import begin_at_author
from fnop.core.api.hierarchies import build_object_reference
from fnop.core.seam.commands import Say

__all__ = [
    "TITLES",
    "LocalObjectLogger",
    "LogFormat",
    "ObjectLogger",
    "TerseObjectLogger",
    "activity_logger",
    "configure",
    "write",
]

_OBJECTS = logging.getLogger("kopf.objects")
_REFERENCE = ("apiVersion", "kind", "name", "uid", "namespace")


def _complete(reference: Mapping[str, Any]) -> dict[str, Any]:
    """The reference with all of Kopf's keys: objects in no namespace have None there.

    >>> _complete({"kind": "Node", "name": "a"})["namespace"] is None
    True
    """
    return {key: reference.get(key) for key in _REFERENCE}


class LogFormat(enum.Enum):
    """The forms of log lines."""

    PLAIN = "%(message)s"
    FULL = "[%(asctime)s] %(name)-20.20s [%(levelname)-8.8s] %(message)s"
    JSON = "-json-"


class ObjectLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger of one object: each record has its reference in `k8s_ref`."""

    def __init__(self, *, body: Mapping[str, Any], settings: Any = None) -> None:
        reference = _complete(build_object_reference(body))
        extra = {"settings": settings, "k8s_skip": False, "k8s_ref": reference}
        super().__init__(_OBJECTS, extra)

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        given = kwargs.get("extra") or {}
        kwargs["extra"] = {**(self.extra or {}), **given}
        return msg, kwargs


class LocalObjectLogger(ObjectLogger):
    """A logger of one object whose lines never become Events."""

    def log(self, level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "k8s_skip": True}
        super().log(level, msg, *args, **kwargs)


class TerseObjectLogger(LocalObjectLogger):
    """A logger for index functions, which are called for each event of each object.

    Its info lines are for `--verbose`. Its debug lines are never written.
    """

    def isEnabledFor(self, level: int) -> bool:
        """Whether lines of this level are written."""
        least = level if level >= logging.WARNING else level - 10
        return super().isEnabledFor(least)


def activity_logger(activity: str) -> logging.Logger:
    """The logger of startup, cleanup, login or probe handlers."""
    return logging.getLogger(f"kopf.activities.{activity}")


# The severities up to a level.
_SEVERITIES = (
    (logging.DEBUG, "debug"),
    (logging.INFO, "info"),
    (logging.WARNING, "warn"),
    (logging.ERROR, "error"),
    (math.inf, "fatal"),
)
# The attributes of a record that do not come from `extra=` of its line.
_OWN = {
    *vars(logging.makeLogRecord({})),
    *("asctime", "message", "taskName", "k8s_skip", "k8s_ref", "settings"),
}


class _Formatter(logging.Formatter):
    """A line of text, with the object in front if `prefix`."""

    def __init__(self, format: str, *, prefix: bool) -> None:
        super().__init__(format)
        self._prefix = prefix

    def format(self, record: logging.LogRecord) -> str:
        reference = getattr(record, "k8s_ref", None)
        if not self._prefix or not reference:
            return super().format(record)
        parts = (reference.get("namespace"), reference.get("name"))
        shown = copy.copy(record)
        shown.msg = f"[{'/'.join(filter(None, parts))}] {record.getMessage()}"
        shown.args = None
        return super().format(shown)


class _JsonFormatter(_Formatter):
    """A line of JSON, with the object under `refkey`."""

    def __init__(self, refkey: str, *, prefix: bool) -> None:
        super().__init__("%(message)s", prefix=prefix)
        self._refkey = refkey

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC)
        plain = copy.copy(record)
        plain.exc_info = plain.exc_text = None
        found: dict[str, Any] = {
            "message": super().format(plain),
            "timestamp": when.isoformat(),
            **{name: each for name, each in vars(record).items() if name not in _OWN},
            "severity": next(
                name for most, name in _SEVERITIES if record.levelno <= most
            ),
        }
        reference = getattr(record, "k8s_ref", None)
        if reference:
            found[self._refkey] = reference
        if record.exc_info:
            found["exc_info"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


class _Handler(logging.StreamHandler[Any]):
    """The handler of `configure`, which the next call replaces."""


def configure(
    debug: bool | None = None,
    verbose: bool | None = None,
    quiet: bool | None = None,
    log_format: Any = LogFormat.FULL,
    log_prefix: bool | None = False,
    log_refkey: str | None = None,
) -> None:
    """Send the log of this process to standard error, in one of Kopf's forms.

    `log_format` may be a format of the standard `logging`, too. `log_prefix` begins
    each line with its object; None: unless the format is JSON.
    """
    is_json = log_format is LogFormat.JSON
    prefix = not is_json if log_prefix is None else log_prefix
    formatter: logging.Formatter
    if is_json:
        formatter = _JsonFormatter(log_refkey or "object", prefix=prefix)
    else:
        format = log_format.value if isinstance(log_format, LogFormat) else log_format
        formatter = _Formatter(str(format), prefix=prefix)
    handler = _Handler()
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    level = logging.DEBUG if debug or verbose else logging.INFO
    root.setLevel(logging.WARNING if quiet and level > logging.DEBUG else level)
    # Kopf shows lines of asyncio with `--debug` alone.
    asyncio_log = logging.getLogger("asyncio")
    asyncio_log.propagate = bool(debug)
    if not debug:
        asyncio_log.handlers[:] = [logging.NullHandler()]


def write(say: Say, settings: Any, *, is_of_fnop: bool = False) -> None:
    """Write a line of the operator to Kopf's loggers.

    A line about a handler `is_of_fnop` if the handler is not one of Kopf's.
    """
    level = _LEVELS[say.level]
    if level == logging.INFO and not is_of_fnop:
        level = logging.DEBUG  # Kopf has its own words for this level
    error = say.exception
    if error is not None:
        begin_at_author(error)
    if say.subject is None:
        logging.getLogger("kopf.fnop").log(level, say.message, exc_info=error)
        return
    extra: dict[str, Any] = {"k8s_ref": _complete(say.subject.reference)}
    told = _words_for_change(dict(say.fields))
    if told:
        extra |= {"settings": settings, "k8s_skip": False}  # it may be an Event, too
        _OBJECTS.info(told, extra=extra)
        return
    _OBJECTS.log(level, say.message, exc_info=error, extra=extra)


def _words_for_change(fields: Mapping[str, Any]) -> str:
    """The sentence of Kopf about the end of a change; "" for other lines.

    >>> _words_for_change({"handled": "create", "succeeded": 2, "failed": 0})
    'Creation is processed: 2 succeeded; 0 failed.'
    """
    match fields:
        case {"superseded": was, "by": now, "left": left}:
            what = f"superseded by {TITLES[now].lower()}"
            end = f"; {left} left to the moment."
        case {"handled": was, "succeeded": _, "failed": _, **more} if not more:
            what, end = "processed", "."
        case _:
            return ""
    ends = f"{fields['succeeded']} succeeded; {fields['failed']} failed"
    return f"{TITLES[was]} is {what}: {ends}{end}"


# The words of Kopf for the causes of changes.
TITLES = {
    "create": "Creation",
    "update": "Updating",
    "delete": "Deletion",
    "resume": "Resuming",
}


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
