"""The options for the address of served webhooks, and for the way to them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from fnop.adapters.cli.options import flag_of, shared
from fnop.adapters.kubernetes import service_account
from fnop.adapters.webhooks.addresses import Address
from fnop.core.handlers.declare.settings import Settings
from fnop.effects.names import check_namespace

__all__ = [
    "OF_WEBHOOKS",
    "a_service",
    "a_url",
    "bundle_of",
    "of_webhooks",
    "with_webhooks",
]

_SERVICE = re.compile(r"(?:([^/:]+)/)?([^/:]+)(?::(\d+))?")


def a_service(
    ctx: click.Context | None, param: click.Parameter | None, value: str | None
) -> dict[str, Any] | None:
    """The `service` of a client configuration; the namespace is optional.

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

    The API server accepts only https, without a user, a query or a fragment.

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

    Raises `ValueError` with a sentence for a file without certificates.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem.strerror}") from None
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ValueError(f"{path} has no certificate (-----BEGIN CERTIFICATE-----)")
    return base64.b64encode(content).decode()


def an_address(
    ctx: click.Context | None, param: click.Parameter | None, value: str | None
) -> str | None:
    """An address to listen on: `HOST:PORT`; either part may be missing.

    >>> an_address(None, None, "127.0.0.1:9443"), an_address(None, None, "[::1]:")
    ('127.0.0.1:9443', '[::1]:')
    """
    if value is None or _LISTEN.fullmatch(value):
        return value
    raise click.BadParameter(
        f"{value!r} is no address to listen at; write HOST:PORT, such as 0.0.0.0:9443",
        ctx,
        param,
    )


_LISTEN = re.compile(r"(?:[^:\[\]/\s]*|\[[0-9A-Fa-f:.]+\]):(?:\d{1,5})?")


def of_webhooks(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of an operator that serves its admission handlers."""
    for each in reversed(_OPTIONS):
        command = each(command)
    return command


_FILE = click.Path(exists=True, dir_okay=False)
_OPTIONS = (
    click.option(
        "--webhooks",
        is_flag=True,
        help="Serve admission handlers, and register them with the API server.",
    ),
    click.option(
        "--webhook-addr",
        callback=an_address,
        metavar="HOST:PORT",
        help="Serve them here; by default on all interfaces, at port 9443 for a "
        "Service or a URL, and at a free one without.",
    ),
    click.option(
        "--webhook-service",
        callback=a_service,
        metavar="[NAMESPACE/]NAME[:PORT]",
        help="The Service through which the API server reaches them.",
    ),
    click.option(
        "--webhook-url",
        callback=a_url,
        metavar="URL",
        help="The address at which it reaches them, without a Service.",
    ),
    click.option(
        "--webhook-cert",
        type=_FILE,
        metavar="FILE",
        help="Their certificate as PEM, which is read again when it changes; by "
        "default fnop makes and renews one.",
    ),
    click.option("--webhook-key", type=_FILE, metavar="FILE", help="Its private key."),
    click.option(
        "--webhook-ca",
        type=_FILE,
        metavar="FILE",
        help="The certificates of the authority that has signed it.",
    ),
    shared("webhook_name"),
    click.option(
        "--webhook-unmanaged",
        is_flag=True,
        help="Serve only: the configurations are applied by hand (fnop webhooks).",
    ),
    shared("webhook_events"),
)


def with_webhooks(settings: Settings, options: Mapping[str, Any]) -> Settings:
    """The settings with the server of the options.

    Raises `click.UsageError` for options that do not go together.
    """
    given = [name for name in _DETAILS if options[name]]
    if not options["webhooks"]:
        if given:
            raise click.UsageError(f"{flag_of(given[0])} needs --webhooks")
        return settings
    if options["webhook_service"] and options["webhook_url"]:
        raise click.UsageError("use either --webhook-service or --webhook-url")
    if bool(options["webhook_cert"]) != bool(options["webhook_key"]):
        raise click.UsageError("--webhook-cert and --webhook-key go together")
    if options["webhook_ca"] and not options["webhook_cert"]:
        raise click.UsageError("--webhook-ca needs --webhook-cert and --webhook-key")
    if options["webhook_unmanaged"] and options["webhook_name"]:
        raise click.UsageError("use either --webhook-name or --webhook-unmanaged")
    from fnop.adapters.webhooks.server_at import server_at

    name = options["webhook_name"] or settings.domain
    return settings.replace(
        admission_server=server_at(_address(options)),
        admission_managed=None if options["webhook_unmanaged"] else name,
        admission_events=options["webhook_events"],
    )


_DETAILS = (
    *("webhook_addr", "webhook_service", "webhook_url", "webhook_cert"),
    *("webhook_key", "webhook_ca", "webhook_name", "webhook_unmanaged"),
    "webhook_events",
)
OF_WEBHOOKS = ("webhooks", *_DETAILS)
"""The options that say how admission handlers are served."""


def _address(options: Mapping[str, Any]) -> Address:
    client: dict[str, Any] = {}
    home = service_account.namespace()
    if options["webhook_url"]:
        client["url"] = options["webhook_url"]
    elif options["webhook_service"]:
        client["service"] = {"namespace": home, **options["webhook_service"]}
        if client["service"]["namespace"] is None:
            raise click.UsageError(
                "--webhook-service needs the namespace, too: NAMESPACE/NAME"
            )
    elif home is not None and not options["webhook_unmanaged"]:
        raise click.UsageError(
            "in a pod --webhooks needs the Service through which the API server "
            "reaches it: --webhook-service NAME"
        )
    return Address(
        options["webhook_addr"],
        client,
        options["webhook_cert"],
        options["webhook_key"],
        options["webhook_ca"],
    )
