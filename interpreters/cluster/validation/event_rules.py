"""Validation of events, in core/v1 and in events.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import bad, immutable
from fnop.interpreters.cluster.validation.rules import Rule
from fnop.interpreters.cluster.validation.tables import needed, table, when
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["EVENT", "STRICT_EVENT", "event_changes"]


def _hidden(test: Callable[[Any], Any], why: str) -> Rule:
    """A test whose fault does not show the value."""
    return lambda value, path: () if test(value) else (bad(path, "", why),)


def _namespace(event: Object, path: str) -> Iterator[Fault]:
    space = event["metadata"].get("namespace", "")
    about = (event.get("involvedObject") or {}).get("namespace", "")
    if event.get("eventTime"):
        is_wrong = not about and space not in ("default", "kube-system")
    else:
        is_wrong = about != space and (about or space not in ("", "default"))
    if is_wrong:
        why = "does not match event.namespace"
        yield bad("involvedObject.namespace", about, why)


def _limited(most: int) -> Rule:
    return _hidden(
        lambda text: len(text or "") <= most, f"can have at most {most} characters"
    )


# An event without eventTime is of the old kind.
EVENT = table(
    _namespace,
    when(
        lambda event: event.get("eventTime"),
        "reportingComponent as reportingController: needed",
        "reportingComponent as reportingController: qualified name",
        ("action, reason, reportingInstance", needed(_limited(128))),
        ("message", _limited(1024)),
    ),
)
SERIES = table(
    ("count", _hidden(lambda count: (count or 0) >= 2, "should be at least 2")),
    "lastObservedTime: needed",
)


def _type(kind: str | None, path: str) -> Iterable[Fault]:
    if kind not in ("Normal", "Warning"):
        yield bad(path, "", f"has invalid value: {kind or ''}")


# A new event of events.k8s.io.
STRICT_EVENT = table(
    EVENT,
    ("series?", SERIES),
    "eventTime: needed",
    ("type", _type),
    (
        "firstTimestamp, lastTimestamp, count, source",
        _hidden(lambda value: not value, "needs to be unset"),
    ),
)
LOCKED = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp"),
    *("lastTimestamp", "count", "type", "eventTime", "action", "related"),
    "reportingInstance",
)


def event_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the changes to an event other than its series."""
    if new.get("series") != old.get("series") and new.get("series") is not None:
        yield from SERIES(new["series"], "series")
    yield from immutable(new, old, "", *LOCKED)
    if new.get("reportingComponent") != old.get("reportingComponent"):
        reporter = new.get("reportingComponent", "")
        yield bad("reportingController", reporter, "field is immutable")
