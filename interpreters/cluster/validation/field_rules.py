"""Validation of single fields: names, ports, addresses, quantities.

The rules come from `apimachinery/pkg/util/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from fnop.interpreters.cluster.validation.faults import bad, one_of, required
from fnop.interpreters.cluster.values.metadata import (
    LABEL,
    NOT_LABEL,
    NOT_SERVICE,
    NOT_SUBDOMAIN,
    SERVICE,
    SUBDOMAIN,
    key_faults,
    value_faults,
)
from fnop.interpreters.cluster.values.quantities import amount
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "NOT_ADDRESS",
    "PROTOCOLS",
    "address",
    "dns_label",
    "label_faults",
    "label_name",
    "parsed_address",
    "path_segment",
    "port_name",
    "port_number",
    "port_of",
    "protocol",
    "qualified",
    "quantity",
    "service_name",
    "special_address",
    "subdomain",
    "wildcard",
]

PROTOCOLS = ("SCTP", "TCP", "UDP")
NOT_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def _length_faults(field: str, text: str, most: int) -> Iterator[Fault]:
    if len(text) > most:
        yield bad(field, text, f"must be no more than {most} bytes")


def dns_label(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of a label of RFC 1123."""
    yield from _length_faults(field, text, 63)
    if not LABEL.fullmatch(text):
        yield bad(field, text, NOT_LABEL)


def label_name(field: str, name: str) -> Iterator[Fault]:
    """Yield the faults of a required name that is a DNS label."""
    if name:
        yield from dns_label(field, name)
    else:
        yield required(field)


def service_name(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of a service's name, a label of RFC 1035."""
    yield from _length_faults(field, text, 63)
    if not SERVICE.fullmatch(text):
        yield bad(field, text, NOT_SERVICE)


def subdomain(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of a DNS subdomain of RFC 1123."""
    yield from _length_faults(field, text, 253)
    if not SUBDOMAIN.fullmatch(text):
        yield bad(field, text, NOT_SUBDOMAIN)


def wildcard(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of a subdomain after "*."."""
    yield from _length_faults(field, text, 253)
    if not text.startswith("*.") or not SUBDOMAIN.fullmatch(text[2:]):
        why = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid "
            "DNS subdomain, which must consist of lower case alphanumeric characters, "
            "'-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
            r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?"
            r"(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
        yield bad(field, text, why)


def path_segment(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of a name between two slashes of a path."""
    if text in (".", ".."):
        yield bad(field, text, f"may not be '{text}'")
    for each in "/%":
        if each in text:
            yield bad(field, text, f"may not contain '{each}'")


def qualified(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of a qualified name, such as the key of a label."""
    yield from (bad(field, text, why) for why in key_faults(text))


def label_faults(field: str, labels: dict[str, str] | None) -> Iterator[Fault]:
    """Yield the faults of labels, all with the path of the map."""
    for key, value in (labels or {}).items():
        yield from qualified(field, key)
        yield from (bad(field, value, why) for why in value_faults(value))


def port_number(field: str, value: Any) -> Iterator[Fault]:
    """Yield the faults of a port's number: 1 to 65535."""
    if not 1 <= value <= 65535:
        yield bad(field, value, "must be between 1 and 65535, inclusive")


def port_name(field: str, name: str) -> Iterator[Fault]:
    """Yield the faults of a port's name (IANA_SVC_NAME)."""
    if len(name) > 15:
        yield bad(field, name, "must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]*", name):
        why = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
        yield bad(field, name, why)
    if not re.search(r"[a-z]", name):
        yield bad(field, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield bad(field, name, "must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        yield bad(field, name, "must not begin or end with a hyphen")


def port_of(field: str, port: Any) -> Iterator[Fault]:
    """Yield the faults of a port by number or by name."""
    check = port_number if isinstance(port, int) else port_name
    yield from check(field, port)


def protocol(
    field: str, value: Any, known: Iterable[str] = PROTOCOLS
) -> Iterator[Fault]:
    """Yield the faults of a protocol, which is required."""
    if value:
        yield from one_of(field, value, known)
    else:
        yield required(field)


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


def address(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of an IP address."""
    if parsed_address(text) is None:
        yield bad(field, text, NOT_ADDRESS)


def special_address(field: str, text: str) -> Iterator[Fault]:
    """Yield the faults of an address that is unspecified, loopback or link-local."""
    found = parsed_address(text)
    if found is None:
        yield bad(field, text, NOT_ADDRESS)
        return
    if found.is_unspecified:
        yield bad(field, text, f"may not be unspecified ({text})")
    if found.is_loopback:
        yield bad(
            field, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        )
    if found.is_link_local:
        why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        yield bad(field, text, why)


def quantity(field: str, value: Any, *, positive: bool = False) -> Iterator[Fault]:
    """Yield a fault if a quantity is negative, or 0 if it must be `positive`."""
    found = amount(value) or Decimal(0)
    if positive and found <= 0:
        yield bad(field, value, "must be greater than zero")
    elif found < 0:
        yield bad(field, value, "must be greater than or equal to 0")
