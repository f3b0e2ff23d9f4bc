"""Sockets through a SOCKS proxy, with fnop's own errors."""

from __future__ import annotations

import socket

from python_socks import (
    ProxyConnectionError,
    ProxyError,
    ProxyTimeoutError,
    ProxyType,
)
from python_socks.async_.asyncio import Proxy

from fnop.adapters.kubernetes.addresses import Address
from fnop.adapters.kubernetes.proxies import ProxyRefuses, ProxyUnreachable
from fnop.core.values.errors import text_of

__all__ = ["socket_through"]


async def socket_through(proxy: Address, host: str, port: int) -> socket.socket:
    """A socket that the proxy has connected; it resolves the name, as with Go.

    Raises `ProxyUnreachable` and `ProxyRefuses`.
    """
    way = Proxy(
        ProxyType.SOCKS5,
        proxy.host,
        proxy.port,
        username=proxy.user,
        password=proxy.password,
        rdns=True,
    )
    try:
        return await way.connect(host, port)
    except ProxyError as problem:
        raise ProxyRefuses(text_of(problem)) from problem
    except EOFError as problem:
        raise ProxyUnreachable("it hangs up") from problem
    except ProxyTimeoutError as problem:
        raise ProxyUnreachable("it does not answer in time") from problem
    except ProxyConnectionError as problem:
        cause = problem.__cause__
        why = getattr(cause, "strerror", None) or text_of(problem)
        raise ProxyUnreachable(why) from problem
