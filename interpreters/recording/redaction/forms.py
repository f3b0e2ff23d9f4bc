"""The forms in which a secret is found, each with the same form of its token.

A value may be escaped, encoded, or a part of a longer text that is encoded.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from urllib.parse import quote, quote_plus

from fnop.effects.values import canonical
from fnop.interpreters.recording.identities.tokens import MARK
from fnop.interpreters.recording.redaction.telling import is_telling

__all__ = [
    "LINE_LENGTH",
    "TOKEN_LENGTH",
    "base64_of",
    "drawn_forms",
    "escapes",
    "forms",
    "from_base64",
    "has_token",
    "in_json",
    "inner_base64",
    "parts_of",
    "text_of",
    "unescaped",
]

TOKEN_LENGTH = 33


def base64_of(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def text_of(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def unescaped(text: str) -> str:
    """A text with its tokens in the form that they have without escaping.

    >>> unescaped(r"redacted%2D00, redacted\u002d11")
    'redacted-00, redacted-11'
    """
    for mark in _ESCAPES:
        if mark in text:
            text = text.replace(mark, MARK)
    return text


def _ascii_in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


# The ways to escape a value, and the mark of its token for each. The marks are escaped
# as well: a reader of the text gets the token itself.
_ESCAPES: dict[str, Callable[[str], str]] = {
    "redacted%2D": lambda text: quote(text, safe=""),
    "redacted%2d": quote,
    "redact%65d-": quote_plus,
    "redacted&#45;": html.escape,
    r"redacted\x2d": lambda text: repr(text)[1:-1],
    r"redacted\u002d": lambda text: in_json(text),
    r"redacted\u002D": _ascii_in_json,
    r"redacted\\u002d": lambda text: in_json(in_json(text)),
    r"redacted\\u002D": lambda text: in_json(_ascii_in_json(text)),
    r"redacted\\\\u002d": lambda text: in_json(in_json(in_json(text))),
    r"redacted\\\\u002D": lambda text: in_json(in_json(_ascii_in_json(text))),
}


def escapes(value: str, token: str) -> Iterator[tuple[str, str]]:
    """The escaped forms of a value and of its token, if they differ from the value."""
    for mark, escape in _ESCAPES.items():
        if escape(value) != value:
            yield escape(value), token.replace(MARK, mark)


def has_token(line: bytes) -> bool:
    """Whether a line may contain a token, also within encoded texts."""
    return _MARKS.search(line) is not None


def in_json(text: str) -> str:
    return canonical(text)[1:-1].decode()


def forms(value: bytes, token: str) -> Iterator[tuple[str, str]]:
    """The texts in which a value is found, each with its replacement."""
    text, stand_in = text_of(value), token.encode()
    if text is not None:
        yield text, token
        yield from escapes(text, token)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(value).decode(), encode(stand_in).decode()
        yield encode(value).decode().rstrip("="), encode(stand_in).decode().rstrip("=")
    for write in _HEXADECIMAL:
        yield write(value), write(stand_in)
        yield write(value).upper(), write(stand_in).upper()
    yield _base32(value), _base32(stand_in)
    if text is not None:
        for write_text in _CHARACTERS:
            yield write_text(text), write_text(token)


def _base32(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=")


# Bytes in hexadecimal: alone, with colons, and each byte percent-encoded.
_HEXADECIMAL: tuple[Callable[[bytes], str], ...] = (
    bytes.hex,
    lambda raw: raw.hex(":"),
    lambda raw: "".join(f"%{each:02x}" for each in raw),
)
# Characters, each of them escaped; and in UTF-16, as PowerShell takes its commands.
_CHARACTERS: tuple[Callable[[str], str], ...] = (
    lambda text: "".join(f"\\u{ord(each):04x}" for each in text),
    lambda text: "".join(f"\\u{ord(each):04X}" for each in text),
    lambda text: base64_of(text.encode("utf-16-le")).rstrip("="),
)


def parts_of(value: bytes) -> Iterator[str]:
    """The parts of a secret that could be used alone, such as a password in a URL."""
    text = text_of(value) or ""
    if "BEGIN CERTIFICATE" in text:
        return  # certificates are public, and they have many lines
    found = {each for each in _SEPARATORS.split(text) if len(each) < len(text)}
    telling = filter(is_telling, sorted(found, key=len, reverse=True))
    yield from islice(
        (each for each in telling if not _HOST.fullmatch(each)), _PARTS_MAX
    )


_SEPARATORS = re.compile(r"[\s\"'\\:=@,;&?/{}()<>|\[\]]+")
_HOST = re.compile(r"[-a-z0-9]+(\.[-a-z0-9]+)+")
_PARTS_MAX = 32
LINE_LENGTH = 64


def inner_base64(value: bytes) -> Iterator[str]:
    """The base64 forms of a value within a longer text, by its offset in that text."""
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + value)
        for form in (whole, whole.translate(bytes.maketrans(b"+/", b"-_"))):
            # The first and the last group depend on the text around it.
            yield form[4 if offset else 0 : (offset + len(value)) // 3 * 4].decode()


_MARKS = re.compile(
    "|".join(
        map(
            re.escape,
            (
                *(MARK, MARK.encode().hex(), MARK.encode().hex().upper()),
                *map(in_json, _ESCAPES),
                *inner_base64(MARK.encode()),
            ),
        )
    ).encode()
)


def drawn_forms(raw: bytes, others: bytes) -> Iterator[tuple[str, str]]:
    """The texts derived from drawn bytes, each with the same form of the others."""
    for form in (bytes.hex, base64_of, _url_base64):
        text, instead = form(raw), form(others)
        for end in ("", "="):  # with padding, and without
            yield text.rstrip(end), instead.rstrip(end)


def _url_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()
