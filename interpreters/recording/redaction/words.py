"""Texts within texts: base64 words, and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from fnop.effects.values import canonical
from fnop.interpreters.recording.redaction.forms import base64_of, from_base64

__all__ = ["bytes_of", "rewritten", "words_of", "words_rewritten"]

_BASE64_WORD = re.compile(r"[A-Za-z0-9+/_-]{15,}={0,2}")
# A word to compare: from a text that was too ordinary to be replaced.
_SHORT_WORD = re.compile(r"[A-Za-z0-9+/_-]{6,}={0,2}")


def words_rewritten(text: str, rewrite: Callable[[str], str]) -> str:
    """Rewrite the contents of base64 words in a text, and encode them again.

    Bytes that are not text are kept as lone surrogates (`surrogateescape`).

    >>> words_rewritten("Basic dXNlcjpwYXNzd29yZA==", str.upper)
    'Basic VVNFUjpQQVNTV09SRA=='
    """

    def again(found: re.Match[str]) -> str:
        word = found[0]
        raw = _decoded_word(word)
        inner = None if raw is None else raw.decode(errors=_LOSSLESS)
        changed = None if inner is None else rewrite(inner)
        if changed is None or changed == inner:
            return word
        encoded = base64_of(bytes_of(changed))
        if word[-1] != "=" and len(word) % 4:
            encoded = encoded.rstrip("=")
        is_standard = word.translate(_STANDARD) == word
        return encoded if is_standard else encoded.translate(_URL_SAFE)

    return _BASE64_WORD.sub(again, text)


def words_of(text: str) -> tuple[list[str], list[str]]:
    """The base64 words in a text, decoded, and the texts between them.

    Bytes that are not text are kept as lone surrogates, as in `words_rewritten`.

    >>> words_of("Basic dXNlcjpwYXNzd29yZA==")
    (['Basic ', ''], ['user:password'])
    """
    gaps, words = [""], []
    at = 0
    for found in _SHORT_WORD.finditer(text):
        raw = _decoded_word(found[0])
        if raw is not None:
            gaps[-1] += text[at : found.start()]
            words.append(raw.decode(errors=_LOSSLESS))
            gaps.append("")
            at = found.end()
    gaps[-1] += text[at:]
    return gaps, words


def _decoded_word(word: str) -> bytes | None:
    plain = word.translate(_STANDARD).rstrip("=")
    return from_base64(plain + "=" * (-len(plain) % 4))


# Bytes that are not UTF-8 become lone surrogates, and these become the bytes again.
_LOSSLESS = "surrogateescape"


def bytes_of(text: str) -> bytes:
    return text.encode(errors=_LOSSLESS)


def rewritten(value: Any, rewrite: Callable[[str], str], shortest: int) -> Any:
    """Rewrite the texts in a JSON value, and the texts encoded in them.

    Texts with fewer characters than `shortest` stay.
    """
    if isinstance(value, str):
        if len(value) < shortest:
            return value
        again = _rewritten_json(value, rewrite, shortest)
        return rewrite(words_rewritten(value, rewrite)) if again is None else again
    if isinstance(value, dict):
        return {
            name: item
            if type(item) is str and len(item) < shortest
            else rewritten(item, rewrite, shortest)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [rewritten(item, rewrite, shortest) for item in value]
    return value


# The ways in which JSON is written within texts.
_WRITERS: tuple[Callable[[Any], str], ...] = (
    lambda value: canonical(value).decode(),
    lambda value: orjson.dumps(value).decode(),
    json.dumps,
    lambda value: json.dumps(value, indent=2),
)


def _rewritten_json(
    text: str, rewrite: Callable[[str], str], shortest: int
) -> str | None:
    """A JSON text with its inner texts rewritten, and escaped again as needed.

    None for another text, and for JSON written in an unusual way.
    """
    if text[:1] not in ("{", "["):
        return None
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    written = (each for each in _WRITERS if each(value) == text)
    write = next(written, None)
    return None if write is None else write(rewritten(value, rewrite, shortest))


_STANDARD = str.maketrans("-_", "+/")
_URL_SAFE = str.maketrans("+/", "-_")
