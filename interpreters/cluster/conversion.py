"""Kinds that are served under several names but stored once."""

from __future__ import annotations

from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.store import Object

__all__ = ["served", "to_storage"]

# Field names of events.k8s.io/v1, and what the same is called in core/v1.
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


def served(api_version: str, obj: Object) -> Object:
    """A stored object in the version that was asked for."""
    if obj["apiVersion"] == api_version:
        return obj
    if api_version == "events.k8s.io/v1":
        obj = {CORE_FIELDS.get(name, name): value for name, value in obj.items()}
    # CRDs convert between versions by renaming them (strategy None).
    return {**obj, "apiVersion": api_version}


def to_storage(kind: Kind, obj: Object) -> Object:
    """An object as it is stored, whatever version it came in."""
    if kind.group == "events.k8s.io":
        obj = {EVENT_FIELDS.get(name, name): value for name, value in obj.items()}
        return {**obj, "apiVersion": "v1"}
    if kind.custom and kind.storage_version != kind.version:
        return {**obj, "apiVersion": f"{kind.group}/{kind.storage_version}"}
    return obj
