"""Conversion of kinds that are served in several versions and stored in one."""

from __future__ import annotations

from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["as_read", "renamed", "served", "to_storage"]

# Field names of events.k8s.io/v1, and their names in core/v1.
EVENT_FIELDS = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedSource": "source",
}
CORE_FIELDS = {core: new for new, core in EVENT_FIELDS.items()}


def served(kind: Kind, obj: Object) -> Object:
    """A stored object in the version of a kind.

    Versions of a custom kind differ by their names (strategy None), and by the fields
    that the other version does not have. Its defaults are not filled in: they apply
    only to objects that clients send.
    """
    if obj["apiVersion"] == kind.api_version:
        return obj
    if kind.schema is not None:
        obj = kind.schema.pruned(obj)
    return renamed(kind, obj)


def renamed(kind: Kind, obj: Object) -> Object:
    """The object under the apiVersion of a kind, with all its fields."""
    api_version = kind.api_version
    if obj["apiVersion"] == api_version:
        return obj
    if api_version == "events.k8s.io/v1":
        obj = {CORE_FIELDS.get(name, name): value for name, value in obj.items()}
    return {**obj, "apiVersion": api_version}


def to_storage(kind: Kind, obj: Object) -> Object:
    """An object in the version in which its kind is stored."""
    if kind.group == "events.k8s.io":
        obj = {EVENT_FIELDS.get(name, name): value for name, value in obj.items()}
        return {**obj, "apiVersion": "v1"}
    if kind.custom and kind.storage_version != kind.version:
        obj = {**obj, "apiVersion": f"{kind.group}/{kind.storage_version}"}
        return obj if kind.stored is None else kind.stored.pruned(obj)
    return obj


def as_read(kind: Kind, obj: Object) -> Object:
    """A stored object as reads show it, with the defaults of its own version.

    That matters for objects that came in another version. It also matters for a new
    object's status, which was removed from the request.
    """
    if kind.stored is None:
        return obj
    found: Object = kind.stored.filled(obj, obj if kind.storage else None)
    return found
