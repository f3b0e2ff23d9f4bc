"""Documents of discovery from a simulated API server, which makes each of them once.

The server answers with the same object as long as it serves the same kinds. As the
object is read-only and identical, the core recognizes it, and reuses its earlier
reading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnop.core.api import discovery
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.discovery import Document, trimmed
from fnop.effects import Applied, Outcome
from fnop.effects.structs import replace
from fnop.effects.values import read_only
from fnop.interpreters.runtime.answers import outcome_of
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse

__all__ = ["discovered", "fetched"]

# The most documents that are kept: normally an operator requests two.
_KEPT_MAX = 16
_kept: dict[int, tuple[Any, Any]] = {}


def fetched(path: str, response: ApiResponse) -> Outcome:
    """The outcome of a request for a document.

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
        # Stored with the body, so that another body cannot get its identity.
        known = _kept[id(body)] = body, read_only(trimmed(path, body))
    return Applied(known[1])


def discovered(ask: Callable[[ApiRequest], ApiResponse]) -> Catalogue:
    """The kinds that a server serves, if each request is answered at once."""
    pages = dict(enumerate(map(Document, discovery.ROOTS)))
    found = discovery.begun(pages)
    while found.pending:
        number, page = next(iter(found.pending.items()))
        response = ask(ApiRequest("GET", page.path, accept=page.accept))
        found, more = discovery.answered(found, number, fetched(page.path, response))
        free = 1 + max((*pages, number))
        fresh = dict(enumerate(more, free))
        pages |= fresh
        found = replace(found, pending=found.pending.update(fresh))
    return found.catalogue
