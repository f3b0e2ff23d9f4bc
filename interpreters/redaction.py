"""Redaction of secrets in recordings: keyed tokens stand in their place.

What is a secret is decided by its place: the data of Secrets, fields with names such
as `password`, and the fields that a user lists.  A copy of such a value elsewhere, in
clear text or encoded, is replaced only where the value is long and random enough
(`is_telling`): a Secret may hold `default`, or one letter.  Names, kinds, uids,
finalizers and the keys of mappings are never changed.

Equal values get equal tokens, and nobody can read them without the key.  The digests
that the core makes of redacted objects are replaced by those of what is recorded: a
replay computes these.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import json
import math
import re
import struct
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from operator import is_not
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, quote_plus

import orjson

from fnop.core.children.restoring import (
    applied_digests,
    recorded_digest,
    sent_digests,
)
from fnop.core.handlers.program import Program
from fnop.core.history.tokens import MARK, TOKEN
from fnop.core.history.volatile import UID
from fnop.core.memory.observation import Observation, see
from fnop.core.values.body import Body
from fnop.core.values.diff import Path, parse_field, path_at
from fnop.effects.values import canonical

__all__ = [
    "BITS_MIN",
    "LENGTH_MIN",
    "MARK",
    "TOKEN",
    "TOKEN_LENGTH",
    "Digests",
    "Draft",
    "Redaction",
    "Substitutions",
    "drawn_forms",
    "draws_secret",
    "escapes",
    "forms",
    "has_token",
    "is_secret_kind",
    "is_sensitive_name",
    "is_telling",
    "rewritten",
    "unescaped",
    "words_of",
    "words_rewritten",
]

# ------------------------------------------------------------ what gives a secret away

LENGTH_MIN = 12
BITS_MIN = 40.0
_WORD_BITS, _LETTER_BITS, _DIGIT_BITS, _SIGN_BITS, _JOINT_BITS = 12, 4.7, 3.3, 5, 1
_WORD_LENGTH = 10
_PIECES = re.compile(
    rb"(?P<word>[A-Z]?[a-z]+|[A-Z]+)|(?P<digits>[0-9]+)|(?P<joints>[-._/:@ ]+)"
    rb"|(?P<signs>[^-A-Za-z0-9._/:@ ]+)"
)


def is_telling(value: bytes | str) -> bool:
    """Whether a value that is found elsewhere is a copy, and no coincidence.

    It has at least 12 characters, and 40 bits by this count: 12 for a word of up to
    ten letters (4.7 a letter in a short one, and for each letter more in a long one),
    3.3 a digit, 1 for `-._/:@` and space, 5 for other signs; but never more than the
    frequencies of its characters allow.

    >>> [is_telling(each) for each in ("default", "LoadBalancer", "a" * 40)]
    [False, False, False]
    >>> is_telling("9f86d081884c7d65"), is_telling("correct horse battery staple")
    (True, True)
    """
    raw = value.encode() if isinstance(value, str) else value
    if len(raw) < LENGTH_MIN:
        return False
    raw = raw[:_JUDGED]
    counted = sum(_bits(found) for found in _PIECES.finditer(raw))
    return min(counted, _frequency_bits(raw)) >= BITS_MIN


# More does not make a value less of a secret.
_JUDGED = 256


def _bits(piece: re.Match[bytes]) -> float:
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


# --------------------------------------------------------------------------- tokens

TOKEN_LENGTH = 33
_ID_BYTES = 12


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _text_of(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def unescaped(text: str) -> str:
    """A text with its tokens as they are where nothing has to be escaped.

    >>> unescaped(r"redacted%2D00, redacted\u002d11")
    'redacted-00, redacted-11'
    """
    for mark in _ESCAPES:
        if mark in text:
            text = text.replace(mark, MARK)
    return text


def _ascii_in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


# The ways to escape a value, and the mark of its token for each.  The marks are
# escaped as well: a reader of the text gets the token itself.
_ESCAPES: dict[str, Callable[[str], str]] = {
    "redacted%2D": lambda text: quote(text, safe=""),
    "redacted%2d": quote,
    "redact%65d-": quote_plus,
    "redacted&#45;": html.escape,
    r"redacted\x2d": lambda text: repr(text)[1:-1],
    r"redacted\u002d": lambda text: _in_json(text),
    r"redacted\u002D": _ascii_in_json,
    r"redacted\\u002d": lambda text: _in_json(_in_json(text)),
    r"redacted\\u002D": lambda text: _in_json(_ascii_in_json(text)),
    r"redacted\\\\u002d": lambda text: _in_json(_in_json(_in_json(text))),
    r"redacted\\\\u002D": lambda text: _in_json(_in_json(_ascii_in_json(text))),
}


def escapes(value: str, token: str) -> Iterator[tuple[str, str]]:
    """The escaped forms of a value, with those of its token, where they differ."""
    for mark, escape in _ESCAPES.items():
        if escape(value) != value:
            yield escape(value), token.replace(MARK, mark)


def has_token(line: bytes) -> bool:
    """Whether a line may hold a token, also within encoded texts."""
    return _MARKS.search(line) is not None


def _in_json(text: str) -> str:
    return canonical(text)[1:-1].decode()


def forms(value: bytes, token: str) -> Iterator[tuple[str, str]]:
    """The texts in which a value is found, each with what takes its place."""
    text, stand_in = _text_of(value), token.encode()
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


# Bytes in hexadecimal: by themselves, by colons, and percent-encoded one and all.
_HEXADECIMAL: tuple[Callable[[bytes], str], ...] = (
    bytes.hex,
    lambda raw: raw.hex(":"),
    lambda raw: "".join(f"%{each:02x}" for each in raw),
)
# Characters, each of them escaped, and in UTF-16, as PowerShell takes its commands.
_CHARACTERS: tuple[Callable[[str], str], ...] = (
    lambda text: "".join(f"\\u{ord(each):04x}" for each in text),
    lambda text: "".join(f"\\u{ord(each):04X}" for each in text),
    lambda text: _base64(text.encode("utf-16-le")).rstrip("="),
)


def _parts(value: bytes) -> Iterator[str]:
    """The parts of a secret that could be used alone, such as a password in a URL."""
    text = _text_of(value) or ""
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
_LINE = 64


def _inner_base64(value: bytes) -> Iterator[str]:
    """The base64 forms of a value within a longer text, by its offset in that."""
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + value)
        for form in (whole, whole.translate(bytes.maketrans(b"+/", b"-_"))):
            # The first group and the last one depend on what stands around it.
            yield form[4 if offset else 0 : (offset + len(value)) // 3 * 4].decode()


_MARKS = re.compile(
    "|".join(
        map(
            re.escape,
            (
                *(MARK, MARK.encode().hex(), MARK.encode().hex().upper()),
                *map(_in_json, _ESCAPES),
                *_inner_base64(MARK.encode()),
            ),
        )
    ).encode()
)

# ------------------------------------------------------- finding many texts in a text


class Substitutions:
    """Texts with what takes their places; finding them costs the same for any number.

    Of a long text its beginning is kept, with its length and its digest.  Each text has
    `_GRAM` or more characters after each of its first `_GRAM` ones: so one of these
    pieces stands at each multiple of `_GRAM` within it.
    """

    def __init__(self) -> None:
        # By the beginning of a text: its length, its digest, and what stands for it.
        self._known: dict[str, tuple[tuple[int, bytes, str], ...]] = {}
        # Pieces of the texts as they stand in lines, and the texts' beginnings.
        self._pieces: dict[bytes, str | tuple[str, ...]] = {}
        self._known_pieces: set[bytes] = set()
        # By the beginning of an encoded text: the beginning of what it encodes.
        self._encodes: dict[str, str] = {}
        self._count = 0

    def add_wrapped(self, text: str, instead: str) -> None:
        """Let `instead` also stand for a text that is broken into lines elsewhere."""
        squeezed = squeeze(text)
        if squeezed != text:
            self.add(squeezed, instead)

    def add(self, text: str, instead: str, of: str | None = None) -> None:
        """Let `instead` stand for a text; too short a text is refused in silence.

        `of` is what the text encodes: where it is found, what it is a part of may have
        this within it, once it is decoded.
        """
        if text == instead or len(text.encode()) < 2 * _GRAM - 1:
            return
        head, known = text[:_HEAD], (len(text), _sum(text))
        if of is not None and of[:_HEAD] in self._known:
            self._encodes[head] = of[:_HEAD]
        others = self._known.get(head, ())
        if any(each[:2] == known for each in others):
            return
        self._count += 1
        self._known[head] = tuple(sorted((*others, (*known, instead)), reverse=True))
        if others:
            return
        raw = _in_json(head).encode()
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

        Also where the line has them in several lines.
        """
        if not self._pieces:
            return []
        hits = self._heads_in(line)
        if _WRAP in line:
            hits |= self._heads_in(_SPACES.sub(b"", line))
        hits |= {self._encodes[each] for each in hits & self._encodes.keys()}
        return sorted(hits, key=lambda head: self._known[head][0][0], reverse=True)

    def _heads_in(self, line: bytes) -> set[str]:
        cut = _CUTTER.iter_unpack(line.ljust(-(-len(line) // _CUT) * _CUT))
        hits: set[str] = set()
        for piece in self._known_pieces.intersection(chain.from_iterable(cut)):
            heads = self._pieces[piece]
            hits.update((heads,) if isinstance(heads, str) else heads)
        return hits

    def applied(self, value: Any, heads: Sequence[str]) -> Any:
        """A record with these of the texts replaced, but in what names things."""
        return _Content(lambda text: self.replaced(text, heads)).record(value)

    def replaced(self, text: str, heads: Sequence[str]) -> str:
        """A text with these of the texts replaced, also where they are encoded."""
        # First in several lines, then encoded: otherwise a part might be replaced.
        if heads and _WRAPPED.search(text):
            for head in heads:
                if head in text and _TEXT_SPACES.search(head):
                    text = self._without(text, head)
                text = self._without_wrapped(text, head)
        text = words_rewritten(text, lambda inner: self.replaced(inner, heads))
        for head in heads:
            if head in text:
                text = self._without(text, head)
        return text

    def _without_wrapped(self, text: str, head: str) -> str:
        """A text without what is broken into lines in it, at any width."""
        squeezed = _Squeezed(text)
        parts, done, at = [], 0, squeezed.text.find(head)
        while at >= 0:
            length, instead = self._at(squeezed.text, at, head)
            start, end = squeezed.span(at, length)
            if start >= done and _TEXT_SPACES.search(text, start, end):
                as_it_is = self._at(text, start, head)
                if as_it_is[0] >= end - start:  # with a line break at its end
                    end, instead = start + as_it_is[0], as_it_is[1]
                parts += [text[done:start], instead]
                done = end
            at = squeezed.text.find(head, at + max(1, length))
        return "".join((*parts, text[done:]))

    def _without(self, text: str, head: str) -> str:
        at = text.find(head)
        while at >= 0:
            length, instead = self._at(text, at, head)
            text = text[:at] + instead + text[at + length :]
            at = text.find(head, at + max(1, len(instead)))
        return text

    def _at(self, text: str, at: int, head: str) -> tuple[int, str]:
        """The longest text that stands there, and what takes its place."""
        sums: dict[int, bytes] = {}
        for length, digest, instead in self._known[head]:
            if length not in sums:
                sums[length] = _sum(text[at : at + length])
            if sums[length] == digest:
                return length, instead
        return 0, ""


# Spaces and line breaks, also those in JSON texts, and in JSON texts within these.
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
    """A text without its spaces, with the places that its parts had.

    >>> _Squeezed("a b\\n  cd").text, _Squeezed("a b\\n  cd").span(1, 2)
    ('abcd', (2, 7))
    """

    def __init__(self, text: str) -> None:
        # By the spaces: where they were, and how many there were up to there.
        self._places, self._removed = [-1], [0]
        parts, at = [], 0
        for found in _TEXT_SPACES.finditer(text):
            parts.append(text[at : found.start()])
            self._places.append(found.start() - self._removed[-1])
            self._removed.append(self._removed[-1] + len(found[0]))
            at = found.end()
        self.text = "".join((*parts, text[at:]))

    def span(self, at: int, length: int) -> tuple[int, int]:
        """The place of a part, without the spaces around it."""
        if not length:
            return 0, 0
        return self._place(at), self._place(at + length - 1) + 1

    def _place(self, at: int) -> int:
        return at + self._removed[bisect_right(self._places, at) - 1]


def _sum(text: str) -> bytes:
    return hashlib.blake2b(_bytes_of(text), digest_size=16).digest()


_HEAD = 64
_GRAM = 6
# Cuts a text into pieces, many at a time.
_CUTTER = struct.Struct(f"{_GRAM}s" * 64)
_CUT = _CUTTER.size

_BASE64_WORD = re.compile(r"[A-Za-z0-9+/_-]{15,}={0,2}")
# One that is to be compared: of a text that was too ordinary to be replaced.
_SHORT_WORD = re.compile(r"[A-Za-z0-9+/_-]{6,}={0,2}")


def words_rewritten(text: str, rewrite: Callable[[str], str]) -> str:
    """Rewrite the contents of base64 words in a text, and encode them again.

    Bytes that are no text are kept by lone surrogates (`surrogateescape`).

    >>> words_rewritten("Basic dXNlcjpwYXNzd29yZA==", str.upper)
    'Basic VVNFUjpQQVNTV09SRA=='
    """

    def again(found: re.Match[str]) -> str:
        word = found[0]
        raw = _decoded(word)
        inner = None if raw is None else raw.decode(errors=_LOSSLESS)
        changed = None if inner is None else rewrite(inner)
        if changed is None or changed == inner:
            return word
        encoded = _base64(_bytes_of(changed))
        if word[-1] != "=" and len(word) % 4:
            encoded = encoded.rstrip("=")
        is_standard = word.translate(_STANDARD) == word
        return encoded if is_standard else encoded.translate(_URL_SAFE)

    return _BASE64_WORD.sub(again, text)


def words_of(text: str) -> tuple[list[str], list[str]]:
    """The base64 words in a text, decoded, and the texts between them.

    Bytes that are no text are kept by lone surrogates, as for `words_rewritten`.

    >>> words_of("Basic dXNlcjpwYXNzd29yZA==")
    (['Basic ', ''], ['user:password'])
    """
    gaps, words = [""], []
    at = 0
    for found in _SHORT_WORD.finditer(text):
        raw = _decoded(found[0])
        if raw is not None:
            gaps[-1] += text[at : found.start()]
            words.append(raw.decode(errors=_LOSSLESS))
            gaps.append("")
            at = found.end()
    gaps[-1] += text[at:]
    return gaps, words


def _decoded(word: str) -> bytes | None:
    plain = word.translate(_STANDARD).rstrip("=")
    return _from_base64(plain + "=" * (-len(plain) % 4))


# Bytes that are no UTF-8 become lone surrogates, and these the bytes again.
_LOSSLESS = "surrogateescape"


def _bytes_of(text: str) -> bytes:
    return text.encode(errors=_LOSSLESS)


def rewritten(value: Any, rewrite: Callable[[str], str], shortest: int) -> Any:
    """Rewrite the texts in a JSON value, and those that are encoded in them.

    Those with fewer characters than `shortest` stay.
    """
    if isinstance(value, str):
        if len(value) < shortest:
            return value
        again = _json_rewritten(value, rewrite, shortest)
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


def _json_rewritten(
    text: str, rewrite: Callable[[str], str], shortest: int
) -> str | None:
    """A text that is JSON with its texts rewritten, and escaped as they have to be.

    None for another text, and for JSON that is written in a way of its own.
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


# ---------------------------------------------------------------- what is never changed

# Fields of inputs, commands and effects that say what something is, and where.
_ENVELOPE = frozenset(
    ("in", "do", "is", "resource", "namespace", "name", "uid", "subject", "handler")
) | {"version", "continue_token", "level", "type", "subresource", "reason", "function"}
_NESTED_ENVELOPES = frozenset(("effect", "outcome", "target"))
_IDENTITY = frozenset(
    ("name", "generateName", "namespace", "uid", "resourceVersion", "finalizers")
) | {"ownerReferences", "managedFields", "selfLink", "creationTimestamp"}
_NAMING = re.compile(r"/(kind|apiVersion|metadata/(" + "|".join(_IDENTITY) + r"))(/|$)")


class _Content:
    """Rewrites the texts of a record that are neither keys nor name anything."""

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        self._rewrite = rewrite

    def record(self, record: Any) -> Any:
        """An input, a command, or the record of a step."""
        if "commands" in record:
            return {
                **record,
                "input": self.record(record["input"]),
                "commands": [self.record(each) for each in record["commands"]],
            }
        return {
            name: item
            if name in _ENVELOPE and isinstance(item, str)
            else self.record(item)
            if name in _NESTED_ENVELOPES and isinstance(item, dict)
            else self.value(item)
            for name, item in record.items()
        }

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._rewrite(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if _is_naming(value):
            return value
        is_object = "metadata" in value or "apiVersion" in value
        return {
            name: item
            if is_object and name in ("kind", "apiVersion")
            else self._metadata(item)
            if name == "metadata" and isinstance(item, dict)
            else self.value(item)
            for name, item in value.items()
        }

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        return {
            name: item if name in _IDENTITY else self.value(item)
            for name, item in metadata.items()
        }


def _is_naming(value: dict[str, Any]) -> bool:
    """Whether it is an operation of a JSON patch on what names an object."""
    path = value.get("path")
    return "op" in value and isinstance(path, str) and bool(_NAMING.match(path))


# -------------------------------------------------------------- secrets by their place

_HELD = ("data", "stringData", "binaryData")
_HELD_PATH = re.compile(r"/(data|stringData|binaryData)(/|$)")
_ALWAYS = re.compile(
    r"(password|passwd|passphrase|pwd|token|api[-_.]?key|private[-_.]?key"
    r"|secret[-_.]?access[-_.]?key|client[-_.]?secret|authorization|bearer)s?$",
    re.IGNORECASE,
)
# Such a field may also hold the name of a Secret, or of a key in one.
_SOMETIMES = re.compile(
    r"(secret|credential|access[-_.]?key|secret[-_.]?key)s?$", re.IGNORECASE
)
_OBJECT_NAME = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,251}[A-Za-z0-9])?")
# The spaces between the tokens of JSON, and their quotes, also of one that is a text
# within a text.
_SPACE = rb"(?:\s|\\+[nrt])*"
_QUOTE = rb'\\*"'
_COLON = _QUOTE + _SPACE + b":" + _SPACE
_NAMES = (
    *(rb"password", rb"passwd", rb"passphrase", rb"pwd", rb"token", rb"bearer"),
    *(rb"api[-_.]?key", rb"private[-_.]?key", rb"access[-_.]?key", rb"secret[-_.]?key"),
    *(rb"authorization", rb"secret", rb"credential"),
)
# The clues to the place of a secret: what belongs to a Secret; the packed values of a
# state; a sensitive field with a text or with a list; a variable of such a name.  Each
# pattern begins with the text beside it, which is looked for first, in small letters.
_CLUES = (
    (b'"secret', re.compile(rb'"secret(?:list)?' + _QUOTE)),
    (b'"was', re.compile(b'"was' + _COLON + _QUOTE)),
    *(
        (
            re.match(b"[a-z]+", name)[0],  # type: ignore[index]
            re.compile(name + b"s?" + _COLON + b"(?:" + _QUOTE + rb"|\[)"),
        )
        for name in _NAMES
    ),
)
_VARIABLE = re.compile(
    b'"name' + _COLON + _QUOTE + b'[^"]*(?:' + b"|".join(_NAMES) + b")s?" + _QUOTE
)
_UNPACKED_MAX = 16 * 1024 * 1024


def is_secret_kind(value: dict[str, Any]) -> bool:
    return value.get("kind") in ("Secret", "SecretList")


class _Places:
    """Rewrites the texts at the places of secrets, and nothing else.

    What has none of them is answered as the same value.
    """

    def __init__(
        self,
        hide: Callable[[Any, bool], Any],
        listed: tuple[Path, ...],
        uids: Container[str],
    ) -> None:
        self._hide = hide
        self._uids = uids  # an object's uid is no secret, whatever it is used as
        self._listed = listed

    def walk(self, value: Any, path: Path, *, secret: bool) -> Any:
        """`secret` tells that it is a part of a Secret, or meant for one."""
        if isinstance(value, dict):
            return self._mapping(value, path, secret=secret or is_secret_kind(value))
        if isinstance(value, list):
            found = [self.walk(item, path, secret=secret) for item in value]
            return found if _differs(found, value) else value
        if isinstance(value, str) and value[:1] in ("{", "["):
            return self._nested(value, path, secret=secret)
        return value

    def _mapping(self, value: dict[str, Any], path: Path, *, secret: bool) -> Any:
        found = value
        for name, item in value.items():
            if not (secret or self._listed) and _is_plain(name, item):
                continue
            new = self._field(value, name, item, path, secret=secret)
            if new is not item:
                found = dict(value) if found is value else found
                found[name] = new
        return found

    def _field(
        self, parent: dict[str, Any], name: str, item: Any, path: Path, *, secret: bool
    ) -> Any:
        if secret and self._is_held(parent, name):
            encoded = "stringData" not in (name if name != "value" else parent["path"])
            return self._hidden(item, encoded=encoded)
        if name in _ENVELOPE and ("in" in parent or "do" in parent):
            return item
        if name == "seen" and "uid" in parent:
            return item  # the digests of a state, by the names of fields
        if path[-1:] == ("metadata",) and name in _IDENTITY:
            return item
        here = (*path, *path_at(name)) if name[:1] == "/" else (*path, name)
        is_listed = bool(self._listed) and self._is_listed(here)
        if is_listed or (
            self._is_sensitive(parent, name, item) and not self._is_of_uids(item)
        ):
            return self._hidden(item, encoded=False)
        if name == "was" and isinstance(item, str) and "seen" in parent:
            return self._packed(item, path, secret=secret)
        return self.walk(item, here, secret=secret)

    def _is_of_uids(self, item: Any) -> bool:
        """Whether a text is an object's uid, with nothing telling beside it.

        Such as a token by which a call is made once: `f"{uid}/orders"`.
        """
        if not isinstance(item, str):
            return False
        rest = UID.sub(lambda uid: "" if uid[0] in self._uids else uid[0], item)
        return len(rest) < len(item) and not is_telling(rest)

    @staticmethod
    def _is_held(parent: dict[str, Any], name: str) -> bool:
        """Whether a field of a Secret is, or goes into, what the Secret holds."""
        if name == "value" and isinstance(parent.get("path"), str):
            return bool(_HELD_PATH.match(parent["path"]))
        if name in _HELD:
            return isinstance(parent[name], dict | str)
        return bool(_HELD_PATH.match(name))

    def _is_listed(self, path: Path) -> bool:
        return any(path[-len(each) :] == each for each in self._listed)

    @staticmethod
    def _is_sensitive(parent: dict[str, Any], name: str, item: Any) -> bool:
        if isinstance(item, dict):
            return False
        if name == "value" and isinstance(parent.get("name"), str):
            name = parent["name"]  # a variable of a container's environment
        if isinstance(item, list):
            return bool(item) and all(
                isinstance(each, str) and _is_sensitive_text(name, each)
                for each in item
            )
        return isinstance(item, str) and _is_sensitive_text(name, item)

    def _hidden(self, value: Any, *, encoded: bool) -> Any:
        if isinstance(value, dict):
            return {
                name: self._hidden(item, encoded=encoded)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._hidden(item, encoded=encoded) for item in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        return self._hide(value, encoded)

    def _nested(self, text: str, path: Path, *, secret: bool) -> str:
        """A JSON text, such as the state, or what `kubectl apply` keeps."""
        try:
            value = orjson.loads(text)
        except ValueError:
            return text
        found = self.walk(value, path, secret=secret)
        if found is value:
            return text
        is_sorted = text.encode() == canonical(value)
        again = (canonical(found) if is_sorted else orjson.dumps(found)).decode()
        return again + text[len(text.rstrip()) :]

    def _packed(self, text: str, path: Path, *, secret: bool) -> str:
        """The values of a state, compressed (`last_seen.write_stored`)."""
        raw = _from_base64(text)
        try:
            inflater = zlib.decompressobj()
            value = orjson.loads(inflater.decompress(raw or b"", _UNPACKED_MAX))
        except (zlib.error, ValueError):
            return text
        found = self.walk(value, path, secret=secret)
        return text if found is value else _base64(zlib.compress(canonical(found), 6))


def _is_plain(name: str, item: Any) -> bool:
    """Whether a field outside of Secrets is no secret, and holds none, at a glance."""
    kind = type(item)
    if kind is str:
        is_text = item[:1] not in ("{", "[") and name not in ("value", "was")
        return is_text and is_sensitive_name(name) is None
    return kind is not dict and kind is not list


def _is_sensitive_text(name: str, text: str) -> bool:
    always = is_sensitive_name(name)
    if always is None:
        return False
    return always or is_telling(text) or _OBJECT_NAME.fullmatch(text) is None


@lru_cache(4096)
def is_sensitive_name(name: str) -> bool | None:
    """Whether such a field holds a secret; False for sometimes, None for never."""
    if _ALWAYS.search(name):
        return True
    return False if _SOMETIMES.search(name) else None


def _differs(some: Iterable[Any], others: Iterable[Any]) -> bool:
    return any(map(is_not, some, others))


# ---------------------------------------------------------------------------- digests


class Digests:
    """The new digests of objects whose contents a redaction changes."""

    def __init__(self, program: Program) -> None:
        scopes = {(), *(each.field for each in program.handlers)}
        settings = program.settings
        self._observation = Observation(
            tuple(sorted(scopes)),
            ignored=settings.ignored,
            own=settings.places.paths,
            hidden=settings.hidden,
        )

    def learn(
        self, before: dict[str, Any], after: dict[str, Any], into: Substitutions
    ) -> None:
        """Take note of what the digests of an input's objects have become."""
        were, are = _objects_in(before), _objects_in(after)
        for one, other in zip(were, are, strict=True):
            if one is other:
                continue
            was = see(Body(one), self._observation).digests
            is_ = see(Body(other), self._observation).digests
            for scope, digest in was.items():
                into.add(_bare(digest), _bare(is_[scope]))
            _learn_applied(one, other, into)

    def learn_sent(
        self,
        before: Iterable[dict[str, Any]],
        after: Iterable[dict[str, Any]],
        into: Substitutions,
    ) -> None:
        """Take note of what the digests of manifests in commands have become."""
        for one, other in zip(before, after, strict=True):
            if one is not other and one["do"] == "Perform":
                was, is_ = one["effect"].get("manifest"), other["effect"]
                if isinstance(was, dict):
                    _learn_applied(was, is_["manifest"], into, sent_digests)


def _learn_applied(
    before: dict[str, Any],
    after: dict[str, Any],
    into: Substitutions,
    digests: Callable[[dict[str, Any]], Sequence[str]] = applied_digests,
) -> None:
    """Take note of what the digests of a child's manifest have become.

    The author may write the same in another form the next time, such as `data` that is
    copied from the child for the `stringData` that has made it.
    """
    if recorded_digest(before):
        for was, is_ in zip(digests(before), digests(after), strict=False):
            into.add(was, is_)


def _bare(digest: str) -> str:
    """A digest without its version, as several texts contain it."""
    return digest.partition(":")[2]


def _objects_in(input: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that an input shows, in an order that redaction does not change."""
    outcome = input.get("outcome") or {}
    found = [input.get("body"), outcome.get("object"), outcome.get("value")]
    if isinstance(found[2], dict):
        found.append(found[2].get("items"))
    listed = [item for each in found if isinstance(each, list) for item in each]
    return [
        each
        for each in (*found, *listed)
        if isinstance(each, dict) and isinstance(each.get("metadata"), dict)
    ]


# -------------------------------------------------------------------------- the whole


def _listed(field: str) -> Path:
    """The path of a field that a user lists; annotations have dots in their keys.

    >>> _listed("spec.url"), _listed("metadata.annotations.example.com/key")
    (('spec', 'url'), ('metadata', 'annotations', 'example.com/key'))
    """
    path = parse_field(field)
    if not path:
        raise ValueError(f"{field!r} names no field; name one such as spec.url")
    if path[:2] in (("metadata", "annotations"), ("metadata", "labels")):
        return (*path[:2], ".".join(path[2:])) if len(path) > 2 else path
    return path


class Draft(Protocol):
    """A record that is to be written: its texts, and all of it where it is needed."""

    @property
    def is_concerned(self) -> bool:
        """Whether it may have the place of a secret, or a known copy of one."""

    @property
    def texts(self) -> Iterable[bytes]:
        """All of its text."""

    def whole(self) -> dict[str, Any]:
        """The record, made anew."""


class _Whole(NamedTuple):
    """A record of which nothing is known."""

    record: dict[str, Any]
    is_concerned: bool = True
    texts: Iterable[bytes] = ()

    def whole(self) -> dict[str, Any]:
        return self.record


class Redaction:
    """Replaces secrets in the records of one run, in their order.

    A value is known from the first place of a secret that shows it.  Records in which
    anything was replaced carry `"redacted": true`.
    """

    def __init__(
        self, key: bytes, program: Program, fields: Iterable[str] = ()
    ) -> None:
        self._key = key
        self._digests = Digests(program)
        listed = tuple(map(_listed, fields))
        self._uids: set[str] = set()
        self._places = _Places(self._hide, listed, self._uids)
        self._listed_hints = tuple(each[-1].lower().encode() for each in listed)
        # The tokens of all values so far, and the telling ones in all their forms.
        self._known: set[str] = set()
        self._copies = Substitutions()
        # The digests of objects that have no place of a secret.
        self._plain: set[bytes] = set()
        # Requests about Secrets, and for random bytes that are a secret.
        self._about_secrets: set[int] = set()
        self._drawing: set[int] = set()
        # Drawn bytes in each form that a field may hold, with the others that stand in.
        self._draws: dict[str, str] = {}

    def know_uid(self, uid: str) -> None:
        """Take note of an object's uid, which is no secret wherever it is a token."""
        self._uids.add(uid)

    def concerns(self, record: dict[str, Any], news: bytes) -> bool:
        """Whether a record may hold a secret; `news` is what was not written before.

        The object of its input may be left out of the record.
        """
        input = record["input"]
        if input["in"] == "Answered":
            number = input["id"]
            if number in self._about_secrets or number in self._drawing:
                return True
        for each in record["commands"]:
            if each["do"] == "Perform" and (
                _is_about_secrets(each) or draws_secret(each)
            ):
                self._remember((each,))
                return True
        return self.is_hinted(news) or bool(self._copies.found_in(news))

    def scrubbed(self, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The records without secrets; a record without any is the same one.

        What a later one of them shows to be a secret is one in all.  Mappings keep
        their order: a handler may show one.
        """
        found = self.redacted([_Whole(each) for each in records])
        return [
            record if redacted is None else redacted
            for record, redacted in zip(records, found, strict=True)
        ]

    def redacted(self, drafts: Sequence[Draft]) -> list[dict[str, Any] | None]:
        """As `scrubbed`, the records of drafts; None where all stays."""
        known = len(self._copies)
        concerned = [
            self._placed(each) if each.is_concerned else None for each in drafts
        ]
        is_more_known = len(self._copies) > known
        return [
            self._without_copies(*found)
            if found is not None
            else self._later_found(draft)
            if is_more_known
            else None
            for draft, found in zip(drafts, concerned, strict=True)
        ]

    def _placed(self, draft: Draft) -> tuple[dict[str, Any], dict[str, Any], bytes]:
        """A record, the same without what is at the places of secrets, and its text."""
        record = draft.whole()
        line = orjson.dumps(record)
        return record, self._of_places(record, line), line

    def _later_found(self, draft: Draft) -> dict[str, Any] | None:
        """A record with copies of secrets that were not known when it was looked at."""
        if not any(map(self._copies.found_in, draft.texts)):
            return None
        record = draft.whole()
        return self._without_copies(record, record, orjson.dumps(record))

    def veiled(self, value: Any) -> Any:
        """A JSON value that is no record, without the secrets that are known by now."""
        line = orjson.dumps(value)
        if self.is_hinted(line):
            value = self._places.walk(value, (), secret=False)
            line = orjson.dumps(value)
        copies = self._copies.found_in(line)
        return self._copies.applied({"": value}, copies)[""] if copies else value

    def _without_copies(
        self, record: dict[str, Any], found: dict[str, Any], line: bytes
    ) -> dict[str, Any] | None:
        placed = line if found is record else orjson.dumps(found)
        copies = self._copies.found_in(placed)
        if copies:
            found = self._copies.applied(found, copies)
        if found is record or orjson.dumps(found) == line:
            return None
        return {**self._with_digests(record, found), "redacted": True}

    def _of_places(self, record: dict[str, Any], line: bytes) -> dict[str, Any]:
        input, secret = record["input"], False
        if input["in"] == "Answered":
            input = self._drawn(input)
            secret = input["id"] in self._about_secrets
            self._about_secrets.discard(input["id"])
        commands = record["commands"]
        self._remember(commands)
        if secret or self.is_hinted(line) or any(map(_is_about_secrets, commands)):
            input = (
                self._places.walk(input, (), secret=secret)
                if secret
                else self._seen(input)
            )
            commands = [
                self._places.walk(each, (), secret=is_about)
                if (is_about := _is_about_secrets(each))
                or self.is_hinted(orjson.dumps(each))
                else each
                for each in commands
            ]
        if input is record["input"] and not _differs(commands, record["commands"]):
            return record
        return {**record, "input": input, "commands": commands}

    def _seen(self, input: dict[str, Any]) -> dict[str, Any]:
        """An input without secrets; one that was seen to have none is not searched.

        The answer to a write comes again as a watch event.
        """
        shown = input.get("body") or input.get("outcome")
        text = orjson.dumps(shown)
        if not self.is_hinted(text):
            return input
        sum_ = hashlib.blake2b(text, digest_size=16).digest()
        if sum_ in self._plain:
            return input
        found: dict[str, Any] = self._places.walk(input, (), secret=False)
        if found is input:
            if len(self._plain) >= _PLAIN_MAX:
                self._plain.clear()
            self._plain.add(sum_)
        return found

    def is_hinted(self, text: bytes) -> bool:
        """Whether a text may have the place of a secret."""
        lower = text.lower()
        if any(each in lower for each in self._listed_hints):
            return True
        is_named = False
        for literal, pattern in _CLUES:
            if literal in lower:
                if pattern.search(lower):
                    return True
                is_named = True
        return is_named and _VARIABLE.search(lower) is not None

    def _remember(self, commands: Iterable[dict[str, Any]]) -> None:
        for each in commands:
            if _is_about_secrets(each):
                self._about_secrets.add(each["id"])
            if draws_secret(each):
                self._drawing.add(each["id"])

    def _drawn(self, answered: dict[str, Any]) -> dict[str, Any]:
        """Random bytes that are a secret are one from the moment they are drawn.

        Others of the same number stand for them, in each form.
        """
        if answered["id"] not in self._drawing:
            return answered
        self._drawing.discard(answered["id"])
        outcome = answered["outcome"]
        drawn = outcome.get("value")
        if not isinstance(drawn, str):
            return answered
        raw = bytes.fromhex(drawn)
        others = self._others(raw)
        for text, instead in drawn_forms(raw, others):
            self._draw(text, instead)
        return {**answered, "outcome": {**outcome, "value": others.hex()}}

    def _draw(self, text: str, instead: str) -> None:
        if text not in self._draws:
            self._draws[text] = instead
            self._know(text.encode(), instead)

    def _others(self, raw: bytes) -> bytes:
        found = b""
        while len(found) < len(raw):
            more = raw + len(found).to_bytes(2)
            found += hashlib.blake2b(more, key=self._key, digest_size=64).digest()
        return found[: len(raw)]

    def _hide(self, value: Any, encoded: bool) -> str:
        """The token of a value at the place of a secret."""
        text = value if isinstance(value, str) else canonical(value).decode()
        if text in self._draws:
            return self._draws[text]
        raw = _from_base64(text) if encoded else None
        if raw is None:
            return self._token(text.encode())
        return _base64(self._token(raw).encode())

    def _token(self, value: bytes) -> str:
        drawn = self._draws.get(_text_of(value) or "")
        if drawn is not None:
            return drawn
        token = self._named(value)
        if token not in self._known:
            self._known.add(token)
            self._know(value, token)
            for part in _parts(value):
                self._know_part(part)
        return token

    def _know_part(self, part: str) -> None:
        token = self._named(part.encode())
        self._copies.add(part, token)
        if len(part) < _LINE:  # one line of many is hardly encoded by itself
            self._know_inner(part.encode(), token)

    def _named(self, value: bytes) -> str:
        digest = hashlib.blake2b(value, key=self._key, digest_size=_ID_BYTES)
        return MARK + digest.hexdigest()

    def _know(self, value: bytes, token: str) -> None:
        if is_telling(value):
            for form, instead in forms(value, token):
                self._copies.add(form, instead)
                self._copies.add_wrapped(form, instead)
            self._know_inner(value, token)

    def _know_inner(self, value: bytes, token: str) -> None:
        """Know its base64 within that of a longer text, also where that is cut off.

        Its whole groups are replaced by whole groups, so that it stays base64.
        """
        text, instead = _text_of(value), _base64(token.encode())
        for form in _inner_base64(value):
            self._copies.add(form, instead, of=text)

    def _with_digests(
        self, record: dict[str, Any], found: dict[str, Any]
    ) -> dict[str, Any]:
        """Replace the digests of former contents by those of the recorded contents."""
        known = len(self._copies)
        self._digests.learn(record["input"], found["input"], self._copies)
        self._digests.learn_sent(record["commands"], found["commands"], self._copies)
        if len(self._copies) == known:
            return found
        copies = self._copies.found_in(canonical(found))
        redacted: dict[str, Any] = (
            self._copies.applied(found, copies) if copies else found
        )
        return redacted


_PLAIN_MAX = 65_536


def drawn_forms(raw: bytes, others: bytes) -> Iterator[tuple[str, str]]:
    """The texts that are made of drawn bytes, each with that of the others."""
    for form in (bytes.hex, _base64, _url_base64):
        text, instead = form(raw), form(others)
        for end in ("", "="):  # padded, and not
            yield text.rstrip(end), instead.rstrip(end)


def _url_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()


def _is_about_secrets(command: dict[str, Any]) -> bool:
    resource = command.get("resource")
    return (
        command["do"] == "Perform"
        and isinstance(resource, str)
        and resource.startswith("secrets.")
        and resource.endswith(".")
    )


def draws_secret(command: dict[str, Any]) -> bool:
    """Whether it asks for random bytes that are a secret."""
    effect = command.get("effect") or {}
    is_drawn = command["do"] == "Perform" and effect.get("is") == "Random"
    return is_drawn and bool(effect.get("secret"))
