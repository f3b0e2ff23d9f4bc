"""The proxy for an API server, as Go and so kubectl choose it.

A kubeconfig's `proxy-url` has priority over the environment, including NO_PROXY. In the
environment, HTTPS_PROXY counts for https and HTTP_PROXY for http. NO_PROXY excludes
servers, and servers on the own machine need no proxy (Go:
golang.org/x/net/http/httpproxy).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from contextlib import suppress

from fnop.adapters.kubernetes.addresses import Address
from fnop.core.handlers.declare.connection import with_plain_scheme

__all__ = ["SCHEMES", "ProxyRefuses", "ProxyUnreachable", "proxy_for"]

# The schemes of a proxy's address; Go takes any other one in the environment for http.
# With either socks scheme, the proxy itself resolves names.
SCHEMES = ("http", "https", "socks5", "socks5h")


class ProxyUnreachable(Exception):
    """The proxy does not answer, or not as a proxy; the text has the reason."""


class ProxyRefuses(Exception):
    """The proxy does not connect to the server; the text has the reason."""


def proxy_for(server: Address, environment: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for a server, or None.

    >>> from fnop.adapters.kubernetes.addresses import parsed
    >>> environment = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": "10.0.0.0/8,.corp.test"}
    >>> proxy_for(parsed("https://api.example.com"), environment)
    'http://proxy:3128'
    >>> proxy_for(parsed("https://10.1.2.3:6443"), environment)
    >>> proxy_for(parsed("https://127.0.0.1:6443"), environment)
    """
    proxy = _variable_value(environment, f"{server.scheme}_proxy")
    host = server.host
    if not proxy or _is_local(host):
        return None
    exceptions = _variable_value(environment, "no_proxy").split(",")
    if any(
        _covers(each.strip().lower(), host.lower(), server.port) for each in exceptions
    ):
        return None
    scheme, _, address = with_plain_scheme(proxy).rpartition("://")
    return f"{scheme if scheme in SCHEMES else 'http'}://{address}"


def _variable_value(environment: Mapping[str, str], name: str) -> str:
    """The value of a variable, first in capitals, then in small letters."""
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_local(host: str) -> bool:
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The host as an address; None if it is a name.

    Go treats an IPv4 address in IPv6 notation as IPv4.
    """
    with suppress(ValueError):
        found = ipaddress.ip_address(host)
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return found if mapped is None else mapped
    return None


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY matches a host.

    The entry is `*`, a network, or an address or a name, maybe with a port. A name also
    matches its subdomains; one that begins with a dot, or with `*.`, matches only
    these.

    >>> [_covers(each, "a.b.test", 443) for each in ("b.test", ".b.test", "*.test:1")]
    [True, True, False]
    """
    if not entry:
        return False
    if entry == "*":
        return True
    known = _address(host)
    with suppress(ValueError):
        if entry.rpartition("/")[2].isdecimal() and "/" in entry:
            network = ipaddress.ip_network(entry, strict=False)
            return known is not None and known in network
    name, wanted = _with_port(entry)
    if not name or wanted not in (None, port):
        return False
    address = _address(name)
    if address is not None or known is not None:
        return known == address
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name


def _with_port(entry: str) -> tuple[str, int | None]:
    """A host, without brackets, and its port if it has one.

    >>> _with_port("[::1]:80"), _with_port("::1"), _with_port("a.test:http")
    (('::1', 80), ('::1', None), ('a.test:http', None))
    """
    host, colon, port = entry.rpartition(":")
    is_port = not port or port.isdecimal()
    if colon and is_port and (":" not in host or host.startswith("[")):
        return host.strip("[]"), int(port) if port else None
    return entry, None
