"""Metadata that a recording's objects have from the API server and from fnop."""

from __future__ import annotations

__all__ = ["DELETION", "OWN", "SERVER"]

# Metadata of an object that is being deleted.
DELETION = frozenset(("deletionTimestamp", "deletionGracePeriodSeconds"))
# Metadata that only the API server sets, regardless of the request.
SERVER = DELETION | {
    *("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"),
    "managedFields",
}
# The beginning of fnop's own labels, annotations and fields of the status.
OWN = "fnop.dev/"
