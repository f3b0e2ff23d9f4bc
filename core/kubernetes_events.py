"""Kubernetes Events as manifests: what an operator reports about an object."""

from __future__ import annotations

from typing import Any

from fnop.core.commands import Subject
from fnop.core.errands import Address
from fnop.core.known import Known
from fnop.core.now import Now, wall_text
from fnop.core.objects import Key
from fnop.core.settings import Settings
from fnop.core.turn import ACTIVITY, Ticket, Turn
from fnop.effects import Create, Event, Target

__all__ = ["event_manifest", "report_event"]


def report_event(turn: Turn, key: Key, known: Known, event: Event) -> None:
    """Report a Kubernetes Event; nobody waits for it, and it can fail nothing."""
    resource = turn.catalogue.lookup("events.v1.")
    if resource is None or key == ACTIVITY:
        turn.warn_once("events", "Kubernetes Events cannot be reported here", key)
        return
    subject = turn.subject(key, known.body)
    name = f"{turn.seed}-{turn.next_serial()}"
    about = _regarding(turn, key, subject, event.target)
    manifest = event_manifest(event, about, turn.settings, turn.now, name)
    namespace = manifest["metadata"]["namespace"]
    address = Address(resource, namespace, manifest["metadata"]["name"])
    turn.perform(Create(manifest), address, Ticket("event", key), subject)


def event_manifest(
    event: Event, subject: Subject, settings: Settings, now: Now, unique: str
) -> dict[str, Any]:
    """The core/v1 Event about `subject`.

    An Event lives in the namespace of the object it is about, and those of
    cluster-scoped objects in `default` (Kubernetes: ValidateEvent).
    """
    regarding = _reference(subject)
    namespace = regarding.get("namespace") or "default"
    moment = wall_text(now.wall)[:19] + "Z"
    name = str(regarding["name"])[:200]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{unique}", "namespace": namespace},
        "involvedObject": regarding,
        "reason": event.reason,
        "message": event.message,
        "type": event.type,
        "source": {"component": settings.marker},
        "reportingComponent": settings.marker,
        "reportingInstance": settings.operator,
        "action": event.reason,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "eventTime": wall_text(now.wall),
        "count": 1,
    }


def _regarding(
    turn: Turn, key: Key, subject: Subject, target: Target | None
) -> Subject:
    """The object that an Event is about, by the names that the server knows."""
    if target is None:
        return subject
    resource = turn.catalogue.lookup(target.resource)
    namespaced = resource is None or resource.namespaced
    return Subject(
        target.resource if resource is None else resource.key,
        (target.namespace or key.namespace or None) if namespaced else None,
        target.name,
        target.uid,
        target.resource.partition(".")[0] if resource is None else resource.kind,
        "" if resource is None else resource.api_version,
    )


def _reference(subject: Subject) -> dict[str, Any]:
    found = {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "name": subject.name,
        "namespace": subject.namespace,
        "uid": subject.uid,
    }
    return {key: value for key, value in found.items() if value}
