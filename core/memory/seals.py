"""Signatures of stored states, so that other writers of an object cannot forge them.

A user who may change an object may change its annotations. The user may also change its
status, if the status has no endpoint of its own. A sealed state is the same JSON text
with a keyed digest of it in front, and is accepted only with the digest. The text
contains the object's uid, and the key is derived from this operator's name. So fnop
does not accept a state that was written for another object, or by another operator.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable
from typing import Any

from fnop.effects.regexes import regex

__all__ = ["UNSIGNED", "Seal", "is_sealed", "seal_of", "without_seals"]

# Instead of a key: states without a signature are accepted, too.
UNSIGNED = "unsigned"
KEY_LENGTH_MIN = 32
_SEALED = regex(r'\{"sig":"([A-Za-z0-9_-]{43})",(.*)', re.DOTALL)
# The same within a JSON string.
_QUOTED = regex(rb'\{\\"sig\\":\\"[A-Za-z0-9_-]{43}\\",')


class Seal:
    """The keys of one operator: the first signs, any of them verifies."""

    __slots__ = ("_keys", "_takes_unsigned")

    def __init__(self, keys: tuple[bytes, ...], *, takes_unsigned: bool) -> None:
        self._keys = keys
        self._takes_unsigned = takes_unsigned

    def __repr__(self) -> str:
        return "<Seal>"

    def sealed(self, text: str) -> str:
        """The text of a state, a JSON object, with its signature."""
        return f'{{"sig":"{_signature_of(self._keys[0], text)}",{text[1:]}'

    def opens(self, text: Any) -> bool:
        """Whether a text is signed with one of the keys, or needs no signature."""
        parts = _split_seal(text)
        if parts is None:
            return self._takes_unsigned
        return any(_is_by(key, *parts) for key in self._keys)

    def is_due(self, text: Any) -> bool:
        """Whether an accepted state must still be signed with the first key."""
        if len(self._keys) == 1 and not self._takes_unsigned:
            return False
        parts = _split_seal(text)
        return parts is None or not _is_by(self._keys[0], *parts)


def _split_seal(text: Any) -> tuple[str, str] | None:
    """The signature of a sealed text, and the text without it; None if unsigned."""
    found = _SEALED.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else (found[1], "{" + found[2])


def _is_by(key: bytes, signature: str, text: str) -> bool:
    return hmac.compare_digest(_signature_of(key, text), signature)


def _signature_of(key: bytes, text: str) -> str:
    raw = hmac.digest(key, text.encode(errors="surrogatepass"), "sha256")
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def is_sealed(text: Any) -> bool:
    """Whether a text has a signature, with any key.

    >>> is_sealed('{"uid":"0","v":1}')
    False
    """
    return _split_seal(text) is not None


def seal_of(keys: Iterable[str], operator: str) -> Seal | None:
    """The seal of an operator of this name; None without keys.

    Raises `TypeError` and `ValueError`, which do not show the keys.
    """
    if isinstance(keys, str | bytes):
        raise TypeError("state_keys= takes several keys, such as (key,)")
    given = tuple(keys)
    if not all(isinstance(key, str) for key in given):
        raise TypeError("state_keys= takes keys that are texts")
    secret = [key for key in given if key != UNSIGNED]
    if any(len(key) < KEY_LENGTH_MIN for key in secret):
        raise ValueError(
            f"a state key has at least {KEY_LENGTH_MIN} characters; make one with: "
            "openssl rand -hex 32"
        )
    if given[:1] == (UNSIGNED,):
        raise ValueError(
            f"the first state key signs; {UNSIGNED!r} is for after it, so that states "
            "without a signature are believed, too"
        )
    if not secret:
        return None
    # Derived from the name: other operators' signatures with the same key differ.
    name = f"fnop.dev/{operator}".encode()
    made = tuple(hmac.digest(key.encode(), name, "sha256") for key in secret)
    return Seal(made, takes_unsigned=UNSIGNED in given)


def without_seals(line: bytes) -> bytes:
    r"""Return a line of JSON without the signatures of the states in it.

    So a recorded run can be replayed without the keys.

    >>> state = Seal((b"k",), takes_unsigned=False).sealed('{"uid":"0","v":1}')
    >>> import orjson
    >>> without_seals(orjson.dumps([state]))
    b'["{\\"uid\\":\\"0\\",\\"v\\":1}"]'
    """
    return _QUOTED.sub(b"{", line) if b'{\\"sig\\"' in line else line
