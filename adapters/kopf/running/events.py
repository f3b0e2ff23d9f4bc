"""Kubernetes Events by call: `kopf.event`, `kopf.info`, `kopf.warn`, `kopf.exception`.

They return at once, from any handler, thread or task. The operator posts the Events.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from logging import INFO, WARNING
from typing import Any

from fnop.adapters.kopf.declaring.context import CurrentCall, current_call
from fnop.core.api.hierarchies import build_object_reference

Json = dict[str, Any]

__all__ = ["LinePoster", "event", "exception", "info", "warn"]

# The maximum length of an Event's message (Kubernetes: core/v1 validation).
MESSAGE_LENGTH_MAX = 1024
_CUT = "..."


def event(
    objs: Any, *, type: str, reason: str, message: str = "", backoffs: Any = None
) -> None:
    """Post an Event of any type about objects: one body, or an iterable of bodies.

    `backoffs` is accepted and unused: fnop retries Events as any other write. Raises
    `LookupError` outside of handlers of objects.
    """
    call = _posting_call()
    if call.posting is None or call.posting.enabled:
        _post(call, objs, type, reason, message)


def info(objs: Any, *, reason: str, message: str = "", backoffs: Any = None) -> None:
    """Post an Event of the type Normal, as `event` does."""
    call = _posting_call()
    if _is_wanted(call, INFO):
        _post(call, objs, "Normal", reason, message)


def warn(objs: Any, *, reason: str, message: str = "", backoffs: Any = None) -> None:
    """Post an Event of the type Warning, as `event` does."""
    call = _posting_call()
    if call.posting is None or call.posting.level <= WARNING:
        _post(call, objs, "Warning", reason, message)


def exception(
    objs: Any,
    *,
    reason: str = "",
    message: str = "",
    exc: BaseException | None = None,
    backoffs: Any = None,
) -> None:
    """Post an Event of the type Error about an exception, or the current one."""
    call = _posting_call()
    problem = sys.exc_info()[1] if exc is None else exc
    if problem is not None:
        reason = reason or problem.__class__.__name__
        message = (
            f"{message} {problem}"
            if message and str(problem)
            else (message or str(problem))
        )
    if _is_wanted(call, WARNING + 10):
        _post(call, objs, "Error", reason, message)


def _posting_call() -> CurrentCall:
    call = current_call()
    if call.post is None:
        raise LookupError("Events are posted by handlers of objects")
    return call


def _is_wanted(call: CurrentCall, level: int) -> bool:
    posting = call.posting
    return posting is None or (posting.enabled and posting.level <= level)


def _post(call: CurrentCall, objs: Any, type: str, reason: str, message: str) -> None:
    assert call.post is not None, "its caller has asked"
    for body in _bodies(objs):
        reference = build_object_reference(body)
        manifest = _manifest(call.posting, reference, type, reason, str(message))
        call.post(call.handler, manifest)


def _manifest(
    posting: Any, reference: Mapping[str, Any], type: str, reason: str, message: str
) -> Json:
    component = "kopf" if posting is None else posting.reporting_component
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "action": "Action?",
        "type": type,
        "reason": reason,
        "message": _shortened(message),
        "reportingComponent": component,
        "reportingInstance": "dev" if posting is None else posting.reporting_instance,
        "source": {"component": component},
        # An object that is in no namespace has its Events in this one.
        "involvedObject": {"namespace": "default", **reference},
    }


class LinePoster(logging.Handler):
    """Posts the log lines of an operator's handlers as Events, if its settings say so.

    `post` takes the id of a handler and a core/v1 Event.
    """

    def __init__(self, settings: Any, post: Callable[[str, Json], None]) -> None:
        super().__init__()
        self._settings, self._post = settings, post

    def emit(self, record: logging.LogRecord) -> None:
        """Post one line."""
        reference = getattr(record, "k8s_ref", None)
        posting = self._settings.posting
        is_ours = getattr(record, "settings", None) is self._settings
        wants = posting.enabled and posting.loggers and record.levelno >= posting.level
        if not (is_ours and wants and reference) or getattr(record, "k8s_skip", False):
            return
        type = next(name for most, name in _TYPES if record.levelno <= most)
        about = {key: value for key, value in reference.items() if value is not None}
        message = self.format(copy(record))  # with the traceback; it is kept there
        manifest = _manifest(posting, about, type, "Logging", message)
        self._post("", manifest)


_TYPES = (
    (logging.DEBUG, "Debug"),
    (logging.INFO, "Normal"),
    (logging.WARNING, "Warning"),
    (logging.ERROR, "Error"),
    (math.inf, "Fatal"),
)


def _shortened(message: str) -> str:
    """
    >>> len(_shortened("x" * 2000)), _shortened("short")
    (1024, 'short')
    """
    if len(message) <= MESSAGE_LENGTH_MAX:
        return message
    head = MESSAGE_LENGTH_MAX // 2 - len(_CUT) // 2
    tail = MESSAGE_LENGTH_MAX - len(_CUT) - head
    return f"{message[:head]}{_CUT}{message[-tail:]}"


def _bodies(objs: Any) -> Iterator[Mapping[str, Any]]:
    """The bodies in nested iterables; models of clients are unwrapped."""
    if objs is None:
        return
    if isinstance(objs, Mapping):
        yield objs
    elif isinstance(getattr(objs, "obj", None), Mapping):  # pykube
        yield objs.obj
    elif hasattr(objs, "to_dict"):
        raise TypeError(f"{type(objs).__name__} is a model; post about its manifest")
    elif isinstance(objs, Iterable) and not isinstance(objs, (str, bytes)):
        for each in objs:
            yield from _bodies(each)
    else:
        raise TypeError(f"an Event is about an object, not {type(objs).__name__}")
