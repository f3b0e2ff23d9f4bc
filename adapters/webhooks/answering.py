"""From AdmissionReviews to their answers: the input of a webhook server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from fnop.adapters.webhooks.connections import Refusal
from fnop.adapters.webhooks.protocol import WebhookFn
from fnop.core.admission.configurations import UnknownWebhook
from fnop.core.admission.deadlines import answered_within, timeout_of
from fnop.core.admission.decisions import Decision, response_of
from fnop.core.api.reviews import MalformedReview

__all__ = ["ASKED", "Asked", "Reviewing", "answering"]


class Asked:
    """The time at which a review came, and the API server's timeout in seconds."""

    def __init__(self, timeout: str | None = None) -> None:
        self.timeout = timeout_of(timeout)
        self._began = asyncio.get_running_loop().time()

    @property
    def ends(self) -> float:
        """The time of the event loop at which the API server stops waiting."""
        return self._began + self.timeout

    @property
    def left(self) -> float:
        """The seconds that are left for the answer; below zero if it is late."""
        passed = asyncio.get_running_loop().time() - self._began
        return answered_within(self.timeout) - passed


# Set by `WebhookServer` around the function: Kopf's protocol has no parameter for it.
ASKED: ContextVar[Asked | None] = ContextVar("fnop_webhook_asked", default=None)


class Reviewing(Protocol):
    """Decide about reviews, as `fnop.interpreters.runtime.run.Runner.review`."""

    def __call__(
        self,
        body: Any,
        *,
        webhook: str | None,
        headers: Mapping[str, str] | None,
        sslpeer: Mapping[str, Any] | None,
        seconds: float,
    ) -> Awaitable[Decision]: ...


def answering(review: Reviewing) -> WebhookFn:
    """The function for a server of webhooks (`fnop.adapters.webhooks.protocol`).

    It answers a review before the API server gives up. If a handler has no answer by
    then, its failure policy decides. It raises `Refusal` if the body is not a review;
    then the API server applies its failure policy.

    During a rollout the API server may name a webhook that only another version of the
    operator has. Then fnop calls all handlers of this version.
    """

    async def answer(
        request: Any,
        *,
        webhook: str | None = None,
        headers: Mapping[str, str] | None = None,
        sslpeer: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        asked = ASKED.get() or Asked()
        # An author's server may pass header names of aiohttp's own type.
        plain = {str(name): str(value) for name, value in (headers or {}).items()}

        async def decided(name: str | None) -> Decision:
            return await review(
                request,
                webhook=name,
                headers=plain,
                sslpeer=sslpeer,
                seconds=asked.left,
            )

        try:
            try:
                return response_of(await decided(webhook or None))
            except UnknownWebhook:
                return response_of(await decided(None))
        except MalformedReview as problem:
            raise Refusal(400, str(problem)) from None

    return answer
