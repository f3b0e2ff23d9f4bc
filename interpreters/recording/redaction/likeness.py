"""Compare present and recorded decisions in which tokens replace secrets.

A replay has tokens in the place of the run's values, so a text that it derives from
them differs, too. So a second operator, the counterpart, gets the same inputs with
other tokens. If the two decide differently, their decision is derived from a secret,
and the recorded text may differ from both. If both decide the same, it must be the
recorded decision.

Nothing here excuses a difference: results of equal values must be equal, and results of
different values must differ.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fnop.core.handlers.program.program import Program
from fnop.effects.values import canonical, same_json
from fnop.interpreters.recording.redaction import (
    LENGTH_MIN,
    MARK,
    TOKEN,
    TOKEN_LENGTH,
    Digests,
    Substitutions,
    drawn_forms,
    escapes,
    forms,
    has_token,
    is_telling,
    rewritten,
    unescaped,
    words_of,
)

__all__ = ["Likeness", "Retold"]

# Used if the counterpart has nothing to compare.
MISSING: Any = object()


# Python's repr() uses other quotes for a text with an apostrophe than for a token.
_QUOTED = re.compile(f'"({TOKEN.pattern})"')


class Retold:
    """The inputs of a recording, with some texts replaced.

    With `vary`, each token becomes another one, and so do random bytes that are a
    secret; `drawing` are the requests for them.
    """

    def __init__(
        self,
        program: Program,
        vary: Callable[[str], str] | None = None,
        drawing: Container[int] = (),
    ) -> None:
        self._digests = Digests(program)
        self._vary = vary
        self.texts = Substitutions()
        self._drawing = drawing

    def input(self, input: dict[str, Any]) -> dict[str, Any]:
        """Translate an input for the replay; an unchanged input is returned itself."""
        told = self._replace_drawn(input) if self._vary else input
        line = canonical(told)
        told = self._replace_texts(told, line)
        if has_token(line):
            told = rewritten(told, self.text, TOKEN_LENGTH)
        if told is input or told == input:
            return input
        self._digests.learn(input, told, self.texts)
        return self._replace_texts(told, canonical(told))

    def _replace_texts(self, told: dict[str, Any], line: bytes) -> dict[str, Any]:
        """Replace the texts of the recording by their counterparts, also in names."""
        texts = self.texts.found_in(line)
        if not texts:
            return told
        found: dict[str, Any] = rewritten(
            told, lambda text: self.texts.replaced(text, texts), LENGTH_MIN - 1
        )
        return found

    def command(self, command: dict[str, Any] | None) -> dict[str, Any] | None:
        """A recorded command, translated in the same way as the inputs."""
        return (
            None
            if command is None
            else self._replace_texts(command, canonical(command))
        )

    def text(self, text: str) -> str:
        """A text with other tokens, as handlers would write them."""
        vary, text = self._vary, unescaped(text)
        return text if vary is None else TOKEN.sub(lambda found: vary(found[0]), text)

    def _replace_drawn(self, input: dict[str, Any]) -> dict[str, Any]:
        if input["in"] != "Answered" or input["id"] not in self._drawing:
            return input
        drawn = (input.get("outcome") or {}).get("value")
        if not isinstance(drawn, str):
            return input
        raw = bytes.fromhex(drawn)
        others = hashlib.shake_256(raw).digest(len(raw))
        for text, instead in drawn_forms(raw, others):
            for pair in forms(text.encode(), instead):  # as in the data of a Secret
                self.texts.add(*pair)
        return {**input, "outcome": {**input["outcome"], "value": others.hex()}}


class Likeness:
    """The one-to-one correspondence of the recorded texts and the replay's texts."""

    def __init__(self, told: Retold, twins: Retold, known: Mapping[str, str]) -> None:
        self._told = told
        self._twins = twins
        self._here: dict[str, str] = {}
        self._there: dict[str, str] = {}
        # Texts of inputs so far: a text that was seen is not replaced later.
        self._seen: set[int] = set()
        # Values that tokens stand for: handlers make them themselves, or they are so
        # ordinary that copies of them are in the recording.
        self.known = dict(known)
        for token, value in known.items():
            self._learn_pair(token, value, value)
        # Whether the last difference is in something derived from a secret.
        self.is_derived = False

    def see(self, input: dict[str, Any]) -> None:
        """Take note of the texts of an input."""
        self._seen.update(map(hash, _texts(input)))

    def alike(self, recorded: Any, now: Any, counterpart: Any) -> bool:
        """Whether a decision is the recorded one.

        `counterpart` is the decision of the second operator. The whole decision is
        compared, even after a difference, to learn the values of tokens.
        """
        self.is_derived = False
        return self._is_alike(recorded, now, counterpart)

    def _is_alike(self, recorded: Any, now: Any, counterpart: Any) -> bool:
        match recorded, now:
            case dict(), dict():
                return self._are_mappings_alike(recorded, now, counterpart)
            case list(), list() if len(recorded) == len(now):
                others = counterpart if isinstance(counterpart, list) else []
                others = others if len(others) == len(now) else [MISSING] * len(now)
                return all([*map(self._is_alike, recorded, now, others)])
            case str(), str():
                found = recorded == now or self._are_texts_alike(
                    recorded, now, counterpart
                )
            case (dict() | list(), _) | (_, dict() | list()):
                found = False
            case _:
                found = same_json(recorded, now) or self._are_scalars_alike(
                    recorded, now, counterpart
                )
        return found or self._note_difference(now, counterpart)

    def _are_mappings_alike(
        self, recorded: dict[str, Any], now: dict[str, Any], counterpart: Any
    ) -> bool:
        others = counterpart if isinstance(counterpart, dict) else {}
        alike = [
            self._is_alike(recorded[key], now[key], others.get(key, MISSING))
            for key in recorded
            if key in now
        ]
        more = now.keys() - recorded.keys()
        for key in more:
            self._note_difference(now[key], others.get(key, MISSING))
        return not more and len(alike) == len(recorded) and all(alike)

    def _note_difference(self, now: Any, counterpart: Any) -> bool:
        """Return False, and note whether the difference is derived from a secret."""
        if counterpart is not MISSING:
            varied = rewritten(now, self._twins.text, TOKEN_LENGTH)
            self.is_derived |= varied != now or not same_json(varied, counterpart)
        return False

    def _are_scalars_alike(self, recorded: Any, now: Any, counterpart: Any) -> bool:
        if isinstance(recorded, str) and TOKEN.fullmatch(recorded):
            return self._are_one(recorded, canonical(now).decode(), None)
        scalar = not isinstance(counterpart, dict | list) and counterpart is not MISSING
        return scalar and not same_json(now, counterpart)

    def _are_texts_alike(self, recorded: str, now: str, counterpart: Any) -> bool:
        recorded = unescaped(recorded)
        recorded = TOKEN.sub(lambda each: self._here.get(each[0], each[0]), recorded)
        if recorded == now or _QUOTED.sub(r"'\1'", recorded) == now:
            return True
        tokens = TOKEN.findall(recorded)
        if tokens:
            parts = TOKEN.split(recorded)
            others = (
                _texts_between(parts, counterpart)
                if isinstance(counterpart, str)
                else None
            )
            if self._are_all_one(tokens, _texts_between(parts, now), others):
                return True
        tokens = TOKEN.findall(now)
        if tokens:
            others = list(map(self._twins.text, tokens))
            if self._are_all_one(
                _texts_between(TOKEN.split(now), recorded), tokens, others
            ):
                return True
        is_derived = isinstance(counterpart, str) and counterpart not in (
            now,
            self._twins.text(now),
        )
        if is_derived and self._is_derived_alike(recorded, now, counterpart):
            return True
        return self._is_encoded_alike(recorded, now)

    def _are_all_one(
        self,
        recorded: list[str] | None,
        now: list[str] | None,
        counterpart: list[str] | None,
    ) -> bool:
        if recorded is None or now is None:
            return False
        others = counterpart if counterpart is not None else [None] * len(now)
        return all(
            one == mine or self._are_one(one, mine, other)
            for one, mine, other in zip(recorded, now, others, strict=True)
        )

    def _is_derived_alike(self, recorded: str, now: str, counterpart: str) -> bool:
        """Whether a text is as recorded around a part derived from a secret."""
        start = _common_length(now, counterpart)
        end = _common_length(now[start:][::-1], counterpart[start:][::-1])
        stop = len(now) - end
        found = _texts_between([now[:start], now[stop:]], recorded)
        if found is None:
            return False
        mine, others = now[start:stop], counterpart[start : len(counterpart) - end]
        if is_telling(found[0]) and is_telling(mine):
            return self._are_one(found[0], mine, others)
        return True

    def _is_encoded_alike(self, recorded: str, now: str) -> bool:
        """Compare the base64 words in two texts by their decoded contents."""
        (gaps, ours), (other_gaps, theirs) = words_of(recorded), words_of(now)
        return (
            bool(ours)
            and gaps == other_gaps
            and all(
                one == other or self._are_texts_alike(one, other, MISSING)
                for one, other in zip(ours, theirs, strict=True)
            )
        )

    def _are_one(self, recorded: str, now: str, counterpart: str | None) -> bool:
        """Whether one text has always stood for the other; from now on it does."""
        if not (_is_text(recorded) and _is_text(now)):
            return False  # bytes of something encoded
        known = self._here.get(recorded)
        if known is not None or now in self._there:
            return known == now and self._there.get(now) == recorded
        self._here[recorded], self._there[now] = now, recorded
        if TOKEN.fullmatch(now) and not TOKEN.search(recorded):
            # A copy that was too ordinary to be hidden.
            self.known[now] = recorded
            return True
        if TOKEN.fullmatch(recorded) and not TOKEN.search(now):
            self.known[recorded] = now
        if is_telling(recorded) and hash(recorded) not in self._seen:
            self._learn_pair(recorded, now, counterpart)
        return True

    def _learn_pair(self, recorded: str, now: str, counterpart: str | None) -> None:
        for text, instead in _pairs_in_forms(recorded, now):
            self._told.texts.add(text, instead)
        for text, instead in (
            () if counterpart is None else _pairs_in_forms(recorded, counterpart)
        ):
            self._twins.texts.add(text, instead)


def _pairs_in_forms(token: str, value: str) -> Iterator[tuple[str, str]]:
    """A token and its value, in all forms.

    >>> token = "redacted-" + 24 * "0"
    >>> found = {value for _, value in _pairs_in_forms(token, "default")}
    >>> found >= {"default", "64656661756c74", "ZGVmYXVsdA==", "64:65:66:61:75:6c:74"}
    True
    """
    yield token, value
    if token.startswith(MARK):
        for escaped, instead in escapes(value, token):
            yield instead, escaped
        yield from forms(token.encode(), value)
    elif TOKEN.fullmatch(token):
        with suppress(ValueError):  # a value that is not base64
            clear = base64.b64decode(token, validate=True)
            yield from forms(clear, base64.b64decode(value, validate=True).decode())


def _is_text(text: str) -> bool:
    """Whether the text has no lone surrogates, which stand for bytes (`words_of`)."""
    return text.isascii() or _SURROGATE.search(text) is None


_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG = 4096
_EDGE = re.compile(r"[A-Za-z0-9]+$")


def _common_length(one: str, other: str) -> int:
    """The length of the common beginning of two texts, up to a whole word.

    >>> _common_length("the sum is 3f", "the sum is 3a")
    11
    """
    pairs = enumerate(zip(one, other, strict=False))
    length = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    return len(_EDGE.sub("", one[:length]))


def _texts_between(parts: list[str], text: str) -> list[str] | None:
    """The texts between the given parts of a text; None if it lacks these parts.

    >>> _texts_between(["a ", ", b ", ""], "a 1, b 2"), _texts_between(["a", "b"], "ab")
    (['1', '2'], None)
    """
    first, *middle, last = parts
    if not text.startswith(first) or not text.endswith(last):
        return None
    at, end = len(first), len(text) - len(last)
    found = []
    for part in middle:
        stop = text.find(part, at + 1, end)
        if stop < 0:
            return None
        found.append(text[at:stop])
        at = stop + len(part)
    if at >= end:
        return None
    return [*found, text[at:end]]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if LENGTH_MIN <= len(value) < _LONG:
            yield value
            if len(value) > TOKEN_LENGTH:
                yield from TOKEN.findall(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
