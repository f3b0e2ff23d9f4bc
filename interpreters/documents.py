"""Documents of discovery from a simulated API server, which makes each of them once.

The server answers with the same object as long as it serves the same kinds.  Read-only,
and the same object again, it lets the core know it, and what it has read in it.
"""

from __future__ import annotations

from typing import Any

from fnop.core.api.discovery import trimmed
from fnop.effects import Applied, Outcome
from fnop.effects.values import read_only
from fnop.interpreters.answers import outcome_of
from fnop.interpreters.protocol import ApiResponse

__all__ = ["fetched"]

# The most documents that are kept: an operator asks for two, if nothing is amiss.
_KEPT_MAX = 16
_kept: dict[int, tuple[Any, Any]] = {}


def fetched(path: str, response: ApiResponse) -> Outcome:
    """The outcome that an answer to a request for a document means.

    >>> body = {"kind": "APIVersions"}
    >>> one, other = (fetched("/api", ApiResponse(200, body)) for _ in range(2))
    >>> one == Applied(body), one.object is other.object
    (True, True)
    """
    body = response.body
    if response.status != 200 or not isinstance(body, dict):
        return outcome_of(None, response)
    known = _kept.get(id(body))
    if known is None:
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        # Kept with the body, so that no other one can have its identity.
        known = _kept[id(body)] = body, read_only(trimmed(path, body))
    return Applied(known[1])
