"""The masking of secrets in a plan: it shows that they change, never their values.

The same rules as for recordings decide which values are secret
(`fnop.interpreters.recording.redaction`). Their tokens distinguish equal values from
others. Here a word stands for each, so that a plan only shows whether a value has
changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Any

from fnop.effects.values import same_json
from fnop.interpreters.recording.redaction import (
    MARK,
    TOKEN,
    Redaction,
    is_secret_kind,
    unescaped,
    words_rewritten,
)

__all__ = ["CHANGED_SECRET", "SECRET", "Masking"]

Json = dict[str, Any]
SECRET, CHANGED_SECRET = "(secret)", "(another secret)"
# These objects are long, and hold no values.
_DEFINITION = "CustomResourceDefinition"


class Masking:
    """Masks secrets: the values at secret places, and copies of the learned ones.

    Without a redaction everything is shown as it is.
    """

    def __init__(self, redaction: Redaction | None) -> None:
        self._redaction = redaction

    def learn(self, objects: Iterable[Json | None]) -> None:
        """Learn the secrets in objects: copies of them are masked everywhere."""
        if self._redaction is None:
            return
        for each in objects:
            if each is not None and each.get("kind") != _DEFINITION:
                self._redaction.veiled(each)

    def shown(
        self, before: Json | None, after: Json | None
    ) -> tuple[Json | None, Json | None]:
        """The two states of an object, masked.

        Keys and shapes stay. Equal values stay equal, different ones stay different.
        """
        if self._redaction is None:
            return before, after
        old, new = self._object_with_tokens(before), self._object_with_tokens(after)
        told: tuple[Json | None, Json | None] = _pair_in_words(before, after, old, new)
        return told

    def text(self, text: str) -> str:
        """A sentence with the copies of secrets masked."""
        return (
            text
            if self._redaction is None
            else _text_in_words(self._redaction.veiled(text))
        )

    def _object_with_tokens(self, body: Json | None) -> Json | None:
        """The object with tokens for its secrets.

        The annotations of a Secret get tokens, too: kubectl, and operators, keep whole
        objects in them.
        """
        if body is None or self._redaction is None:
            return body
        found: Json = self._redaction.veiled(body)
        metadata = found.get("metadata") or {}
        notes = metadata.get("annotations")
        if not is_secret_kind(body) or not isinstance(notes, dict):
            return found
        hidden = {name: _token_for(str(each)) for name, each in notes.items()}
        return {**found, "metadata": {**metadata, "annotations": hidden}}


def _token_for(text: str) -> str:
    """A token for a text that must not be shown either."""
    return MARK + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _pair_in_words(was: Any, now: Any, old: Any, new: Any) -> tuple[Any, Any]:
    """Two values with words for their tokens; `was` and `now` are the real values.

    A value may be at the place of a secret in only one of them, such as a variable that
    is renamed.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys((*old, *new))
        pairs = {each: _pair_at(each, was, now, old, new) for each in keys}
        return {key: pairs[key][0] for key in old}, {key: pairs[key][1] for key in new}
    if isinstance(old, list) and isinstance(new, list):
        longest = range(max(len(old), len(new)))
        found = [_pair_at(each, was, now, old, new) for each in longest]
        return (
            [each[0] for each in found[: len(old)]],
            [each[1] for each in found[: len(new)]],
        )
    is_same = same_json(was, now)
    one, other = _value_in_words(old), _value_in_words(new, old)
    if is_same and one != other:
        return SECRET, SECRET
    is_hidden = isinstance(one, str) and one == other and not is_same
    return one, CHANGED_SECRET if is_hidden else other


def _pair_at(place: Any, *values: Any) -> tuple[Any, Any]:
    was, now, old, new = (_value_at(each, place) for each in values)
    return _pair_in_words(was, now, old, new)


def _value_at(value: Any, place: Any) -> Any:
    if isinstance(value, dict):
        return value.get(place)
    return value[place] if isinstance(value, list) and place < len(value) else None


def _value_in_words(value: Any, former: Any = None) -> Any:
    """A value with words for its tokens; `former` is the one before it."""
    if isinstance(value, dict):
        return {key: _value_in_words(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_value_in_words(each) for each in value]
    if not isinstance(value, str):
        return value
    return _text_in_words(value, _tokens_in(former) if isinstance(former, str) else ())


def _text_in_words(text: str, former: Collection[str] = ()) -> str:
    """A text with words for its tokens; `former` are the tokens before the change.

    >>> one, two = MARK + "0" * 24, MARK + "1" * 24
    >>> _text_in_words(f"a:{one}"), _text_in_words(f"a:{one}", [one])
    ('a:(secret)', 'a:(secret)')
    >>> _text_in_words(f"a:{two}", [one])
    'a:(another secret)'
    """

    def word(found: re.Match[str]) -> str:
        return CHANGED_SECRET if former and found[0] not in former else SECRET

    def clear(text: str) -> str:
        return TOKEN.sub(word, unescaped(text))

    return words_rewritten(clear(text), clear)


def _tokens_in(text: str) -> set[str]:
    """The tokens in a text, also in words that are encoded.

    >>> _tokens_in("Basic " + "dTpyZWRhY3RlZC0wMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=")
    {'redacted-000000000000000000000000'}
    """
    found: set[str] = set()

    def note(text: str) -> str:
        found.update(TOKEN.findall(unescaped(text)))
        return text

    words_rewritten(note(text), note)
    return found
