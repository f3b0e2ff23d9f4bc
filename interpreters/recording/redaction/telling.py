"""Distinctive values: an equal value elsewhere is a copy, not a coincidence.

Names of objects are long and have several words, too: their form distinguishes them.
"""

from __future__ import annotations

import math
import re
from collections import Counter

__all__ = ["BITS_MIN", "LENGTH_MIN", "is_address", "is_reference", "is_telling"]

LENGTH_MIN = 12
BITS_MIN = 40.0
_WORD_BITS, _LETTER_BITS, _DIGIT_BITS, _SIGN_BITS, _JOINT_BITS = 12, 4.7, 3.3, 5, 1
_WORD_LENGTH = 10
_PIECES = re.compile(
    rb"(?P<word>[A-Z]?[a-z]+|[A-Z]+)|(?P<digits>[0-9]+)|(?P<joints>[-._/:@ ]+)"
    rb"|(?P<signs>[^-A-Za-z0-9._/:@ ]+)"
)


def is_telling(value: bytes | str) -> bool:
    """Whether an equal value elsewhere is a copy, not a coincidence.

    It has at least 12 characters, and 40 bits by this count:

    - 12 bits for a word of up to ten letters; 4.7 per letter in a short word, and for
      each further letter in a long one
    - 3.3 bits for a digit
    - 1 bit for `-._/:@` and space
    - 5 bits for other signs

    It never has more bits than the frequencies of its characters allow.

    >>> [is_telling(each) for each in ("default", "LoadBalancer", "a" * 40)]
    [False, False, False]
    >>> is_telling("9f86d081884c7d65"), is_telling("correct horse battery staple")
    (True, True)
    """
    raw = value.encode() if isinstance(value, str) else value
    if len(raw) < LENGTH_MIN:
        return False
    raw = raw[:_JUDGED]
    counted = sum(_bits_of_piece(found) for found in _PIECES.finditer(raw))
    return min(counted, _frequency_bits(raw)) >= BITS_MIN


# Further characters do not make a value less of a secret.
_JUDGED = 256


def _bits_of_piece(piece: re.Match[bytes]) -> float:
    length = len(piece[0])
    match piece.lastgroup:
        case "word":
            more = max(0, length - _WORD_LENGTH) * _LETTER_BITS
            return min(_WORD_BITS, length * _LETTER_BITS) + more
        case "digits":
            return length * _DIGIT_BITS
        case "joints":
            return length * _JOINT_BITS
        case _:
            return length * _SIGN_BITS


def _frequency_bits(raw: bytes) -> float:
    total = len(raw)
    counts = Counter(raw).values()
    return sum(each * math.log2(total / each) for each in counts)


# The name of an object (RFC 1123), with its namespace, its kind or its domain: `a`,
# `ns/a`, `secrets/a`, `v1/Secret/ns/a`, `a.ns`, `a.ns.svc.cluster.local`.
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
_REFERENCE = re.compile(rf"(?:{_NAME}/|(?:[A-Z][a-z]+)+/){{0,4}}{_NAME}")
_REFERENCE_MAX = 512
_BETWEEN = re.compile(r"[-./]")
_HARSH = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}")
_VOWEL = re.compile(r"[aeiouy]")
_LONG_WORD = 14


def is_reference(text: str) -> bool:
    """Whether a text has the form of an object's name, and is not random.

    Words do not count here, because names consist of them. The rest of the name must
    have fewer bits than a random value.

    >>> names = "team-a/orders-db-credentials", "secrets/orders", "v1/Secret/team-a/db"
    >>> [is_reference(each) for each in (*names, "orders-db.team-a.svc.cluster.local")]
    [True, True, True, True]
    >>> [is_reference(each) for each in ("9f86d081884c7d65", "a:b", "K7MDENG/bPxRfiCY")]
    [False, False, False]
    """
    if len(text) > _REFERENCE_MAX or _REFERENCE.fullmatch(text) is None:
        return False
    pieces = _BETWEEN.split(text)
    return sum(map(_odd_bits, pieces)) < BITS_MIN


def is_address(text: str) -> bool:
    """Whether a text is a reference with more than a name: a place, or a domain.

    >>> is_address("orders-db.team-a.svc"), is_address("correct-horse-battery-staple")
    (True, False)
    """
    return ("." in text or "/" in text) and is_reference(text)


def _odd_bits(piece: str) -> float:
    """The bits of a part of a name, without the bits of words."""
    if piece.isalpha() and len(piece) <= _LONG_WORD:
        letters = piece.lower()
        is_word = _VOWEL.search(letters) and not _HARSH.search(letters)
        if is_word or len(piece) <= _SHORT:
            return 0
    return sum(_DIGIT_BITS if each.isdigit() else _LETTER_BITS for each in piece)


# Abbreviations: pg, rds, mqtt.
_SHORT = 4
