"""The addresses of webhooks as options tell them: client configurations."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from fnop.effects.names import check_namespace

__all__ = ["a_service", "a_url", "bundle_of", "hosts_of"]

_SERVICE = re.compile(r"(?:([^/:]+)/)?([^/:]+)(?::(\d+))?")


def a_service(
    ctx: click.Context | None, param: click.Parameter | None, value: str | None
) -> dict[str, Any] | None:
    """The `service` of a client configuration; without a namespace none is in it.

    >>> a_service(None, None, "prod/claims:8443")
    {'name': 'claims', 'namespace': 'prod', 'port': 8443}
    >>> a_service(None, None, "claims")
    {'name': 'claims'}
    """
    if value is None:
        return None
    found = _SERVICE.fullmatch(value)
    if found is None:
        raise click.BadParameter(
            f"{value!r} is no service; write NAMESPACE/NAME, or NAMESPACE/NAME:PORT",
            ctx,
            param,
        )
    namespace, name, port = found.groups()
    service: dict[str, Any] = {"name": name}
    try:
        check_namespace(name, "the service")  # a DNS label, too
        if namespace is not None:
            check_namespace(namespace, "the namespace")
            service["namespace"] = namespace
    except ValueError as problem:
        raise click.BadParameter(str(problem), ctx, param) from problem
    if port is not None:
        service["port"] = int(port)
        if not 0 < service["port"] < 2**16:
            raise click.BadParameter(f"{port} is no port", ctx, param)
    return service


def a_url(
    ctx: click.Context | None, param: click.Parameter | None, value: str | None
) -> str | None:
    """The `url` of a client configuration.

    The API server takes https alone, without a user, a query or a fragment.

    >>> a_url(None, None, "https://hooks.example.com/fnop")
    'https://hooks.example.com/fnop'
    """
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        is_right = parts.scheme == "https" and bool(parts.hostname)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        is_right = has_port = False
    extra = "" if not is_right else parts.query or parts.fragment or parts.username
    if not is_right or not has_port or extra:
        raise click.BadParameter(
            f"{value!r} is no address of a webhook; write https://HOST[:PORT][/PATH], "
            "as the API server takes no other",
            ctx,
            param,
        )
    return value


def bundle_of(path: str) -> str:
    """The `caBundle` of a file of certificates.

    Raises `ValueError` with a sentence for a file that has none.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem.strerror}") from None
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ValueError(f"{path} has no certificate (-----BEGIN CERTIFICATE-----)")
    return base64.b64encode(content).decode()


def hosts_of(client: Mapping[str, Any]) -> tuple[str, ...]:
    """The names under which the API server calls a webhook, in its certificate.

    >>> hosts_of({"service": {"namespace": "prod", "name": "claims"}})
    ('claims.prod.svc', 'claims.prod.svc.cluster.local')
    """
    if (url := client.get("url")) is not None:
        return (urlsplit(url).hostname or "",)
    service = client["service"]
    name = f"{service['name']}.{service['namespace']}.svc"
    return name, f"{name}.cluster.local"
