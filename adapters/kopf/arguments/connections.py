"""The credentials of Kopf's logins, which operators also use for their own clients."""

from __future__ import annotations

import os
import ssl
import warnings
from typing import Any

from msgspec.structs import asdict, force_setattr

from fnop.adapters.kubernetes.client import authorization_of
from fnop.adapters.kubernetes.tls import tls_context
from fnop.core.handlers.declare import connection
from fnop.core.handlers.declare.connection import LoginError
from fnop.effects.structs import as_dataclass

__all__ = ["ConnectionInfo", "LoginError"]


@as_dataclass
class ConnectionInfo(connection.ConnectionInfo, frozen=True, kw_only=True):
    """The address of an API server, with credentials of one kind, as Kopf has them.

    Paths may also be bytes or `os.PathLike`. `trust_env` changes nothing: fnop always
    uses the proxy that the environment names.

    >>> ConnectionInfo(server="https://a", token="t", trust_env=True).as_http_headers()
    {'Authorization': 'Bearer t'}
    """

    trust_env: bool = False

    def __post_init__(self) -> None:
        for name in ("ca_path", "certificate_path", "private_key_path"):
            path = getattr(self, name)
            if path is not None and not isinstance(path, str):
                force_setattr(self, name, os.fsdecode(path))
        super().__post_init__()

    @classmethod
    def of(cls, found: connection.ConnectionInfo | None) -> ConnectionInfo | None:
        """The same credentials with the methods of this class; None without any."""
        if found is None or isinstance(found, cls):
            return found
        return cls(**asdict(found))

    def as_http_headers(self) -> dict[str, str]:
        """The headers that authenticate a request; none for a client certificate."""
        value = authorization_of(self)
        return {"Authorization": value} if value else {}

    def as_ssl_context(self) -> ssl.SSLContext:
        """The TLS settings. Raises `CertificateProblem` for an unusable certificate."""
        return tls_context(self)

    def as_aiohttp_basic_auth(self) -> Any:
        """None: the headers have the username and the password."""
        warnings.warn(
            "as_aiohttp_basic_auth() is deprecated: use as_http_headers()",
            DeprecationWarning,
            stacklevel=2,
        )
        return None
