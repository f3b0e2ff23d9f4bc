"""Numbers in texts of clients, as Go's strconv reads them: 64 bits at most.

Python reads long numbers in a time that grows with the square of their length, and
refuses more than some thousand digits. So it only gets as many digits as count.
"""

from __future__ import annotations

import re

from fnop.interpreters.cluster.values.status import bad_request, quoted

__all__ = ["query_integer", "whole"]

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
# A number of more digits has more than 64 bits.
_DIGITS_MAX = 20


def whole(digits: str) -> int:
    """The number that ASCII digits stand for, or 2**64 if it is greater.

    >>> whole("0017"), whole("9" * 9_999) == 2**64
    (17, True)
    """
    digits = digits.lstrip("0") or "0"
    return min(int(digits), 2**64) if len(digits) <= _DIGITS_MAX else 2**64


def query_integer(text: str) -> int:
    """The number of an option in a query.

    Raises the refusal of a text that is not a number, or has more than 64 bits
    (strconv.ParseInt).
    """
    why = "invalid syntax"
    if _INTEGER.fullmatch(text):
        number = whole(text.lstrip("+-"))
        number = -number if text[0] == "-" else number
        if -(2**63) <= number < 2**63:
            return number
        why = "value out of range"
    raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: {why}")
