"""Configurations that a user has applied for an operator that only serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from fnop.core.admission.configurations import NAME_LABEL, Group
from fnop.core.values.errors import joined
from fnop.effects.regexes import regex

__all__ = ["astray", "place_of"]

Manifest = Mapping[str, Any]


def astray(
    stored: Manifest, groups: Iterable[Group], client: Manifest, *, labelled: bool
) -> str:
    """A sentence about webhooks that do not lead to a `client`, or select nothing.

    "" without any, or if it cannot be seen. An address and a Service may belong to the
    same server; so may the operator's own address and another one. Namespaces are
    `labelled` with their names since Kubernetes 1.21.
    """
    own = tuple(f"{each.name}." for each in groups)
    found = [e for e in stored.get("webhooks") or () if e["name"].startswith(own)]
    label = f"{stored['kind']} {stored['metadata']['name']}"
    elsewhere = sorted(
        {
            place_of(each["clientConfig"])
            for each in found
            if _is_other_address(each, client)
        }
    )
    if elsewhere:
        return (
            f"{label} leads to {joined(elsewhere)}, and this operator serves its "
            f"webhooks at {place_of(client)}; apply what fnop webhooks prints for that "
            "address, or name the other one with --webhook-url or --webhook-service"
        )
    if not labelled and any(map(_names_namespaces, found)):
        return (
            f"{label} selects namespaces by {NAME_LABEL}, a label that they have from "
            "Kubernetes 1.21 on, and this API server is older; apply what fnop "
            "webhooks prints with --kube-version"
        )
    return ""


def place_of(client: Manifest) -> str:
    """The address in a client configuration, in words.

    >>> place_of({"url": "https://a"})
    'https://a'
    >>> place_of({"service": {"namespace": "prod", "name": "claims", "port": 443}})
    'the Service prod/claims:443'
    """
    if (url := client.get("url")) is not None:
        return str(url)
    namespace, name, port = _service_address(client["service"])
    return f"the Service {namespace}/{name}:{port}"


def _service_address(service: Manifest) -> tuple[str, str, int]:
    return service["namespace"], service["name"], service.get("port") or 443


def _is_other_address(webhook: Manifest, client: Manifest) -> bool:
    """Whether a webhook leads to another address of the same kind."""
    found = webhook["clientConfig"]
    url, service = found.get("url"), found.get("service")
    if url is not None and client.get("url") is not None:
        return _is_elsewhere(str(url), str(client["url"]))
    if service is not None and client.get("service") is not None:
        return _service_address(service) != _service_address(client["service"])
    return False


def _is_elsewhere(url: str, own: str) -> bool:
    """Whether a URL does not begin with the operator's own.

    An address of the machine itself may have others, which are reachable from outside.

    >>> _is_elsewhere("https://localhost:1/judge", "https://127.0.0.1:1")
    False
    >>> _is_elsewhere("https://a.dev/x/judge", "https://a.dev:443/x/")
    False
    >>> [_is_elsewhere("https://a.dev/x", each) for each in ("https://a.dev:1", "//b")]
    [True, True]
    >>> _is_elsewhere("https://a.dev", "https://localhost:1")
    False
    """
    theirs, ours = urlsplit(url), urlsplit(own)
    host, own_host = _host_of(theirs), _host_of(ours)
    if own_host == _LOOPBACK != host:
        return False
    is_there = (host, theirs.port or 443) == (own_host, ours.port or 443)
    return not (is_there and theirs.path.startswith(f"{ours.path.rstrip('/')}/"))


_LOOPBACK = "localhost"
_LOCAL = regex(r"(.*\.)?localhost\.?|127(\.[0-9]+){3}|::1")


def _host_of(url: SplitResult) -> str:
    host = url.hostname or ""
    return _LOOPBACK if _LOCAL.fullmatch(host) else host


def _names_namespaces(webhook: Manifest) -> bool:
    selector = webhook.get("namespaceSelector") or {}
    keys = [each.get("key") for each in selector.get("matchExpressions") or ()]
    return NAME_LABEL in (*(selector.get("matchLabels") or ()), *keys)
