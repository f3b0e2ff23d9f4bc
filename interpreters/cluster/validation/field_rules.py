"""Rules of single values: names, ports, addresses, quantities.

They come from `apimachinery/pkg/util/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from fnop.core.kubernetes.names import LABEL, SERVICE, SUBDOMAIN
from fnop.core.kubernetes.quantities import amount
from fnop.interpreters.cluster.validation.faults import bad
from fnop.interpreters.cluster.validation.rules import Rule, between, in_order, must
from fnop.interpreters.cluster.values.metadata import (
    NOT_LABEL,
    NOT_SERVICE,
    NOT_SUBDOMAIN,
    key_faults,
    value_faults,
)
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "LARGEST",
    "PERCENT",
    "WORDS",
    "address",
    "config_key",
    "dns_label",
    "domain",
    "env_name",
    "int32",
    "label_map",
    "label_value",
    "no_backsteps",
    "parsed_address",
    "path_segment",
    "port",
    "port_name",
    "port_number",
    "positive",
    "positive_quantity",
    "qualified",
    "quantity",
    "quantity_of",
    "reachable_address",
    "service_name",
    "share",
    "subdomain",
]


# ----------------------------------------------------------------------- names


def _name(pattern: str | re.Pattern[str], most: int, why: str) -> Rule:
    """A text of a pattern, and of `most` bytes."""
    return in_order(
        must(lambda text: len(text) <= most, f"must be no more than {most} bytes"),
        must(re.compile(pattern).fullmatch, why, ""),
    )


NOT_WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid "
    "DNS subdomain, which must consist of lower case alphanumeric characters, "
    "'-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    r"(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
dns_label = _name(LABEL, 63, NOT_LABEL)
# A label of RFC 1035.
service_name = _name(SERVICE, 63, NOT_SERVICE)
subdomain = _name(SUBDOMAIN, 253, NOT_SUBDOMAIN)
wildcard = _name(rf"\*\.{SUBDOMAIN.pattern}", 253, NOT_WILDCARD)


def domain(text: str, path: str) -> Iterator[Fault]:
    """Yield the faults of a subdomain, which may begin with "*."."""
    yield from (wildcard if "*" in text else subdomain)(text, path)


def path_segment(text: str, path: str) -> Iterator[Fault]:
    """Yield the faults of a name between two slashes of a path."""
    if text in (".", ".."):
        yield bad(path, text, f"may not be '{text}'")
    for each in "/%":
        if each in text:
            yield bad(path, text, f"may not contain '{each}'")


def no_backsteps(text: str, path: str) -> Iterator[Fault]:
    """Yield ".." in a path."""
    if ".." in text.split("/"):
        yield bad(path, text, "must not contain '..'")


def qualified(text: str | None, path: str) -> Iterator[Fault]:
    """Yield the faults of a qualified name, such as the key of a label."""
    yield from (bad(path, text or "", why) for why in key_faults(text or ""))


def label_value(text: str, path: str) -> Iterator[Fault]:
    """Yield the faults of a label's value."""
    yield from (bad(path, text, why) for why in value_faults(text))


def label_map(labels: dict[str, str] | None, path: str) -> Iterator[Fault]:
    """Yield the faults of labels, all with the path of the map."""
    for key, value in (labels or {}).items():
        yield from qualified(key, path)
        yield from label_value(value, path)


NOT_A_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
    "'[-._a-zA-Z0-9]+')"
)
NOT_ENV_NAME = (
    "a valid environment variable name must consist of alphabetic characters, digits, "
    "'_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or "
    "'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
_no_steps = in_order(
    must(lambda text: text != ".", "must not be '.'"),
    must(lambda text: text != "..", "must not be '..'"),
    must(
        lambda text: text == ".." or not text.startswith(".."),
        "must not start with '..'",
    ),
)
config_key = in_order(_name(r"[-._a-zA-Z0-9]+", 253, NOT_A_KEY), _no_steps)
env_name = in_order(
    must(re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*").fullmatch, NOT_ENV_NAME), _no_steps
)


# ----------------------------------------------------------------------- ports

port_number = between(1, 65535, zero=0)
# IANA_SVC_NAME.
port_name = in_order(
    must(lambda name: len(name) <= 15, "must be no more than 15 characters"),
    must(
        re.compile(r"[-a-z0-9]*").fullmatch,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    ),
    must(re.compile(r"[a-z]").search, "must contain at least one letter (a-z)"),
    must(lambda name: "--" not in name, "must not contain consecutive hyphens"),
    must(lambda name: name.strip("-") == name, "must not begin or end with a hyphen"),
)


def port(value: Any, path: str) -> Iterator[Fault]:
    """Yield the faults of a port by number or by name."""
    yield from (port_name if isinstance(value, str) else port_number)(value, path)


# ----------------------------------------------------------------------- addresses


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """An address as Go parses it: leading zeros are allowed.

    >>> parsed_address("010.0.0.1"), parsed_address("10.0.0.256")
    (IPv4Address('10.0.0.1'), None)
    """
    plain = text if ":" in text else re.sub(r"(?<!\d)0+(?=\d)", "", text)
    if "%" in plain:
        return None
    try:
        return ip_address(plain)
    except ValueError:
        return None


address = must(
    parsed_address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", ""
)


def reachable_address(text: str | None, path: str) -> Iterator[Fault]:
    """Yield the faults of an address that is unspecified, loopback or link-local."""
    found = parsed_address(text or "")
    if found is None:
        yield from address(text, path)
        return
    if found.is_unspecified:
        yield bad(path, text, f"may not be unspecified ({text})")
    if found.is_loopback:
        yield bad(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        yield bad(path, text, why)


# ----------------------------------------------------------------------- numbers

LARGEST = 2**31 - 1
int32 = between(0, LARGEST)
positive = must(lambda number: number > 0, "must be greater than zero", 0)


def quantity_of(value: Any) -> Decimal:
    """A quantity as a number, 0 if it has none."""
    return amount(value) or Decimal(0)


quantity = must(
    lambda value: quantity_of(value) >= 0, "must be greater than or equal to 0"
)
positive_quantity = must(
    lambda value: quantity_of(value) > 0, "must be greater than zero"
)

PERCENT = re.compile(r"[0-9]+%")
NOT_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
    "'1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def share(value: Any, path: str) -> Iterator[Fault]:
    """Yield the faults of a number or percentage, which must not be negative."""
    if isinstance(value, int):
        if value < 0:
            yield bad(path, value, "must be greater than or equal to 0")
    elif not PERCENT.fullmatch(value):
        yield bad(path, value, NOT_PERCENT)


# The rules that the tables call by a name.
WORDS: dict[str, Rule] = {
    "DNS label": dns_label,
    "RFC 1035 label": service_name,
    "address": address,
    "config key": config_key,
    "domain": domain,
    "env name": env_name,
    "int32": int32,
    "label value": label_value,
    "labels": label_map,
    "path segment": path_segment,
    "port": port,
    "port name": port_name,
    "port number": port_number,
    "positive": positive,
    "positive quantity": positive_quantity,
    "qualified name": qualified,
    "quantity": quantity,
    "reachable address": reachable_address,
    "share": share,
    "subdomain": subdomain,
}
