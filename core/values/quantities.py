"""Quantities of resources: "10Gi" of memory, "250m" of a CPU, "1e3".

The grammar comes from `k8s.io/apimachinery/pkg/api/resource`. It is a decimal number,
followed by a binary suffix, a decimal suffix, an exponent, or nothing.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

__all__ = ["PATTERN", "quantity"]

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
# Also for RE2, in schemas. controller-gen's has fractions in the exponent, `1e.5`,
# which no server parses; longer exponents than these do not fit into an int32.
PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,9}))?$"
)
_PARTS = re.compile(r"([+-]?[0-9.]+)(.*)")
_GRAMMAR = re.compile(PATTERN)
# A whole number with up to this many digits is written out; longer ones are not.
_DIGITS_MAX = 40


def quantity(text: str | float) -> Decimal:
    """The exact number that a Kubernetes quantity represents.

    `text` is a number, optionally with a suffix. The suffix is binary (Ki, Mi, Gi, Ti,
    Pi, Ei), decimal (n, u, m, k, M, G, T, P, E), or an exponent (1e3). `text` may also
    be a number itself, as in YAML. The unit is the field's: bytes, cores, pieces.
    Raises `ValueError` if it is not a quantity.

    >>> quantity("10Gi"), quantity("250m"), quantity("1e3"), quantity(2)
    (Decimal('10737418240'), Decimal('0.25'), Decimal('1000'), Decimal('2'))
    >>> quantity("1G") < quantity("1Gi")
    True
    >>> quantity("ten")
    Traceback (most recent call last):
    ValueError: 'ten' is no quantity; write a number such as 3, 0.5, 250m, 10Gi or 1e3
    """
    # A bool is an int to Python, and True is not in the grammar.
    found = _parse_amount(str(text))
    if found is None:
        raise ValueError(
            f"{text!r:.60} is no quantity; write a number such as 3, 0.5, 250m, 10Gi "
            "or 1e3"
        )
    is_short = found.adjusted() < _DIGITS_MAX
    if is_short and found == found.to_integral_value():
        return Decimal(int(found))
    return found


def _parse_amount(text: str) -> Decimal | None:
    parts = _PARTS.fullmatch(text)
    # `$` alone would let a newline through.
    if parts is None or _GRAMMAR.fullmatch(text) is None:
        return None
    number, suffix = Decimal(parts[1]), parts[2]
    # fnop rounds none of the digits.
    with localcontext(prec=len(text) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN):
        if suffix in _BINARY:
            return number * Decimal(1024) ** _BINARY.index(suffix)
        if suffix in _DECIMAL:
            return number.scaleb(3 * _DECIMAL.index(suffix) - 9).normalize()
        return number.scaleb(int(suffix[1:]))
