"""Writing down what happened: each input, and the commands that followed.

The format: concatenated gzip members of at most 64 KiB of text, one canonical
JSON record per line, so that `zcat` shows it and a crash leaves a valid prefix.
The first record is the header.  Values of Secrets are replaced by keyed tokens
before they are written: equal values stay equal, and nobody can read them.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from enum import Enum
from typing import Any, BinaryIO

from fnop.core.commands import Command, Perform
from fnop.core.inputs import Answered, Input
from fnop.core.now import Now
from fnop.core.program import Program
from fnop.core.seals import without_seals
from fnop.core.wire import command_to_wire, input_to_wire
from fnop.effects import Answer, Effect, Random
from fnop.effects.values import canonical

__all__ = ["FORMAT_VERSION", "TOKEN", "Recorder", "Redaction", "header_of"]

FORMAT_VERSION = 1
_BLOCK = 64 * 1024


def header_of(program: Program, version: str) -> dict[str, Any]:
    """The first record: what was running, and how it was set up."""
    settings = program.settings
    return {
        "fnop": version,
        "format": FORMAT_VERSION,
        "handlers": [handler.id for handler in program.handlers],
        "operator": settings.operator,
        "namespaces": None if settings.namespaces is None else [*settings.namespaces],
        "selector": settings.selector,
        "peering": None if settings.peering is None else _plain(settings.peering),
        "election": None if settings.election is None else _plain(settings.election),
    }


def _plain(value: Any) -> dict[str, Any]:
    """Who the operator was among others: what it decides depends on it."""
    found = asdict(value)
    return {k: v.value if isinstance(v, Enum) else v for k, v in found.items()}


class Recorder:
    """Observes a run and writes it to a file.

    A block is written when it is full, and at the latest with the first step
    after a second: so much can a crash lose.  Recording never hurts the run: it
    ends where it cannot go on, and `problem` tells why.
    """

    def __init__(self, file: BinaryIO, header: dict[str, Any], key: bytes) -> None:
        self._file = file
        self._redaction = Redaction(key)
        # Commands that are to be answered with random bytes which are a secret.
        self._drawing: set[int] = set()
        self._lines: list[bytes] = []
        self._size = 0
        self._flushed_at = float("-inf")
        self.problem: Exception | None = None
        self._write(canonical(header))
        self.flush()

    def observe(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        """Write one step down; what cannot be written leaves a gap, and is counted."""
        if self.problem is not None:
            return
        try:
            self._record(now, input, commands)
        except (OSError, TypeError, ValueError) as problem:
            self.problem = problem

    def _record(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        commands = tuple(commands)
        self._learn_drawn(input, commands)
        record = {
            "wall": now.wall,
            "mono": now.mono,
            "input": input_to_wire(input),
            "commands": [command_to_wire(command) for command in commands],
        }
        self._write(canonical(self._redaction.scrubbed(record)))
        if self._size >= _BLOCK or now.mono - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now.mono
            self.flush()

    def _learn_drawn(self, input: Input, commands: tuple[Command, ...]) -> None:
        """Random bytes that are a secret are one from the moment they are drawn."""
        match input:
            case Answered(id, Answer(value=str() as drawn)) if id in self._drawing:
                self._drawing.discard(id)
                self._redaction.draw(drawn)
        for command in commands:
            if isinstance(command, Perform) and _is_secret(command.effect):
                self._drawing.add(command.id)

    def _write(self, line: bytes) -> None:
        line = without_seals(line)
        self._lines.append(line + b"\n")
        self._size += len(line) + 1

    def flush(self) -> None:
        """Make everything so far readable in the file."""
        if self._lines:
            block = gzip.compress(b"".join(self._lines), compresslevel=5, mtime=0)
            self._file.write(block)
            self._file.flush()
            self._lines, self._size = [], 0

    def close(self) -> None:
        try:
            if self.problem is None:
                self.flush()
            self._file.close()
        except OSError as problem:
            self.problem = self.problem or problem


class Redaction:
    """Replaces what any Secret holds, wherever it occurs in a value from then on.

    A value is known from the first Secret that shows it, in base64 and in clear
    text; equal values get equal tokens, which nobody can read without the key.
    Names, keys and what fnop itself says stay: a Secret may hold an ordinary word.
    Records after the first replacement carry `"redacted": true`: digests in them
    were made from the values themselves.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._tokens: dict[str, str] = {}
        self._long: dict[str, str] = {}

    def scrubbed(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record without secrets."""
        for secret in _secrets(record):
            self._learn(secret)
        if not self._tokens:
            return record
        found: dict[str, Any] = self._scrub(record)
        return {**found, "redacted": True}

    def _scrub(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: item
                if name in _STRUCTURE and isinstance(item, str)
                else self._scrub(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._scrub(item) for item in value]
        if isinstance(value, str):
            return self._text(value)
        return value

    def _text(self, text: str) -> str:
        token = self._tokens.get(text)
        if token is not None:
            return token
        for value, token in self._long.items():
            if value in text:
                text = text.replace(value, token)
        return text

    def _learn(self, secret: dict[str, Any]) -> None:
        for text in _strings(secret.get("data")):
            self._add(text)
            try:
                self._add(base64.b64decode(text, validate=True).decode())
            except (binascii.Error, UnicodeDecodeError):
                continue
        for text in _strings(secret.get("stringData")):
            self._add(text)
            self._add(base64.b64encode(text.encode()).decode())
        # What `kubectl apply` keeps of a Secret is the Secret in clear text.
        annotations = (secret.get("metadata") or {}).get("annotations") or {}
        self._add(str(annotations.get(_LAST_APPLIED) or ""))

    def draw(self, drawn: str) -> None:
        """Let other bytes of the same number stand for these (both in hexadecimal)."""
        size, found = len(drawn) // 2, b""
        while len(found) < size:
            more = drawn.encode() + len(found).to_bytes(2)
            found += hashlib.blake2b(more, key=self._key, digest_size=64).digest()
        self._tokens[drawn] = self._long[drawn] = found[:size].hex()

    def _add(self, text: str) -> None:
        """A value as it stands alone, and as it stands in a JSON text."""
        if not text or text in self._tokens:
            return
        raw = hashlib.blake2b(text.encode(), key=self._key, digest_size=12).digest()
        token = base64.b64encode(_MARK + raw).decode()
        self._tokens[text] = token
        if len(text) >= _SHORT:
            self._long[text] = token
            self._long[canonical(text)[1:-1].decode()] = token


_MARK = b"redacted:"
# What a token looks like: the mark takes up whole groups of base64.
TOKEN = re.compile(rf"{base64.b64encode(_MARK).decode()}[A-Za-z0-9+/]{{16}}")

# Fields whose strings say what something is, and where: no secret is kept there.
_STRUCTURE = frozenset(
    ("in", "do", "is", "kind", "apiVersion", "name", "namespace", "uid", "resource")
) | {"resourceVersion", "version", "level", "handler", "subresource", "subject", "type"}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# A shorter value is replaced only where it is all of a string: it may be a word.
_SHORT = 6
_FLUSH_SECONDS = 1.0


def _is_secret(effect: Effect) -> bool:
    return isinstance(effect, Random) and effect.secret


def _secrets(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("kind") == "Secret":
            yield value
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, str))
