"""What a plan shows of secrets: that they change, never their values.

What is a secret is decided as for recordings (`fnop.interpreters.redaction`).  Their
tokens tell equal values from others; here a word stands for each, so that a plan says
nothing about a value but whether it is another one than before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Any

from fnop.effects.values import same_json
from fnop.interpreters.redaction import (
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
# Their objects are long, and hold no values.
_DEFINITION = "CustomResourceDefinition"


class Masking:
    """Masks secrets: what is at the place of one, and copies of what it has learned.

    Without a redaction everything is shown as it is.
    """

    def __init__(self, redaction: Redaction | None) -> None:
        self._redaction = redaction

    def learn(self, objects: Iterable[Json | None]) -> None:
        """Take note of the secrets in objects: copies of them are masked everywhere."""
        if self._redaction is None:
            return
        for each in objects:
            if each is not None and each.get("kind") != _DEFINITION:
                self._redaction.veiled(each)

    def shown(
        self, before: Json | None, after: Json | None
    ) -> tuple[Json | None, Json | None]:
        """The two states of an object, masked.

        Keys and shapes stay. What is equal in both stays equal, what differs differs.
        """
        if self._redaction is None:
            return before, after
        old, new = self._veiled(before), self._veiled(after)
        return _beside(None, before, None, old), _beside(before, after, old, new)

    def text(self, text: str) -> str:
        """A sentence with the copies of secrets masked."""
        return text if self._redaction is None else _told(self._redaction.veiled(text))

    def _veiled(self, body: Json | None) -> Json | None:
        """The object with tokens for its secrets.

        Also for the annotations of a Secret: kubectl, and operators, keep whole objects
        in them.
        """
        if body is None or self._redaction is None:
            return body
        found: Json = self._redaction.veiled(body)
        metadata = found.get("metadata") or {}
        notes = metadata.get("annotations")
        if not is_secret_kind(body) or not isinstance(notes, dict):
            return found
        hidden = {name: _stand_in(str(each)) for name, each in notes.items()}
        return {**found, "metadata": {**metadata, "annotations": hidden}}


def _stand_in(text: str) -> str:
    """A token for a text, of which nothing is shown either."""
    return MARK + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _beside(was: Any, now: Any, old: Any, new: Any) -> Any:
    """The new value with words for its tokens, beside the old one.

    `was` and `now` are the same two values as they really are.
    """
    if isinstance(new, dict):
        return {
            key: _beside(_at(was, key), _at(now, key), _at(old, key), each)
            for key, each in new.items()
        }
    if isinstance(new, list):
        return [
            _beside(_at(was, place), _at(now, place), _at(old, place), each)
            for place, each in enumerate(new)
        ]
    if not isinstance(new, str):
        return new
    if not isinstance(old, str):
        return _told(new)
    text = _told(new, _tokens(old))
    is_hidden = text == _told(old) and not same_json(was, now)
    return CHANGED_SECRET if is_hidden else text


def _at(value: Any, place: Any) -> Any:
    if isinstance(value, dict):
        return value.get(place)
    if isinstance(value, list) and place < len(value):
        return value[place]
    return None


def _told(text: str, former: Collection[str] = ()) -> str:
    """A text with words for its tokens; `former` are those that were there before.

    >>> one, two = MARK + "0" * 24, MARK + "1" * 24
    >>> _told(f"a:{one}"), _told(f"a:{two}", [one]), _told(f"a:{one}", [one])
    ('a:(secret)', 'a:(another secret)', 'a:(secret)')
    """

    def word(found: re.Match[str]) -> str:
        return CHANGED_SECRET if former and found[0] not in former else SECRET

    def clear(text: str) -> str:
        return TOKEN.sub(word, unescaped(text))

    return words_rewritten(clear(text), clear)


def _tokens(text: str) -> set[str]:
    """The tokens in a text, also in words that are encoded.

    >>> _tokens("Basic " + "dTpyZWRhY3RlZC0wMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=")
    {'redacted-000000000000000000000000'}
    """
    found: set[str] = set()

    def note(text: str) -> str:
        found.update(TOKEN.findall(unescaped(text)))
        return text

    words_rewritten(note(text), note)
    return found
