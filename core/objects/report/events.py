"""Kubernetes Events: reports of the operator about an object, with limits.

If the same report comes within ten minutes, fnop increases the count of the existing
Event instead of creating another one. An object may get 25 reports at once, and one
every five minutes afterwards. Both are the rules of client-go's EventCorrelator: Events
share the cluster's storage with everything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.kubernetes.names import SUBDOMAIN
from fnop.core.seam.commands import Subject
from fnop.core.seam.inputs import EventPosted, WriteDenied
from fnop.core.state.address import Address
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import IN_SERVICE, Phase
from fnop.core.state.record import ObjectRecord, Report, Reports
from fnop.core.state.requests import ForEvent
from fnop.core.state.turn import Turn
from fnop.core.values.body import Body, Key
from fnop.core.values.now import Now, wall_text
from fnop.effects import Create, Event, Missing, Outcome, Patch, Target
from fnop.effects.effects import LEVELS
from fnop.effects.structs import replace

__all__ = [
    "event_manifest",
    "event_posted",
    "note_line",
    "post_event",
    "report_denial",
    "report_event",
    "report_noted",
]

# A report that comes again within this time counts as the same (client-go:
# defaultAggregateIntervalInSeconds).
SAME_SECONDS = 600.0
# The number of an object's reports that are remembered, and may come at once. Then the
# seconds until one more may come (client-go: defaultSpamBurst, defaultSpamQPS).
REPORTS_MAX = 25
REFILL_SECONDS = 300.0

_NOWHERE = (
    "Kubernetes Events cannot be reported here; where there is no object, name one: "
    "about=fnop.target(...)"
)

_NAME_LENGTH_MAX = 200


def report_event(
    context: Context, record: ObjectRecord, event: Event, handler: str = ""
) -> ObjectRecord:
    """Report a Kubernetes Event; fnop does not await it, and it cannot fail anything.

    `handler` is the id of the handler that reports it, if a handler does.
    """
    if context.is_activity and event.target is None:
        context.warn_once("events", _NOWHERE)
        return record
    reports = _request_report(context, record.reports, event, record.body, handler)
    return replace(record, reports=reports)


def report_denial(turn: Turn, denied: WriteDenied) -> None:
    """Report that an admission handler has denied a write.

    Objects without a record, such as objects of denied creations, share one limit.
    """
    resource = turn.survey.catalogue.lookup(denied.resource)
    if resource is None or turn.lifecycle.phase not in IN_SERVICE:
        return
    key = Key(resource.key, denied.namespace, denied.name)
    context = Context(turn, key)
    target = Target.existing(
        denied.resource, denied.name, denied.namespace or None, denied.uid or None
    )
    event = Event("Denied", denied.message, "Warning", target)
    record = context.record
    known = turn.notes.denials if record is None else record.reports
    reports = _request_report(context, known, event, None, denied.handler)
    if record is None:
        turn.notes = replace(turn.notes, denials=reports)
    else:
        context.put(replace(record, reports=reports))


def post_event(turn: Turn, posted: EventPosted) -> None:
    """Create an Event that code outside of the steps has posted.

    Like Kopf, fnop neither counts nor limits these Events. An Event about an Event is
    dropped, because it would never end.
    """
    resource = turn.survey.catalogue.lookup("events.v1.")
    regarding = posted.manifest["involvedObject"]
    if turn.lifecycle.phase is Phase.ENDED or regarding.get("kind") == "Event":
        return
    if resource is None:
        turn.say("warning", _NOWHERE)
        return
    unique = f"{turn.counters.seed}-{turn.next_serial()}"
    added = _place_and_time(regarding, turn.now, unique)
    name, namespace = added["metadata"]["name"], added["metadata"]["namespace"]
    key = Key(regarding.get("kind", ""), namespace, str(regarding["name"]))
    address = Address(resource, namespace, name)
    ticket = ForEvent(key, posted.handler, name)
    turn.perform(Create({**posted.manifest, **added}), address, ticket, None)


def _request_report(
    context: Context,
    known: Reports,
    event: Event,
    body: Body | None,
    handler: str,
) -> Reports:
    """Request one more report, if the limits allow it; return the reports."""
    resource = context.turn.survey.catalogue.lookup("events.v1.")
    if resource is None:
        context.warn_once("events", _NOWHERE)
        return known
    subject = context.subject(body)
    about = _regarded_object(context, subject, event.target)
    if about.kind == "Event":
        return known  # an Event about each Event would never end
    reports = _refill_reports(known, context.now)
    if reports.left < 1:
        text = f"{event.type} {event.reason}: {event.message}"
        line = f"a Kubernetes Event is dropped, for too many were reported: {text}"
        context.say("debug", line)
        return reports
    found = next(
        (each for each in reports.recent if _is_same(each, event, context.now)), None
    )
    report, effect = (
        _first(context, event, about)
        if found is None
        else _repeated_report(found, context.now)
    )
    address = Address(resource, report.namespace, report.name)
    ticket = ForEvent(context.key, handler, report.name)
    context.turn.perform(effect, address, ticket, subject)
    recent = [each for each in reports.recent if each is not found][-REPORTS_MAX + 1 :]
    return replace(reports, left=reports.left - 1, recent=(*recent, report))


def note_line(context: Context, handler: Handler, level: str, message: str) -> None:
    """Turn a log line of an object's handler into an Event, if that is configured.

    Handlers that are called for each watch event are skipped: an Event is one, too.
    """
    least = context.settings.posting_level
    if least is None or not handler.rule.posts:
        return
    if LEVELS.index(level) >= LEVELS.index(least):
        kind = "Warning" if level in ("warning", "error") else "Normal"
        context.post(Event("Logging", message, kind), handler.id)


def report_noted(turn: Turn) -> None:
    """Report the log lines of this step."""
    for key, event, handler in turn.noted:
        context = Context(turn, key)
        record = context.record
        if record is not None:
            context.put(report_event(context, record, event, handler))


def _refill_reports(reports: Reports, now: Now) -> Reports:
    more = (now.mono - reports.at) / REFILL_SECONDS
    return replace(reports, left=min(REPORTS_MAX, reports.left + more), at=now.mono)


def _is_same(report: Report, event: Event, now: Now) -> bool:
    return report.event == event and now.mono - report.last <= SAME_SECONDS


def _first(
    context: Context, event: Event, about: Subject
) -> tuple[Report, Create | Patch]:
    unique = f"{context.turn.counters.seed}-{context.turn.next_serial()}"
    manifest = event_manifest(event, about, context.settings, context.now, unique)
    meta = manifest["metadata"]
    report = Report(event, meta["name"], meta["namespace"], 1, context.now.mono)
    return report, Create(manifest)


def _repeated_report(report: Report, now: Now) -> tuple[Report, Create | Patch]:
    """The report with one more count, and the patch of the existing Event."""
    count = report.count + 1
    target = Target("events.v1.", report.name, report.namespace)
    change = {"count": count, "lastTimestamp": _meta_time(now)}
    return replace(report, count=count, last=now.mono), Patch(target, change)


def event_posted(record: ObjectRecord, name: str, outcome: Outcome) -> ObjectRecord:
    """Return the record without a missing Event: it will be created again.

    The API server keeps Events for an hour.
    """
    if not isinstance(outcome, Missing):
        return record
    recent = tuple(each for each in record.reports.recent if each.name != name)
    return replace(record, reports=replace(record.reports, recent=recent))


def _meta_time(now: Now) -> str:
    """The time as metav1.Time: whole seconds."""
    return wall_text(now.wall)[:19] + "Z"


def event_manifest(
    event: Event, subject: Subject, settings: Settings, now: Now, unique: str
) -> dict[str, Any]:
    """The core/v1 Event about `subject`."""
    regarding = subject.reference
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": regarding,
        "reason": event.reason,
        "message": event.message,
        "type": event.type,
        "source": {"component": settings.marker},
        "reportingComponent": settings.marker,
        "reportingInstance": settings.operator,
        "action": event.reason,
        **_place_and_time(regarding, now, unique),
        "count": 1,
    }


def _place_and_time(
    regarding: Mapping[str, Any], now: Now, unique: str
) -> dict[str, Any]:
    """The fields of an Event that follow from its object and from the time.

    An Event lives in the namespace of the object that it is about. Events of
    cluster-scoped objects live in `default` (Kubernetes: ValidateEvent). API servers
    before 1.21 accept the latter only without `eventTime`. With it they require
    `kube-system`.
    """
    namespace, moment = regarding.get("namespace"), _meta_time(now)
    return {
        "metadata": {
            "name": f"{_subdomain_of(str(regarding['name']))}.{unique}",
            "namespace": namespace or "default",
        },
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        **({"eventTime": wall_text(now.wall)} if namespace else {}),
    }


def _subdomain_of(name: str) -> str:
    """Return the object's name as a DNS subdomain, as an Event's name must be one.

    For example, the name of a role need not be one.

    >>> _subdomain_of("db.example"), _subdomain_of("system:node")
    ('db.example', 'system-node')
    """
    name = name[:_NAME_LENGTH_MAX]
    if SUBDOMAIN.fullmatch(name):
        return name
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "object"


def _regarded_object(
    context: Context, subject: Subject, target: Target | None
) -> Subject:
    """The object that an Event is about, by the names that the server knows."""
    if target is None:
        return subject
    resource = context.turn.survey.catalogue.lookup(target.resource)
    namespaced = resource is None or resource.namespaced
    return Subject(
        target.resource if resource is None else resource.key,
        (target.namespace or context.key.namespace or None) if namespaced else None,
        target.name,
        target.uid,
        target.resource.partition(".")[0] if resource is None else resource.kind,
        "" if resource is None else resource.api_version,
    )
