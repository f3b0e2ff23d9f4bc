"""Quantities of resources: "10Gi" of memory, "250m" of a CPU, "1e3".

The grammar comes from `k8s.io/apimachinery/pkg/api/resource`. It is a decimal number,
followed by a binary suffix, a decimal suffix, an exponent, or nothing. The API server
parses a quantity, and stores it in its canonical form: "1024Mi" comes back as "1Gi".
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal, localcontext
from functools import lru_cache

__all__ = ["PATTERN", "amount", "canonical", "is_whole", "quantity"]

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
# Also for RE2, in schemas. controller-gen's has fractions in the exponent, `1e.5`,
# which no server parses; longer exponents than these do not fit into an int32.
PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,9}))?$"
)
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
    ValueError: 'ten' is not a quantity; write one such as 3, 0.5, 250m, 10Gi or 1e3
    """
    # A bool is an int to Python, and True is not in the grammar.
    found = amount(str(text))
    if found is None:
        raise ValueError(
            f"{text!r:.60} is not a quantity; write one such as 3, 0.5, 250m, 10Gi "
            "or 1e3"
        )
    is_short = found.adjusted() < _DIGITS_MAX
    if is_short and found == found.to_integral_value():
        return Decimal(int(found))
    return found


@lru_cache(maxsize=4096)
def amount(text: str) -> Decimal | None:
    """The exact number that a quantity stands for; None if it is invalid.

    >>> amount("1Ki"), amount("100m"), amount("x")
    (Decimal('1024'), Decimal('0.1'), None)
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        return None
    number, suffix = Decimal((found[1] or "") + found[2]), found[6] or ""
    with _exact_context(text):
        if suffix in _BINARY:
            return number * Decimal(1024) ** _BINARY.index(suffix)
        if suffix in _DECIMAL:
            return number.scaleb(3 * _DECIMAL.index(suffix) - 9).normalize()
        return number.scaleb(int(suffix[1:]))


def is_whole(text: str) -> bool:
    """Whether a quantity is a whole number of any size; an invalid one is 0.

    >>> is_whole("1k"), is_whole("100m"), is_whole("9" * 5_000)
    (True, False, True)
    """
    value = amount(text) or Decimal(0)
    return value == value.to_integral_value()


def _exact_context(text: str) -> AbstractContextManager[Context]:
    """Arithmetic that does not round any digits of a quantity."""
    return localcontext(prec=len(text) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)


@lru_cache(maxsize=4096)
def canonical(text: str) -> str | None:
    """A quantity as the server writes it; None if it is invalid.

    >>> [canonical(text) for text in ("1024Mi", "0.5", "1000", "1.5Gi", "1e3", "x")]
    ['1Gi', '500m', '1k', '1536Mi', '1e3', None]
    >>> canonical("1e400"), canonical("9" * 5_000 + "Ki"), len(canonical("9" * 5_000))
    ('10e399', '9223372036854775807', 5000)
    """
    value = amount(text)
    if value is None:
        return None
    suffix = text.lstrip("+-.0123456789")
    with _exact_context(text):
        if suffix.endswith("i") and abs(value) >= 1024:
            # Only these have the real server's maximum (resource.ParseQuantity).
            whole = min(int(value.to_integral_value(ROUND_UP)), 2**63 - 1)
            place = 0
            while whole % 1024 == 0 and place < len(_BINARY) - 1:
                whole, place = whole // 1024, place + 1
            return f"{Decimal(whole):f}{_BINARY[place]}"
        nanos = value.scaleb(9).to_integral_value(ROUND_UP).normalize()
    return _decimal(nanos, exponential=len(suffix) > 1 and suffix[0] in "eE")


def _decimal(nanos: Decimal, *, exponential: bool) -> str:
    """Nanos with the greatest suffix, or power of 1,000, that leaves a whole number."""
    if not nanos:
        return "0"
    sign, digits, zeros = nanos.as_tuple()
    assert isinstance(zeros, int)  # it is finite, and whole
    place = zeros // 3 if exponential else min(zeros // 3, len(_DECIMAL) - 1)
    number = "".join(map(str, digits)) + "0" * (zeros - 3 * place)
    number = f"-{number}" if sign else number
    if not exponential:
        return f"{number}{_DECIMAL[place]}"
    exponent = 3 * place - 9
    return f"{number}e{exponent}" if exponent else number
