"""The address of an operator's webhooks, which may differ from its server's own."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

__all__ = ["SERVICE_PORT", "Address", "hosts_of", "is_local"]

# The port of the operator's pod that its Service targets.
SERVICE_PORT = 9443


class Address(Struct, frozen=True):
    """The address of served webhooks, and the way of the API server to them.

    `listen` is `HOST:PORT`; either part may be missing. `client` has a `url` or a
    `service`; without either it is the server's own address. The certificate and the
    key are files, and so are the authorities in `bundle`; None has fnop make them.
    """

    listen: str | None = None
    client: Mapping[str, Any] = {}
    certificate: str | None = None
    key: str | None = None
    bundle: str | None = None

    @property
    def host(self) -> str | None:
        """The host to listen at; None for all interfaces.

        >>> [Address(each).host for each in (None, ":1", "127.0.0.1:1", "[::1]:1")]
        [None, None, '127.0.0.1', '::1']
        """
        host = (self.listen or "").rpartition(":")[0]
        return host.removeprefix("[").removesuffix("]") or None

    @property
    def port(self) -> int | None:
        """The port to listen at; None for a free one.

        >>> [Address(each).port for each in (None, "a:", ":7443")]
        [None, None, 7443]
        >>> Address(client={"url": "https://a"}).port
        9443
        """
        port = (self.listen or "").rpartition(":")[2]
        if port:
            return int(port)
        return SERVICE_PORT if self.client else None


def hosts_of(client: Mapping[str, Any]) -> tuple[str, ...]:
    """The names under which the API server calls webhooks, for their certificate.

    >>> hosts_of({"service": {"namespace": "prod", "name": "claims"}})
    ('claims.prod.svc', 'claims.prod.svc.cluster.local')
    >>> hosts_of({"url": "https://[::1]:9443"})
    ('::1',)
    """
    if (url := client.get("url")) is not None:
        return (urlsplit(url).hostname or "",)
    if (service := client.get("service")) is None:
        return ()
    name = f"{service['name']}.{service['namespace']}.svc"
    return name, f"{name}.cluster.local"


def is_local(url: str) -> bool:
    """Whether an address belongs to the machine itself.

    >>> [*map(is_local, ("https://localhost:1", "https://127.0.0.1", "https://[::1]"))]
    [True, True, True]
    >>> is_local("https://10.0.0.1"), is_local("https://a.example.com")
    (False, False)
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
