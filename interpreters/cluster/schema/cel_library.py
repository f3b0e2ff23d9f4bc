"""The functions that Kubernetes adds to CEL, as the API server declares them.

`FUNCTIONS` is one table, read twice. To check a rule when it is written, it is read
with its exact types (`k8s.io/apiserver/pkg/cel/library`). To evaluate a rule, it is
read by the types of the values at run time. Values of opaque types are then maps with
one key, the type's name: only these functions can see inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from msgspec import Struct

from fnop.core.kubernetes.quantities import amount
from fnop.interpreters.cluster.schema.regex import compiled

__all__ = ["FUNCTIONS", "Function"]


class Function(Struct, frozen=True):
    """One overload: its parameters' types (first the receiver's) and its result's."""

    name: str
    is_member: bool
    parameters: tuple[str, ...]
    result: str
    call: Callable[..., Any]


# -------------------------------------------------------------------- strings


def _bounds(text: str, start: int, end: int) -> None:
    if not 0 <= start <= len(text):
        raise ValueError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise ValueError(f"index out of range: {end}")
    if start > end:
        raise ValueError(f"invalid substring range. start: {start}, end: {end}")


def _char_at(text: str, index: int) -> str:
    _bounds(text, index, len(text))
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    _bounds(text, start, len(text))
    return text.find(part, start)


def _last_index_of(text: str, part: str, last: int | None = None) -> int:
    if last is None:
        return text.rfind(part)
    _bounds(text, last, len(text))
    return text.rfind(part, 0, last + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    _bounds(text, start, end)
    return text[start:end]


def _lower(text: str) -> str:
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in text)


def _upper(text: str) -> str:
    return "".join(c.upper() if "a" <= c <= "z" else c for c in text)


def _split(text: str, by: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if limit == 1:
        return [text]
    if not by:
        parts = list(text)
        return parts if limit < 0 else [*parts[: limit - 1], text[limit - 1 :]]
    return text.split(by, limit - 1 if limit > 0 else -1)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


def _join_texts(parts: list[Any], by: str = "") -> str:
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("no such overload")
    return by.join(parts)


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    for char, name in (("\n", "n"), ("\r", "r"), ("\t", "t"), ("\a", "a")):
        escaped = escaped.replace(char, f"\\{name}")
    return f'"{escaped}"'


def _format_value(value: Any) -> str:
    """A value as `%s` prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_format_value(k)}: {_format_value(v)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, float):
        return f"{value:g}" if not value.is_integer() else str(int(value))
    return str(value)


CLAUSE = re.compile(r"%(%|(?:\.(\d+))?([sdfebxXo]))")
CLAUSES: dict[str, Callable[[Any, int], str]] = {
    "s": lambda value, _: _format_value(value),
    "d": lambda value, _: _format_value(value),
    "f": lambda value, digits: f"{value:.{digits}f}",
    "e": lambda value, digits: f"{value:.{digits}e}",
    "b": lambda value, _: format(int(value), "b"),
    "o": lambda value, _: format(int(value), "o"),
    "x": lambda value, _: _hex(value),
    "X": lambda value, _: _hex(value).upper(),
}


def _hex(value: Any) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    return value.hex() if isinstance(value, bytes) else format(int(value), "x")


def _format(text: str, values: list[Any]) -> str:
    given = iter(values)

    def clause(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        value = next(given, given)
        if value is given:
            raise ValueError("index out of range")
        return CLAUSES[found[3]](value, int(found[2] or 6))

    return CLAUSE.sub(clause, text)


# ---------------------------------------------------------------------- lists


def _is_sorted(values: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(values))


def _minimum(values: list[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return min(values)


def _maximum(values: list[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return max(values)


def _position(values: list[Any], wanted: Any) -> int:
    return next((i for i, value in enumerate(values) if value == wanted), -1)


def _last_position(values: list[Any], wanted: Any) -> int:
    found = _position(values[::-1], wanted)
    return len(values) - 1 - found if found >= 0 else -1


def _contains(values: list[Any], wanted: list[Any]) -> bool:
    return all(value in values for value in wanted)


def _same_members(values: list[Any], others: list[Any]) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: list[Any], others: list[Any]) -> bool:
    return any(value in values for value in others)


# ---------------------------------------------------------- regex, URLs


def _find(text: str, pattern: str) -> str:
    found = compiled(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    # An absolute URI, or an absolute path (url.ParseRequestURI).
    fits = text.startswith("/") or (bool(parts.scheme) and ":" in text)
    return fits and not any(c.isspace() or ord(c) < 0x20 for c in text)


def _url(text: str) -> dict[str, str]:
    if not _is_url(text):
        raise ValueError(
            f'URL parse error during conversion from string: parse "{text}": '
            "invalid URI for request"
        )
    return {"URL": text}


def _host(url: dict[str, str]) -> str:
    return urlsplit(url["URL"]).netloc.rpartition("@")[2]


def _host_name(url: dict[str, str]) -> str:
    host = _host(url)
    if host.startswith("["):
        return host[1 : host.index("]")]
    return host.partition(":")[0]


def _port(url: dict[str, str]) -> str:
    port = urlsplit(url["URL"]).port
    return "" if port is None else str(port)


# ------------------------------------------------------------------ quantities

# A fraction of more digits takes long, and is not used in practice.
DIGITS_MAX = 1000


def _parse_quantity(text: str) -> Fraction | None:
    found = amount(text)
    if found is None or abs(found.adjusted()) > DIGITS_MAX:
        return None
    return Fraction(found)


def _quantity(text: str) -> dict[str, str]:
    value = _parse_quantity(text)
    if value is None:
        raise ValueError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return {"Quantity": str(value)}


def _value(quantity: Any) -> Fraction:
    return Fraction(quantity["Quantity"]) if isinstance(quantity, dict) else quantity


def _as_integer(quantity: dict[str, str]) -> int:
    value = _value(quantity)
    if value.denominator != 1 or not -(2**63) <= value < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(value)


def _add_quantities(quantity: dict[str, str], other: Any) -> dict[str, str]:
    return {"Quantity": str(_value(quantity) + _value(other))}


def _subtract_quantities(quantity: dict[str, str], other: Any) -> dict[str, str]:
    return {"Quantity": str(_value(quantity) - _value(other))}


# ------------------------------------------- quantities and versions compared

SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z"
)


def _semver(text: str) -> dict[str, str]:
    if not SEMVER.match(text):
        raise ValueError("No Major.Minor.Patch elements found")
    return {"Semver": text}


def _version_key(version: dict[str, str]) -> tuple[Any, ...]:
    found = SEMVER.match(version["Semver"])
    assert found is not None  # made by `_semver`
    *numbers, before = found.groups()
    # A pre-release comes before the release; numbers in it before words.
    tail = [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in before.split(".")
    ] if before else []  # fmt: skip
    return (*map(int, numbers), before is None, tail)


def _number_of(index: int) -> Callable[[dict[str, str]], int]:
    return lambda version: int(_version_key(version)[index])


def _compare_values(one: dict[str, str], other: dict[str, str]) -> int:
    key: Callable[[dict[str, str]], Any] = _version_key if "Semver" in one else _value
    return int(key(one) > key(other)) - int(key(one) < key(other))


# ------------------------------------------------------------------ addresses


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    # Zones and IPv4 in IPv6 are refused (netip.ParseAddr, then k8s' own checks).
    if isinstance(found, IPv6Address) and (found.ipv4_mapped or "%" in text):
        return None
    return found


def _ip(text: str) -> dict[str, str]:
    found = _address(text)
    if found is None:
        raise ValueError(
            f'IP Address "{text}" parse error during conversion from string: '
            f'ParseAddr("{text}"): unable to parse IP'
        )
    return {"IP": str(found)}


def _address_of(ip: dict[str, str]) -> IPv4Address | IPv6Address:
    return ip_address(ip["IP"])


def _is_link_local_multicast(ip: dict[str, str]) -> bool:
    address = _address_of(ip)
    local = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ip_network(local)


def _is_global_unicast(ip: dict[str, str]) -> bool:
    address = _address_of(ip)
    special = (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )
    return not special and str(address) != "255.255.255.255"


def _prefix(text: str) -> tuple[str, IPv4Network | IPv6Network] | None:
    head, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal() or _address(head) is None:
        return None
    try:
        return head, ip_network(text, strict=False)
    except ValueError:
        return None


def _cidr(text: str) -> dict[str, str]:
    found = _prefix(text)
    if found is None:
        raise ValueError(
            f'network address parse error during conversion from string: "{text}"'
        )
    return {"CIDR": f"{ip_address(found[0])}/{found[1].prefixlen}"}


def _network(cidr: dict[str, str]) -> IPv4Network | IPv6Network:
    return ip_network(cidr["CIDR"], strict=False)


def _contains_ip(cidr: dict[str, str], ip: Any) -> bool:
    if isinstance(ip, str) and _address(ip) is None:
        raise ValueError("No matching overloads")  # the message of the real library
    return _address_of(ip if isinstance(ip, dict) else _ip(ip)) in _network(cidr)


def _contains_cidr(cidr: dict[str, str], other: Any) -> bool:
    inner = _network(other if isinstance(other, dict) else _cidr(other))
    outer = _network(cidr)
    return (
        inner.version == outer.version
        and inner.network_address in outer
        and inner.prefixlen >= outer.prefixlen
    )


# ------------------------------------------------------------------- the table


def _member(name: str, of: str, more: str, result: str, call: Any) -> Function:
    return Function(name, True, (of, *more.split()), result, call)


def _function(name: str, parameters: str, result: str, call: Any) -> Function:
    return Function(name, False, tuple(parameters.split()), result, call)


ORDERED = ("int", "double", "bool", "string", "bytes", "timestamp", "duration")
FUNCTIONS: tuple[Function, ...] = (
    # strings (cel-go's extension, version 2)
    _member("charAt", "string", "int", "string", _char_at),
    _member("indexOf", "string", "string", "int", _index_of),
    _member("indexOf", "string", "string int", "int", _index_of),
    _member("lastIndexOf", "string", "string", "int", _last_index_of),
    _member("lastIndexOf", "string", "string int", "int", _last_index_of),
    _member("lowerAscii", "string", "", "string", _lower),
    _member("upperAscii", "string", "", "string", _upper),
    _member("replace", "string", "string string", "string", _replace),
    _member("replace", "string", "string string int", "string", _replace),
    _member("split", "string", "string", "list(string)", _split),
    _member("split", "string", "string int", "list(string)", _split),
    _member("substring", "string", "int", "string", _substring),
    _member("substring", "string", "int int", "string", _substring),
    _member("trim", "string", "", "string", str.strip),
    _member("join", "list(string)", "", "string", _join_texts),
    _member("join", "list(string)", "string", "string", _join_texts),
    _member("format", "string", "list(dyn)", "string", _format),
    _function("strings.quote", "string", "string", _quote_text),
    # lists
    *(
        _member(name, f"list({kind})", "", result or kind, call)
        for name, result, call in (
            ("isSorted", "bool", _is_sorted),
            ("min", "", _minimum),
            ("max", "", _maximum),
        )
        for kind in ORDERED
    ),
    _member("sum", "list(int)", "", "int", sum),
    _member("sum", "list(double)", "", "double", lambda values: float(sum(values))),
    *(
        _member(name, f"list({kind})", kind, "int", call)
        for name, call in (("indexOf", _position), ("lastIndexOf", _last_position))
        for kind in (*ORDERED, "dyn")
    ),
    _function("sets.contains", "list(dyn) list(dyn)", "bool", _contains),
    _function("sets.equivalent", "list(dyn) list(dyn)", "bool", _same_members),
    _function("sets.intersects", "list(dyn) list(dyn)", "bool", _intersects),
    # regular expressions
    _member("find", "string", "string", "string", _find),
    _member("findAll", "string", "string", "list(string)", _find_all),
    _member("findAll", "string", "string int", "list(string)", _find_all),
    # URLs
    _function("url", "string", "URL", _url),
    _function("isURL", "string", "bool", _is_url),
    _member("getScheme", "URL", "", "string", lambda u: urlsplit(u["URL"]).scheme),
    _member("getHost", "URL", "", "string", _host),
    _member("getHostname", "URL", "", "string", _host_name),
    _member("getPort", "URL", "", "string", _port),
    _member(
        "getEscapedPath",
        "URL",
        "",
        "string",
        lambda u: quote(urlsplit(u["URL"]).path, safe="/%:@!$&'()*+,;=~-._"),
    ),
    _member(
        "getQuery",
        "URL",
        "",
        "map(string,list(string))",
        lambda u: parse_qs(urlsplit(u["URL"]).query, keep_blank_values=True),
    ),
    # quantities
    _function("quantity", "string", "Quantity", _quantity),
    _function(
        "isQuantity", "string", "bool", lambda text: _parse_quantity(text) is not None
    ),
    _member(
        "sign", "Quantity", "", "int", lambda q: (_value(q) > 0) - (_value(q) < 0)
    ),
    _member("isInteger", "Quantity", "", "bool", lambda q: _value(q).denominator == 1),
    _member("asInteger", "Quantity", "", "int", _as_integer),
    _member(
        "asApproximateFloat", "Quantity", "", "double", lambda q: float(_value(q))
    ),
    _member("add", "Quantity", "Quantity", "Quantity", _add_quantities),
    _member("add", "Quantity", "int", "Quantity", _add_quantities),
    _member("sub", "Quantity", "Quantity", "Quantity", _subtract_quantities),
    _member("sub", "Quantity", "int", "Quantity", _subtract_quantities),
    *(
        _member(name, kind, kind, result, call)
        for name, result, call in (
            ("isGreaterThan", "bool", lambda a, b: _compare_values(a, b) > 0),
            ("isLessThan", "bool", lambda a, b: _compare_values(a, b) < 0),
            ("compareTo", "int", _compare_values),
        )
        for kind in ("Quantity", "Semver")
    ),
    # versions
    _function("semver", "string", "Semver", _semver),
    _function("isSemver", "string", "bool", lambda text: bool(SEMVER.match(text))),
    _member("major", "Semver", "", "int", _number_of(0)),
    _member("minor", "Semver", "", "int", _number_of(1)),
    _member("patch", "Semver", "", "int", _number_of(2)),
    # addresses and networks
    _function("ip", "string", "IP", _ip),
    _function("isIP", "string", "bool", lambda text: _address(text) is not None),
    _function(
        "ip.isCanonical", "string", "bool", lambda text: _ip(text)["IP"] == text
    ),
    _member("family", "IP", "", "int", lambda ip: _address_of(ip).version),
    _member(
        "isUnspecified", "IP", "", "bool", lambda ip: _address_of(ip).is_unspecified
    ),
    _member("isLoopback", "IP", "", "bool", lambda ip: _address_of(ip).is_loopback),
    _member("isLinkLocalMulticast", "IP", "", "bool", _is_link_local_multicast),
    _member(
        "isLinkLocalUnicast", "IP", "", "bool", lambda ip: _address_of(ip).is_link_local
    ),
    _member("isGlobalUnicast", "IP", "", "bool", _is_global_unicast),
    _function("cidr", "string", "CIDR", _cidr),
    _function("isCIDR", "string", "bool", lambda text: _prefix(text) is not None),
    _member("containsIP", "CIDR", "string", "bool", _contains_ip),
    _member("containsIP", "CIDR", "IP", "bool", _contains_ip),
    _member("containsCIDR", "CIDR", "string", "bool", _contains_cidr),
    _member("containsCIDR", "CIDR", "CIDR", "bool", _contains_cidr),
    _member(
        "ip", "CIDR", "", "IP", lambda c: {"IP": c["CIDR"].partition("/")[0]}
    ),
    _member("masked", "CIDR", "", "CIDR", lambda c: {"CIDR": str(_network(c))}),
    _member("prefixLength", "CIDR", "", "int", lambda c: _network(c).prefixlen),
)  # fmt: skip
