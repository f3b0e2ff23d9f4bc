"""Amounts of resources, in the one way that a server writes them.

A quantity is parsed and written again on its way through the server
(`apimachinery/pkg/api/resource`): "1024Mi" comes back as "1Gi".
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal
from functools import lru_cache

__all__ = ["amount", "canonical"]

QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
NANO = Decimal("1e-9")


@lru_cache(maxsize=4096)
def amount(text: str) -> Decimal | None:
    """The number that a quantity stands for; None if it is none.

    >>> amount("1Ki"), amount("100m"), amount("x")
    (Decimal('1024'), Decimal('0.1'), None)
    """
    found = QUANTITY.fullmatch(text)
    if found is None:
        return None
    number, suffix = Decimal(found[1]), found[2] or ""
    if suffix in BINARY:
        return number * Decimal(1024) ** BINARY.index(suffix)
    if suffix in DECIMAL:
        return (number * Decimal(10) ** (3 * DECIMAL.index(suffix) - 9)).normalize()
    return number * Decimal(10) ** int(suffix[1:])


@lru_cache(maxsize=4096)
def canonical(text: str) -> str | None:
    """A quantity as the server writes it; None if it is none.

    >>> [canonical(text) for text in ("1024Mi", "0.5", "1000", "1.5Gi", "1e3", "x")]
    ['1Gi', '500m', '1k', '1536Mi', '1e3', None]
    """
    value = amount(text)
    if value is None:
        return None
    suffix = text.lstrip("+-.0123456789")
    if suffix.endswith("i") and abs(value) >= 1024:
        whole = int(value.to_integral_value(ROUND_UP))
        place = 0
        while whole % 1024 == 0 and place < len(BINARY) - 1:
            whole, place = whole // 1024, place + 1
        return f"{whole}{BINARY[place]}"
    return _decimal(value, exponential=len(suffix) > 1 and suffix[0] in "eE")


def _decimal(value: Decimal, *, exponential: bool) -> str:
    nanos = int((value / NANO).to_integral_value(ROUND_UP))
    if nanos == 0:
        return "0"
    place = 0
    while nanos % 1000 == 0 and place < len(DECIMAL) - 1:
        nanos, place = nanos // 1000, place + 1
    if not exponential:
        return f"{nanos}{DECIMAL[place]}"
    exponent = 3 * place - 9
    return f"{nanos}e{exponent}" if exponent else str(nanos)
