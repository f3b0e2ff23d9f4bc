"""Discovery in both of its forms, with a group that is unreadable, or missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnop.core.api.discovery import ROOTS
from fnop.effects.structs import replace
from fnop.interpreters.runtime.protocol import JSON, ApiRequest, ApiResponse

__all__ = ["FORMS", "Server"]

FORMS = ("aggregated", "listed")

Answering = Callable[[ApiRequest], ApiResponse]


class Server:
    """Answers as another one does, in one of the forms of discovery.

    The group `unread` belongs to an aggregated API that is down; the server does not
    know the group `unserved`. `asked` are the requested paths of discovery, in order.
    """

    def __init__(self, answering: Answering, form: str) -> None:
        self._answering = answering
        self._form = form
        self.unread: str | None = None
        self.unserved: str | None = None
        self.asked: list[str] = []

    def __call__(self, request: ApiRequest) -> ApiResponse:
        parts = request.path.split("/")[1:]
        if request.path in ROOTS:
            self.asked.append(request.path)
            return self._root(request)
        if parts[0] in ("api", "apis") and len(parts) == (2, 3)[parts[0] == "apis"]:
            self.asked.append(request.path)
            group = "" if parts[0] == "api" else parts[1]
            if group == self.unread:
                return ApiResponse(503, {"message": "service unavailable"})
            if group == self.unserved:
                return ApiResponse(404, "404 page not found")
        return self._answering(request)

    def _root(self, request: ApiRequest) -> ApiResponse:
        if self._form == "listed":
            return self._answering(replace(request, accept=JSON))
        response = self._answering(request)
        items = [
            self._stale(item) if _group(item) == self.unread else item
            for item in response.body["items"]
            if _group(item) != self.unserved
        ]
        return replace(response, body={**response.body, "items": items})

    def _stale(self, item: dict[str, Any]) -> dict[str, Any]:
        """The group is named; its former content may be returned, or not."""
        names = [each["version"] for each in item["versions"]]
        stale = [{"version": name, "freshness": "Stale"} for name in names]
        return {**item, "versions": stale}


def _group(item: dict[str, Any]) -> str:
    return str(item["metadata"].get("name", ""))
