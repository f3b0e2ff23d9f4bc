"""A connector of aiohttp through a SOCKS proxy, with fnop's own errors."""

from __future__ import annotations

from typing import Any

import aiohttp_socks
from yarl import URL

from fnop.adapters.kubernetes.proxies import ProxyRefuses, ProxyUnreachable
from fnop.core.values.errors import text_of

__all__ = ["SocksConnector", "socks_connector"]

_PORT = 1080  # RFC 1928


class SocksConnector(aiohttp_socks.ProxyConnector):
    """A connector that raises `ProxyUnreachable` and `ProxyRefuses`."""

    async def connect(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().connect(*args, **options)
        except aiohttp_socks.ProxyError as problem:
            raise ProxyRefuses(text_of(problem)) from problem
        except EOFError as problem:
            raise ProxyUnreachable("it hangs up") from problem
        except aiohttp_socks.ProxyTimeoutError as problem:
            raise ProxyUnreachable("it does not answer in time") from problem
        except aiohttp_socks.ProxyConnectionError as problem:
            cause = problem.__cause__
            why = getattr(cause, "strerror", None) or text_of(problem)
            raise ProxyUnreachable(why) from problem


def socks_connector(proxy: URL, context: Any) -> SocksConnector:
    """A connector without a limit; the proxy resolves the names, as with Go."""
    return SocksConnector(
        host=proxy.host or "",
        port=proxy.port or _PORT,
        username=proxy.user,
        password=proxy.password,
        rdns=True,
        limit=0,
        ssl=context,
    )
