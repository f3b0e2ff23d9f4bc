"""The authorities of an operator's webhooks in a Secret, which its replicas share.

Replicas may start at the same time. A write has a resourceVersion, so the API server
accepts only the first one, and the other replicas read that.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fnop.adapters.serving.certificates import Authority as Signer, Pair
from fnop.adapters.webhooks.certificates import Stored
from fnop.core.api.resources import Resource, path_of
from fnop.core.values.errors import text_of
from fnop.effects.regexes import regex
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import (
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    Asked,
    Unreachable,
)

__all__ = ["SharedSecret"]

SECRETS = Resource("", "v1", "secrets", "Secret", "secret")
OPAQUE, TLS = "Opaque", "kubernetes.io/tls"
# The keys of certificates and of private keys, both in the same order.
_KEYS = {TLS: ("tls.crt", "tls.key")}
_DEFAULT_KEYS = "ca.crt", "ca.key"
_PEM = regex(rb"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.S)


class SharedSecret:
    """A Secret with authorities (`fnop.adapters.webhooks.certificates.Store`).

    It is created if it does not exist. A Secret of the type `kubernetes.io/tls` keeps
    its type, and has an authority and its key. The operator needs the rights to get,
    create and patch Secrets.
    """

    def __init__(self, api: Asked, namespace: str, name: str) -> None:
        self._api = api
        self._namespace, self._name = namespace, name
        self._label = f"the Secret {namespace}/{name}"

    async def read(self) -> Stored:
        path = path_of(SECRETS, self._namespace, self._name)
        response = await self._send_request(ApiRequest("GET", path))
        if response.status == 404:
            return Stored()
        self._expect(response, "read", 200)
        found = response.body
        return Stored(
            tuple(self._pairs(found)),
            str(found["metadata"]["resourceVersion"]),
            str(found.get("type") or OPAQUE),
        )

    async def write(self, pairs: Sequence[Pair], before: Stored) -> bool:
        data = _data(pairs, before.type)
        if not before.version:
            metadata: dict[str, Any] = {
                "name": self._name,
                "namespace": self._namespace,
            }
            body = {"apiVersion": "v1", "kind": "Secret", "type": before.type}
            path = path_of(SECRETS, self._namespace)
            request = ApiRequest(
                "POST", path, (), {**body, "metadata": metadata, "data": data}
            )
        else:
            change = {"metadata": {"resourceVersion": before.version}, "data": data}
            path = path_of(SECRETS, self._namespace, self._name)
            request = ApiRequest("PATCH", path, (), change, MERGE_PATCH)
        response = await self._send_request(request)
        # another client, such as a replica, was faster
        if response.status in (404, 409):
            return False
        self._expect(response, "written", 200, 201)
        return True

    async def _send_request(self, request: ApiRequest) -> ApiResponse:
        try:
            return await self._api.send(request)
        except Unreachable as problem:
            raise ConnectionError(
                f"{self._label} is not to be reached: {text_of(problem)}"
            ) from None

    def _expect(self, response: ApiResponse, done: str, *statuses: int) -> None:
        """Raise `OSError` with a sentence, unless the status is one of these."""
        if response.status in statuses:
            return
        text = f"{self._label} cannot be {done}: {message_of(response)}"
        if response.status in (401, 403):
            rights = "get, create and patch Secrets in its own namespace"
            raise PermissionError(f"{text}; grant the operator to {rights}")
        if response.status in (408, 429) or response.status >= 500:
            raise ConnectionError(text)
        raise OSError(text)

    def _pairs(self, secret: Any) -> Iterator[Pair]:
        """The authorities in it. Raises `ValueError` for an invalid one."""
        first, second = _KEYS.get(secret.get("type"), _DEFAULT_KEYS)
        data = secret.get("data") or {}
        certificates = self._blocks(data, first, b"CERTIFICATE")
        keys = self._blocks(data, second, b"PRIVATE KEY")
        if len(certificates) != len(keys):
            raise ValueError(
                f"{self._label} has {len(certificates)} certificates in {first}, and "
                f"{len(keys)} keys in {second}; {_REMEDY}"
            )
        for pair in map(Pair, certificates, keys):
            try:
                Signer(0.0, given=pair)
            except ValueError as problem:
                text = f"{self._label} has no authority: {problem}; {_REMEDY}"
                raise ValueError(text) from None
            yield pair

    def _blocks(self, data: Any, key: str, kind: bytes) -> list[bytes]:
        try:
            text = base64.b64decode(data.get(key) or "", validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"{self._label}: {key} is not base64; {_REMEDY}") from None
        return [
            each[0] + b"\n" for each in _PEM.finditer(text) if each[1].endswith(kind)
        ]


_REMEDY = (
    "delete it, and fnop makes another one; a server's certificate is given as files "
    "(certfile=, pkeyfile=)"
)


def _data(pairs: Sequence[Pair], type: str) -> dict[str, str]:
    """The data of a Secret with these authorities."""
    contents = (
        b"".join(each.certificate for each in pairs),
        b"".join(each.key for each in pairs),
    )
    keys = _KEYS.get(type, _DEFAULT_KEYS)
    return {
        key: base64.b64encode(content).decode()
        for key, content in zip(keys, contents, strict=True)
    }
