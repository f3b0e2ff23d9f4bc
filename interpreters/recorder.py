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
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from fnop.core.commands import Command
from fnop.core.inputs import Input
from fnop.core.now import Now
from fnop.core.program import Program
from fnop.core.wire import command_to_wire, input_to_wire
from fnop.effects.values import canonical

__all__ = ["FORMAT_VERSION", "Recorder", "Redaction", "header_of"]

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
    }


class Recorder:
    """Observes a run and writes it to a file.

    A block is written when it is full, and at the latest with the first step
    after a second: so much can a crash lose.
    """

    def __init__(self, file: BinaryIO, header: dict[str, Any], key: bytes) -> None:
        self._file = file
        self._redaction = Redaction(key)
        self._lines: list[bytes] = []
        self._size = 0
        self._flushed_at = float("-inf")
        self._write(canonical(header))
        self.flush()

    def observe(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        """Write one step down."""
        record = {
            "wall": now.wall,
            "mono": now.mono,
            "input": input_to_wire(input),
            "commands": [command_to_wire(command) for command in commands],
        }
        self._write(self._redaction.line(record))
        if self._size >= _BLOCK or now.mono - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now.mono
            self.flush()

    def _write(self, line: bytes) -> None:
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
        self.flush()
        self._file.close()


class Redaction:
    """Replaces what any Secret holds, wherever it occurs from then on.

    A value is known from the first Secret that shows it, in base64 and in clear
    text; equal values get equal tokens, which nobody can read without the key.
    Records after the first replacement carry `"redacted": true`: digests in them
    were made from the values themselves.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._tokens: dict[bytes, bytes] = {}

    def line(self, record: dict[str, Any]) -> bytes:
        """The canonical line of a record, without secrets."""
        for secret in _secrets(record):
            self._learn(secret)
        if not self._tokens:
            return canonical(record)
        line = canonical({**record, "redacted": True})
        for value, token in self._tokens.items():
            if value in line:
                line = line.replace(value, token)
        return line

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

    def _add(self, text: str) -> None:
        """A value as it stands in JSON, and in JSON text within JSON."""
        if not text:
            return
        raw = hashlib.blake2b(text.encode(), key=self._key, digest_size=12).digest()
        token = base64.b64encode(b"redacted:" + raw)
        once = canonical(text)[1:-1]
        quote = b'"' if len(text) < _SHORT else b""
        for inner in (once, canonical(once.decode())[1:-1]):
            self._tokens.setdefault(quote + inner + quote, quote + token + quote)


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# A shorter value is replaced only where it is all of a string: it may be a word.
_SHORT = 6
_FLUSH_SECONDS = 1.0


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
