"""Writing down what happened: each input, and the commands that followed.

The format: concatenated gzip members of at most 64 KiB of text, one canonical
JSON record per line, so that `zcat` shows it and a crash leaves a valid prefix.
The first record is the header.  Values of Secrets are replaced by keyed tokens
before they are written: equal values stay equal, and nobody can read them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable
from typing import Any, BinaryIO

from fnop.core.commands import Command
from fnop.core.inputs import Input
from fnop.core.now import Now
from fnop.core.program import Program
from fnop.core.wire import command_to_wire, input_to_wire
from fnop.effects.values import canonical

__all__ = ["FORMAT_VERSION", "Recorder", "header_of", "redacted"]

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
        "namespaces": None
        if settings.namespaces is None
        else [*settings.namespaces],
    }


class Recorder:
    """Observes a run and writes it to a file."""

    def __init__(self, file: BinaryIO, header: dict[str, Any], key: bytes) -> None:
        self._file = file
        self._key = key
        self._lines: list[bytes] = []
        self._size = 0
        self._write(header)

    def observe(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        """Write one step down."""
        record = {
            "wall": now.wall,
            "mono": now.mono,
            "input": input_to_wire(input),
            "commands": [command_to_wire(command) for command in commands],
        }
        self._write(redacted(record, self._key))

    def _write(self, record: Any) -> None:
        line = canonical(record) + b"\n"
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _BLOCK:
            self.flush()

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


def redacted(value: Any, key: bytes) -> Any:
    """The value with the data of each Secret in it replaced by tokens.

    >>> found = redacted({"kind": "Secret", "data": {"a": "eA=="}}, b"k")
    >>> found["data"]["a"] != "eA=="
    True
    """
    if isinstance(value, dict):
        if value.get("kind") == "Secret":
            value = dict(value)
            for name in ("data", "stringData"):
                if isinstance(value.get(name), dict):
                    value[name] = {
                        field: _token(item, key) for field, item in value[name].items()
                    }
        return {name: redacted(item, key) for name, item in value.items()}
    if isinstance(value, list):
        return [redacted(item, key) for item in value]
    return value


def _token(value: Any, key: bytes) -> str:
    """Valid base64, as the data of a Secret is."""
    raw = hashlib.blake2b(str(value).encode(), key=key, digest_size=12).digest()
    return base64.b64encode(b"redacted:" + raw).decode()
