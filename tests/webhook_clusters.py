"""Clusters in tests of a running operator with webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, Unreachable
from tests.live import LiveCluster

GROUP = "/apis/admissionregistration.k8s.io/v1"
NAME = "default.fnop.dev"


class Cluster(LiveCluster):
    """An API that may refuse, or not be reached."""

    server = "https://api.example.com"

    def __init__(self) -> None:
        super().__init__()
        self.define()
        self.fails: Callable[[ApiRequest], int | None] = lambda request: None
        self.asked: list[ApiRequest] = []

    async def send(self, request: ApiRequest) -> ApiResponse:
        self.asked.append(request)
        status = self.fails(request)
        if status == 0:
            raise Unreachable("nobody is there", sent=False)
        if status is not None:
            return ApiResponse(status, {"kind": "Status", "message": "for a test"})
        return await super().send(request)

    def stored(self, sort: str = "validating") -> dict[str, Any] | None:
        path = f"{GROUP}/{sort}webhookconfigurations/{NAME}"
        found = self.request(ApiRequest("GET", path))
        body: dict[str, Any] = found.body
        return body if found.status == 200 else None

    @property
    def urls(self) -> list[str]:
        found = (self.stored() or {}).get("webhooks") or []
        return [each["clientConfig"]["url"] for each in found]
