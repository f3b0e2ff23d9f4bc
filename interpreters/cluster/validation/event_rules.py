"""Validation of events, in core/v1 and in events.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Iterator

from fnop.interpreters.cluster.validation.faults import bad, immutable, required
from fnop.interpreters.cluster.validation.field_rules import qualified
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["event_changes", "event_faults", "strict_event_faults"]

NOT_THERE = "does not match event.namespace"
LIMITS = (("action", 128), ("reason", 128), ("reportingInstance", 128))
MOST_LETTERS = 1024


def event_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of an event; an event without eventTime is of the old kind."""
    space = obj["metadata"].get("namespace", "")
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    if not obj.get("eventTime"):
        if about != space and (about or space not in ("", "default")):
            yield bad("involvedObject.namespace", about, NOT_THERE)
        return
    if not about and space not in ("default", "kube-system"):
        yield bad("involvedObject.namespace", about, NOT_THERE)
    reporter = obj.get("reportingComponent", "")
    if not reporter:
        yield required("reportingController")
    yield from qualified("reportingController", reporter)
    for name, most in LIMITS:
        text = obj.get(name) or ""
        if not text:
            yield required(name)
        elif len(text) > most:
            yield bad(name, "", f"can have at most {most} characters")
    if len(obj.get("message") or "") > MOST_LETTERS:
        yield bad("message", "", f"can have at most {MOST_LETTERS} characters")


def strict_event_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a new event of events.k8s.io."""
    yield from event_faults(obj)
    yield from _series_faults(obj)
    if not obj.get("eventTime"):
        yield required("eventTime")
    kind = obj.get("type", "")
    if kind not in ("Normal", "Warning"):
        yield bad("type", "", f"has invalid value: {kind}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if obj.get(name):
            yield bad(name, "", "needs to be unset")


def _series_faults(obj: Object) -> Iterator[Fault]:
    series = obj.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield bad("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


LOCKED = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp"),
    *("lastTimestamp", "count", "type", "eventTime", "action", "related"),
    "reportingInstance",
)


def event_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the changes to an event other than its series."""
    if new.get("series") != old.get("series"):
        yield from _series_faults(new)
    yield from immutable(new, old, "", *LOCKED)
    if new.get("reportingComponent") != old.get("reportingComponent"):
        reporter = new.get("reportingComponent", "")
        yield bad("reportingController", reporter, "field is immutable")
