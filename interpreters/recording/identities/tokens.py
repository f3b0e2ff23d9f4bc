"""The tokens that replace secrets in recordings, in all their forms.

`fnop.interpreters.recording.redaction` writes them. A token is `redacted-` with 24
hexadecimal digits. If the secret was encoded, its token is encoded in the same way.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from fnop.effects import Random

__all__ = [
    "MARK",
    "TOKEN",
    "another_token",
    "draws_secret",
    "plain",
    "replaced_token",
]

MARK = "redacted-"
"""The beginning of each token: its length is one of whole groups of base64."""

_DIGITS = 24
_RAW = MARK.encode()
# In base32 a digit has five bits, so only a part of the mark's last digit is known.
_IN_BASE32 = base64.b32encode(_RAW).decode()[:14]
_IN_BASE64 = base64.b64encode(_RAW).decode()
_IN_UTF16 = base64.b64encode(MARK.encode("utf-16-le")).decode()
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")


class _Form(Struct, frozen=True):
    """A form of tokens: its pattern, and how it is decoded and encoded."""

    pattern: str
    decode: Callable[[str], str]
    encode: Callable[[str], str]


def _token_forms() -> Iterator[_Form]:
    yield _Form(rf"{MARK}[0-9a-f]{{{_DIGITS}}}", str, str)
    yield _Form(rf"{_IN_BASE64}[A-Za-z0-9+/]{{32}}", _from_base64, _to_base64)
    yield _Form(rf"{_IN_BASE32}[A-Z2-7]{{39}}", _from_base32, _to_base32)
    yield _Form(rf"{_IN_UTF16}[A-Za-z0-9+/]{{64}}", _from_utf16, _to_utf16)
    for digit, digits in ("x", "[0-9a-f]{2}"), ("X", "[0-9A-F]{2}"):
        yield _digit_form("", "", digit, digits, _from_hex)
        yield _digit_form("", ":", digit, digits, _from_hex)
        yield _digit_form("%", "%", digit, digits, unquote)
        yield _digit_form(r"\u00", r"\u00", digit, digits, _from_escapes)


def _digit_form(
    first: str, between: str, digit: str, digits: str, decode: Callable[[str], str]
) -> _Form:
    """The form with two hexadecimal digits per byte, and something before each byte."""

    def encode(text: str) -> str:
        return first + between.join(f"{each:02{digit}}" for each in text.encode())

    # A backslash may belong to a text within a text.
    mark, rest = encode(MARK).replace("\\", r"\\+"), between.replace("\\", r"\\+")
    return _Form(rf"{mark}(?:{rest}{digits}){{{_DIGITS}}}", decode, encode)


def _to_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _to_base32(text: str) -> str:
    return base64.b32encode(text.encode()).decode().rstrip("=")


def _to_utf16(text: str) -> str:
    return base64.b64encode(text.encode("utf-16-le")).decode()


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


_FORMS = [(re.compile(each.pattern), each) for each in _token_forms()]
TOKEN = re.compile("|".join(each.pattern for _, each in _FORMS))


def _form_of(token: str) -> _Form:
    return next(form for pattern, form in _FORMS if pattern.fullmatch(token))


def plain(token: str) -> str:
    """A token of any form as clear text.

    >>> token = "redacted-0123456789abcdef01234567"
    >>> plain(token.encode().hex()) == plain(token) == token
    True
    >>> plain(base64.b32encode(token.encode()).decode().rstrip("=")) == token
    True
    """
    return _form_of(token).decode(token)


def another_token(token: str) -> str:
    """Another token, which looks different and is longer, in the same encoding.

    >>> token = "redacted-0123456789abcdef01234567"
    >>> another_token(token)
    'concealed-910020e3ce5f5f1ce91ef6372ed48620097610'
    >>> bytes.fromhex(another_token(token.encode().hex())).decode()
    'concealed-910020e3ce5f5f1ce91ef6372ed48620097610'
    """
    form = _form_of(token)
    digest = hashlib.blake2b(form.decode(token).encode(), digest_size=19)
    return form.encode(f"concealed-{digest.hexdigest()}")


def replaced_token(token: str, text: str) -> str:
    """A text in the encoding of the token whose place it takes.

    >>> token = "redacted-0123456789abcdef01234567"
    >>> replaced_token(token, "a"), replaced_token(token.encode().hex(), "a")
    ('a', '61')
    """
    return _form_of(token).encode(text)


def draws_secret(effect: Mapping[str, Any]) -> bool:
    """Whether an effect asks for random bytes that are a secret."""
    return effect.get("is") == Random.__name__ and bool(effect.get("secret"))
