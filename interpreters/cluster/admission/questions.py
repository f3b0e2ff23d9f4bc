"""The questions to admission webhooks, and their replies.

The caller of `answer` calls the webhooks: the cluster returns the question, and goes on
from the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

__all__ = [
    "Ask",
    "Configuration",
    "Question",
    "Reply",
    "Reviewed",
    "Unreached",
    "allowed",
    "unreached",
]


class Configuration(NamedTuple):
    """The object that registers a webhook."""

    kind: str
    name: str


class Question(Struct, frozen=True):
    """An AdmissionReview to be sent to a webhook."""

    configuration: Configuration
    webhook: str
    # The `clientConfig`: `url` or `service`, and `caBundle`.
    client: Mapping[str, Any]
    # The whole body, with apiVersion, kind and request.
    review: Mapping[str, Any]
    seconds: int


class Reviewed(Struct, frozen=True):
    """The body of a webhook's 200 answer: parsed JSON, or its text."""

    body: Any


class Unreached(Struct, frozen=True):
    """No answer in time, or an HTTP error: the error of the transport."""

    message: str


Reply = Reviewed | Unreached
Ask = Callable[[Question], Reply]


def allowed(question: Question) -> Reply:
    """The reply of a webhook that lets everything through."""
    response = {"uid": question.review["request"]["uid"], "allowed": True}
    named = {name: question.review[name] for name in ("apiVersion", "kind")}
    return Reviewed({**named, "response": response})


def unreached(question: Question) -> Reply:
    """The reply if webhooks cannot be called: as if nothing listened at the address."""
    client = question.client
    service = client.get("service") or {}
    host = f"{service.get('name')}.{service.get('namespace')}.svc"
    place = f"https://{host}:{service.get('port', 443)}{service.get('path') or '/'}"
    url = client.get("url") or place
    return Unreached(
        f'Post "{url}?timeout={question.seconds}s": dial tcp: connect: connection '
        "refused (the simulated cluster calls no webhooks here)"
    )
