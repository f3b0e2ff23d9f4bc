"""A Kubernetes API server as a pure function over persistent state.

    cluster = empty_cluster()
    cluster, response, events = answer(cluster, request, now)

Nothing here reads a clock, a random source or a file; a `Cluster` is a value.

What it does is what a real API server does, case by case in
tests/cluster/conformance_cases.py, except that

- field managers are not tracked, and server-side apply is refused (415);
- admission webhooks, CEL rules, ratcheting and quotas are not there yet;
- built-in objects are checked by their metadata and the outline of their body;
  unknown fields stay, and only common defaults are filled in;
- a definition is served the moment it is made, and no controller takes time:
  what is deleted in the background goes at the next `tick`;
- a terminating namespace gets no conditions, claims no protection finalizer, and
  services no address;
- there are no containers: exec, attach, port-forward and proxies are refused, and
  logs are what an annotation says;
- tokens of service accounts are derived, not signed.
"""

from __future__ import annotations

from fnop.interpreters.cluster.controllers.paces import Off, On, Pace, Slow, Stuck
from fnop.interpreters.cluster.controllers.rounds import due, paced, tick
from fnop.interpreters.cluster.discovery import content_type
from fnop.interpreters.cluster.impersonation import impersonated
from fnop.interpreters.cluster.negotiation import wants_yaml
from fnop.interpreters.cluster.server import answer, empty_cluster
from fnop.interpreters.cluster.store import Cluster, StoredEvent
from fnop.interpreters.cluster.tokens import user_of_token
from fnop.interpreters.cluster.watch import (
    backlog,
    bookmark,
    is_served,
    is_watch,
    presented,
    seen_by,
    selects,
)

__all__ = [
    "Cluster",
    "Off",
    "On",
    "Pace",
    "Slow",
    "StoredEvent",
    "Stuck",
    "answer",
    "backlog",
    "bookmark",
    "content_type",
    "due",
    "empty_cluster",
    "impersonated",
    "is_served",
    "is_watch",
    "paced",
    "presented",
    "seen_by",
    "selects",
    "tick",
    "user_of_token",
    "wants_yaml",
]
