"""Many texts and their replacements, found in a text all at once."""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from typing import Any

from fnop.interpreters.recording.redaction.content import Content
from fnop.interpreters.recording.redaction.forms import in_json
from fnop.interpreters.recording.redaction.words import bytes_of, words_rewritten

__all__ = ["Substitutions", "squeeze"]


class Substitutions:
    """Texts with their replacements; the search costs the same for any number of texts.

    For a long text, its beginning is kept, with its length and its digest. Each text
    has `_GRAM` or more characters after each of its first `_GRAM` characters. So one of
    these pieces stands at each multiple of `_GRAM` within it.
    """

    def __init__(self) -> None:
        # By the beginning of a text: its length, its digest, and its replacement.
        self._known: dict[str, tuple[tuple[int, bytes, str], ...]] = {}
        # Pieces of the texts as they stand in lines, and the texts' beginnings.
        self._pieces: dict[bytes, str | tuple[str, ...]] = {}
        self._known_pieces: set[bytes] = set()
        # By the beginning of an encoded text: the beginning of the text that it
        # encodes.
        self._encodes: dict[str, str] = {}
        self._count = 0

    def add_wrapped(self, text: str, instead: str) -> None:
        """Let `instead` also replace a text that is broken into lines elsewhere."""
        squeezed = squeeze(text)
        if squeezed != text:
            self.add(squeezed, instead)

    def add(self, text: str, instead: str, of: str | None = None) -> None:
        """Let `instead` replace a text; a text that is too short is ignored.

        `of` is the text that it encodes. If an encoded text is found, the text around
        it may contain `of` once it is decoded.
        """
        if text == instead or len(text.encode()) < 2 * _GRAM - 1:
            return
        head, known = text[:_HEAD], (len(text), _digest_of_text(text))
        if of is not None and of[:_HEAD] in self._known:
            self._encodes[head] = of[:_HEAD]
        others = self._known.get(head, ())
        if any(each[:2] == known for each in others):
            return
        self._count += 1
        self._known[head] = tuple(sorted((*others, (*known, instead)), reverse=True))
        if others:
            return
        raw = in_json(head).encode()
        for start in range(_GRAM):
            piece = raw[start : start + _GRAM]
            same = self._pieces.get(piece)
            heads = (same,) if isinstance(same, str) else same
            self._pieces[piece] = head if heads is None else (*heads, head)
            self._known_pieces.add(piece)

    def __len__(self) -> int:
        return self._count

    def found_in(self, line: bytes) -> list[str]:
        """The beginnings of texts that may occur in a line, the longest first.

        This includes texts that are broken into several lines within the line.
        """
        if not self._pieces:
            return []
        hits = self._heads_in_line(line)
        if _WRAP in line:
            hits |= self._heads_in_line(_SPACES.sub(b"", line))
        hits |= {self._encodes[each] for each in hits & self._encodes.keys()}
        return sorted(hits, key=lambda head: self._known[head][0][0], reverse=True)

    def _heads_in_line(self, line: bytes) -> set[str]:
        cut = _CUTTER.iter_unpack(line.ljust(-(-len(line) // _CUT) * _CUT))
        hits: set[str] = set()
        for piece in self._known_pieces.intersection(chain.from_iterable(cut)):
            heads = self._pieces[piece]
            hits.update((heads,) if isinstance(heads, str) else heads)
        return hits

    def applied(self, value: Any, heads: Sequence[str]) -> Any:
        """A record with these texts replaced, except in naming fields."""
        return Content(lambda text: self.replaced(text, heads)).record(value)

    def replaced(self, text: str, heads: Sequence[str]) -> str:
        """A text with these texts replaced, also if they are encoded."""
        # First texts in several lines, then encoded texts: otherwise a part might be
        # replaced.
        if heads and _WRAPPED.search(text):
            for head in heads:
                if head in text and _TEXT_SPACES.search(head):
                    text = self._without(text, head)
                text = self._replace_wrapped(text, head)
        text = words_rewritten(text, lambda inner: self.replaced(inner, heads))
        for head in heads:
            if head in text:
                text = self._without(text, head)
        return text

    def _replace_wrapped(self, text: str, head: str) -> str:
        """A text in which texts broken into lines, at any width, are replaced."""
        squeezed = _Squeezed(text)
        parts, done, at = [], 0, squeezed.text.find(head)
        while at >= 0:
            length, instead = self._longest_text_at(squeezed.text, at, head)
            start, end = squeezed.span(at, length)
            if start >= done and _TEXT_SPACES.search(text, start, end):
                as_it_is = self._longest_text_at(text, start, head)
                if as_it_is[0] >= end - start:  # with a line break at its end
                    end, instead = start + as_it_is[0], as_it_is[1]
                parts += [text[done:start], instead]
                done = end
            at = squeezed.text.find(head, at + max(1, length))
        return "".join((*parts, text[done:]))

    def _without(self, text: str, head: str) -> str:
        at = text.find(head)
        while at >= 0:
            length, instead = self._longest_text_at(text, at, head)
            text = text[:at] + instead + text[at + length :]
            at = text.find(head, at + max(1, len(instead)))
        return text

    def _longest_text_at(self, text: str, at: int, head: str) -> tuple[int, str]:
        """The longest known text at this position, and its replacement."""
        sums: dict[int, bytes] = {}
        for length, digest, instead in self._known[head]:
            if length not in sums:
                sums[length] = _digest_of_text(text[at : at + length])
            if sums[length] == digest:
                return length, instead
        return 0, ""


# Spaces and line breaks, also in JSON texts, and in JSON texts within these.
_SPACE_PATTERN = r"(?:\s|\\+[nrt])+"
_SPACES = re.compile(_SPACE_PATTERN.encode())
_TEXT_SPACES = re.compile(_SPACE_PATTERN)
_WRAP, _WRAPPED = b"\\n", re.compile(r"\n|\\n")


def squeeze(text: str) -> str:
    r"""A text without its spaces and line breaks.

    >>> squeeze("correct\n  horse"), squeeze(r"correct\r\nhorse")
    ('correcthorse', 'correcthorse')
    """
    return _TEXT_SPACES.sub("", text)


class _Squeezed:
    """A text without its spaces, with the original places of its parts.

    >>> _Squeezed("a b\\n  cd").text, _Squeezed("a b\\n  cd").span(1, 2)
    ('abcd', (2, 7))
    """

    def __init__(self, text: str) -> None:
        # The positions of the spaces, and the number of spaces removed up to there.
        self._places, self._removed = [-1], [0]
        parts, at = [], 0
        for found in _TEXT_SPACES.finditer(text):
            parts.append(text[at : found.start()])
            self._places.append(found.start() - self._removed[-1])
            self._removed.append(self._removed[-1] + len(found[0]))
            at = found.end()
        self.text = "".join((*parts, text[at:]))

    def span(self, at: int, length: int) -> tuple[int, int]:
        """The original place of a part, without the spaces around it."""
        if not length:
            return 0, 0
        return self._place_in_text(at), self._place_in_text(at + length - 1) + 1

    def _place_in_text(self, at: int) -> int:
        return at + self._removed[bisect_right(self._places, at) - 1]


def _digest_of_text(text: str) -> bytes:
    return hashlib.blake2b(bytes_of(text), digest_size=16).digest()


_HEAD = 64
_GRAM = 6
# Cuts a text into pieces, many at a time.
_CUTTER = struct.Struct(f"{_GRAM}s" * 64)
_CUT = _CUTTER.size
