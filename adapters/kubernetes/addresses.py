"""The addresses of API servers and proxies, taken apart."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

__all__ = ["Address", "parsed"]

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}  # RFC 1928
# Characters that no host name has: they would end the line of a request, or a header.
_NOT_IN_HOSTS = re.compile(r"[\x00-\x20\x7f\\]")


class Address(NamedTuple):
    """The parts of an address; `host` is without brackets, `user` is not escaped."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = None
    path: str = ""

    @property
    def authority(self) -> str:
        """The host, with the port unless it is the scheme's own.

        >>> parsed("https://[::1]:6443").authority, parsed("https://a:443").authority
        ('[::1]:6443', 'a')
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if _PORTS.get(self.scheme) == self.port else f"{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """The host and the port, as in CONNECT (RFC 9112: authority-form).

        >>> parsed("https://a").endpoint
        'a:443'
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parsed(text: str) -> Address:
    """Take an address apart.  Raises `ValueError`, whose text quotes nothing of it.

    >>> parsed("https://m%65:p%3Aw@h/k8s/?a#b")
    Address(scheme='https', host='h', port=443, user='me', password='p:w', path='/k8s')
    """
    try:
        found = urlsplit(text)
    except ValueError:
        raise ValueError("its host is malformed") from None
    try:
        port = found.port
    except ValueError:
        raise ValueError("its port is not a number up to 65535") from None
    if not found.hostname or _NOT_IN_HOSTS.search(found.hostname):
        raise ValueError("it has no host" if not found.hostname else "no host is so")
    return Address(
        found.scheme,
        found.hostname,
        _PORTS.get(found.scheme, 0) if port is None else port,
        None if found.username is None else unquote(found.username),
        None if found.password is None else unquote(found.password),
        found.path.rstrip("/"),
    )
