"""The tokens that stand in recordings in the place of secrets, in all their forms.

`fnop.interpreters.redaction` writes them.  A token is `redacted-` with 24 hexadecimal
digits; where the secret was encoded, so is its token.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

__all__ = ["MARK", "TOKEN", "plain"]

MARK = "redacted-"
"""The beginning of each token: its length is one of whole groups of base64."""

_DIGITS = 24
_RAW = MARK.encode()
# In base32 a digit has five bits: of the last one of the mark only a part is known.
_IN_BASE32 = base64.b32encode(_RAW).decode()[:14]
_IN_BASE64 = base64.b64encode(_RAW).decode()
_IN_UTF16 = base64.b64encode(MARK.encode("utf-16-le")).decode()
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")


def _forms() -> Iterator[tuple[str, Callable[[str], str]]]:
    """The forms: the pattern of each, and how it is decoded."""
    yield rf"{MARK}[0-9a-f]{{{_DIGITS}}}", str
    yield rf"{_IN_BASE64}[A-Za-z0-9+/]{{32}}", _from_base64
    yield rf"{_IN_BASE32}[A-Z2-7]{{39}}", _from_base32
    yield rf"{_IN_UTF16}[A-Za-z0-9+/]{{64}}", _from_utf16
    for digit, digits in ("x", "0-9a-f"), ("X", "0-9A-F"):
        mark, rest = [f"{each:02{digit}}" for each in _RAW], rf"[{digits}]{{2}}"
        yield rf"{''.join(mark)}(?:{rest}){{{_DIGITS}}}", _from_hex
        yield rf"{':'.join(mark)}(?::{rest}){{{_DIGITS}}}", _from_hex
        yield rf"%{'%'.join(mark)}(?:%{rest}){{{_DIGITS}}}", unquote
        escapes = "".join(rf"\\+u00{each}" for each in mark)
        yield rf"{escapes}(?:\\+u00{rest}){{{_DIGITS}}}", _from_escapes


def _from_base64(text: str) -> str:
    return base64.b64decode(text).decode("ascii", "replace")


def _from_base32(text: str) -> str:
    return base64.b32decode(f"{text}===").decode("ascii", "replace")


def _from_utf16(text: str) -> str:
    return base64.b64decode(text).decode("utf-16-le", "replace")


def _from_hex(text: str) -> str:
    return bytes.fromhex(text.replace(":", "")).decode("ascii", "replace")


def _from_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


_DECODED = [(re.compile(pattern), decode) for pattern, decode in _forms()]
TOKEN = re.compile("|".join(pattern.pattern for pattern, _ in _DECODED))


def plain(token: str) -> str:
    """A token in clear text, whatever form it has.

    >>> token = "redacted-0123456789abcdef01234567"
    >>> plain(token.encode().hex()) == plain(token) == token
    True
    >>> plain(base64.b32encode(token.encode()).decode().rstrip("=")) == token
    True
    """
    return next(
        decode(token) for pattern, decode in _DECODED if pattern.fullmatch(token)
    )
