"""The options for the address of served webhooks, and for the way to them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from fnop.adapters.cli.option_fields import declared, names_in, option
from fnop.adapters.cli.options import flag_of, shared
from fnop.adapters.kubernetes import service_account
from fnop.adapters.webhooks.addresses import Address
from fnop.core.handlers.declare.settings import Settings
from fnop.effects.names import check_namespace
from fnop.effects.regexes import regex

__all__ = [
    "WebhookOptions",
    "a_service",
    "a_url",
    "bundle_of",
]

_SERVICE = regex(r"(?:([^/:]+)/)?([^/:]+)(?::(\d+))?")


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
            f"{value!r} is not a service; write NAMESPACE/NAME, or NAMESPACE/NAME:PORT",
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
            raise click.BadParameter(f"{port} is not a port", ctx, param)
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
            f"{value!r} is not an address of a webhook; write "
            "https://HOST[:PORT][/PATH], as the API server takes no other",
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
        f"{value!r} is not an address to listen at; write HOST:PORT, such as "
        "0.0.0.0:9443",
        ctx,
        param,
    )


_LISTEN = regex(r"(?:[^:\[\]/\s]*|\[[0-9A-Fa-f:.]+\]):(?:\d{1,5})?")


_FILE = click.Path(exists=True, dir_okay=False)


@dataclass(frozen=True, kw_only=True)
class WebhookOptions:
    """The options of an operator that serves its admission handlers."""

    webhooks: bool = option(
        "--webhooks",
        is_flag=True,
        help="Serve admission handlers, and register them with the API server.",
    )
    webhook_addr: str | None = option(
        "--webhook-addr",
        callback=an_address,
        metavar="HOST:PORT",
        help="The address of the webhook server; by default all interfaces, at port "
        "9443 with a Service or a URL, else at a free port.",
    )
    webhook_service: Mapping[str, Any] | None = option(
        "--webhook-service",
        callback=a_service,
        metavar="[NAMESPACE/]NAME[:PORT]",
        help="The Service through which the API server reaches the webhooks.",
    )
    webhook_url: str | None = option(
        "--webhook-url",
        callback=a_url,
        metavar="URL",
        help="The URL at which the API server reaches the webhooks without a Service.",
    )
    webhook_cert: str | None = option(
        "--webhook-cert",
        type=_FILE,
        metavar="FILE",
        help="The certificate of the webhook server as PEM. fnop reads the file again "
        "when it changes. By default fnop makes and renews a certificate.",
    )
    webhook_key: str | None = option(
        "--webhook-key", type=_FILE, metavar="FILE", help="The certificate's key."
    )
    webhook_ca: str | None = option(
        "--webhook-ca",
        type=_FILE,
        metavar="FILE",
        help="The certificates of the authority that signed the certificate.",
    )
    webhook_name: str | None = declared(shared("webhook_name"))
    webhook_unmanaged: bool = option(
        "--webhook-unmanaged",
        is_flag=True,
        help="Serve the webhooks only: you apply the configurations (fnop webhooks).",
    )
    webhook_events: bool = declared(shared("webhook_events"))

    def add_to(self, settings: Settings) -> Settings:
        """The settings with the server of the options.

        Raises `click.UsageError` for options that do not go together.
        """
        if not self.webhooks:
            for name in names_in(WebhookOptions):
                if getattr(self, name):
                    raise click.UsageError(f"{flag_of(name)} needs --webhooks")
            return settings
        self._check()
        from fnop.adapters.webhooks.server_at import server_at

        name = self.webhook_name or settings.domain
        return settings.replace(
            admission_server=server_at(self._address()),
            admission_managed=None if self.webhook_unmanaged else name,
            admission_events=self.webhook_events,
        )

    def _check(self) -> None:
        if self.webhook_service and self.webhook_url:
            raise click.UsageError("use either --webhook-service or --webhook-url")
        if bool(self.webhook_cert) != bool(self.webhook_key):
            raise click.UsageError("--webhook-cert and --webhook-key go together")
        if self.webhook_ca and not self.webhook_cert:
            raise click.UsageError(
                "--webhook-ca needs --webhook-cert and --webhook-key"
            )
        if self.webhook_unmanaged and self.webhook_name:
            raise click.UsageError("use either --webhook-name or --webhook-unmanaged")

    def _address(self) -> Address:
        client: dict[str, Any] = {}
        home = service_account.namespace()
        if self.webhook_url:
            client["url"] = self.webhook_url
        elif self.webhook_service:
            client["service"] = {"namespace": home, **self.webhook_service}
            if client["service"]["namespace"] is None:
                raise click.UsageError(
                    "--webhook-service needs the namespace, too: NAMESPACE/NAME"
                )
        elif home is not None and not self.webhook_unmanaged:
            raise click.UsageError(
                "in a pod --webhooks needs the Service through which the API server "
                "reaches it: --webhook-service NAME"
            )
        return Address(
            self.webhook_addr,
            client,
            self.webhook_cert,
            self.webhook_key,
            self.webhook_ca,
        )
