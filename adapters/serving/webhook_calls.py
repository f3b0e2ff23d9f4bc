"""Calls of admission webhooks over HTTPS, for the served cluster."""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct

from fnop.interpreters.cluster import Question, Reply, Reviewed, Unreached

if TYPE_CHECKING:
    from aiohttp import StreamReader

__all__ = ["WebhookCaller"]

MOST_BYTES = 3 * 1024 * 1024  # of an answer: client-go's limit


class Target(Struct, frozen=True):
    """The address of a webhook: as errors show it, and as it is called."""

    shown: str
    url: str
    # The name in its certificate, if that is not in the URL.
    name: str | None


class WebhookCaller:
    """Call webhooks at their URLs, and webhooks of services at ports of this machine.

    `ports` has, by namespace and name, the ports at which the webhooks of a service
    listen.
    """

    def __init__(self, ports: Mapping[tuple[str, str], int]) -> None:
        self._ports = ports

    async def __call__(self, question: Question) -> Reply:
        """Call the webhook; an error is a reply, too."""
        import aiohttp

        target = self._target(question)
        if target is None:
            return Unreached(self._unmapped_service(question))
        post = f'Post "{target.shown}": '
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=question.seconds),
                    headers={"User-Agent": "kube-apiserver-admission"},
                ) as session,
                session.post(
                    target.url,
                    data=orjson.dumps(
                        question.review, default=dict, option=orjson.OPT_SORT_KEYS
                    ),
                    headers={"Content-Type": "application/json"},
                    ssl=_trust(question),
                    server_hostname=target.name,
                    allow_redirects=False,
                ) as response,
            ):
                data = await _read_whole(response.content)
                if data is None:
                    return Unreached(f"{post}its answer has over {MOST_BYTES} bytes")
                return _reply(response.status, data)
        except TimeoutError:
            return Unreached(f"{post}context deadline exceeded")
        except aiohttp.ClientConnectorCertificateError as problem:
            return Unreached(f"{post}x509: {problem.certificate_error}")
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            return Unreached(f"{post}dial tcp: {problem}")

    def _target(self, question: Question) -> Target | None:
        query = f"?timeout={question.seconds}s"
        client = question.client
        if url := client.get("url"):
            return Target(url + query, url + query, None)
        service = client["service"]
        port = self._ports.get((service["namespace"], service["name"]))
        if port is None:
            return None
        path = (service.get("path") or "/") + query
        name = f"{service['name']}.{service['namespace']}.svc"
        shown = f"https://{name}:{service.get('port', 443)}{path}"
        return Target(shown, f"https://127.0.0.1:{port}{path}", name)

    def _unmapped_service(self, question: Question) -> str:
        service = question.client["service"]
        named = f"{service['namespace']}/{service['name']}"
        name = f"{service['name']}.{service['namespace']}.svc"
        url = f"https://{name}:{service.get('port', 443)}{service.get('path') or '/'}"
        return (
            f'Post "{url}?timeout={question.seconds}s": dial tcp: lookup {name}: no '
            f"such host (start fnop cluster with --service {named}=PORT)"
        )


def _trust(question: Question) -> ssl.SSLContext:
    """The authorities of a webhook: its own, or the machine's."""
    bundle = question.client.get("caBundle")
    if not bundle:
        return ssl.create_default_context()
    try:
        text = base64.b64decode(bundle, validate=True).decode()
        return ssl.create_default_context(cadata=text)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as problem:
        raise ValueError(f"unable to load root certificates: {problem}") from None


async def _read_whole(content: StreamReader) -> bytes | None:
    """A whole answer, which arrives in parts; None if it exceeds the limit."""
    data = bytearray()
    async for part in content.iter_any():
        data += part
        if len(data) > MOST_BYTES:
            return None
    return bytes(data)


def _reply(status: int, data: bytes) -> Reply:
    """The reply to a call, in the words of client-go if it is an HTTP error."""
    try:
        body: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = data.decode(errors="replace")
    if 200 <= status < 300:
        return Reviewed(body)
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("message"):
        return Unreached(str(body["message"]))
    if status == 404:
        return Unreached("the server could not find the requested resource")
    if status >= 500:
        return Unreached(
            'an error on the server ("unknown") has prevented the request from '
            "succeeding"
        )
    return Unreached(
        f"the server responded with the status code {status} but did not return more "
        "information"
    )
