"""A Kubernetes API server as a pure function over persistent state.

    cluster = empty_cluster()
    cluster, response, events = answer(cluster, request, now)

Nothing here reads a clock, a random source or a file; a `Cluster` is a value.

It answers as a real API server does, case by case in tests/conformance.
docs/explanation/differences.md lists the differences, and
docs/contributing/simulated-cluster.md is the map.
"""

from __future__ import annotations

from fnop.interpreters.cluster.access.impersonation import impersonated
from fnop.interpreters.cluster.access.tokens import user_of_token
from fnop.interpreters.cluster.admission.questions import (
    Ask,
    Configuration,
    Question,
    Reply,
    Reviewed,
    Unreached,
    unreached,
)
from fnop.interpreters.cluster.admission.replies import Replies, Unanswered
from fnop.interpreters.cluster.api.discovery import content_type
from fnop.interpreters.cluster.api.logs import (
    LogFollowed,
    is_log_follow,
    log_followed,
    log_more,
    logged,
)
from fnop.interpreters.cluster.api.server import (
    answer,
    empty_cluster,
    release_of,
    upgraded,
)
from fnop.interpreters.cluster.api.watch import (
    backlog,
    bookmark,
    is_served,
    is_watch,
    presented,
    seen_by,
    selects,
)
from fnop.interpreters.cluster.controllers.paces import Off, On, Pace, Slow, Stuck
from fnop.interpreters.cluster.controllers.rounds import due, paced, tick
from fnop.interpreters.cluster.output.negotiation import wants_yaml
from fnop.interpreters.cluster.storage.restore import (
    blank_cluster,
    describing,
    restored,
    serving_earlier,
)
from fnop.interpreters.cluster.storage.store import Cluster, StoredEvent

__all__ = [
    "Ask",
    "Cluster",
    "Configuration",
    "LogFollowed",
    "Off",
    "On",
    "Pace",
    "Question",
    "Replies",
    "Reply",
    "Reviewed",
    "Slow",
    "StoredEvent",
    "Stuck",
    "Unanswered",
    "Unreached",
    "answer",
    "backlog",
    "blank_cluster",
    "bookmark",
    "content_type",
    "describing",
    "due",
    "empty_cluster",
    "impersonated",
    "is_log_follow",
    "is_served",
    "is_watch",
    "log_followed",
    "log_more",
    "logged",
    "paced",
    "presented",
    "release_of",
    "restored",
    "seen_by",
    "selects",
    "serving_earlier",
    "tick",
    "unreached",
    "upgraded",
    "user_of_token",
    "wants_yaml",
]
