"""A Kubernetes API server as a pure function over persistent state.

    cluster = empty_cluster()
    cluster, response, events = answer(cluster, request, now)

Nothing here reads a clock, a random source or a file; a `Cluster` is a value.
"""

from __future__ import annotations

from fnop.interpreters.cluster.collector import tick
from fnop.interpreters.cluster.server import answer, empty_cluster
from fnop.interpreters.cluster.store import Cluster, StoredEvent
from fnop.interpreters.cluster.watch import backlog, seen_by, selects

__all__ = [
    "Cluster",
    "StoredEvent",
    "answer",
    "backlog",
    "empty_cluster",
    "seen_by",
    "selects",
    "tick",
]
