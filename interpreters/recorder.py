"""Writing down what happened: each input, and the commands that followed.

The format: concatenated gzip members of at most 64 KiB of text, one JSON record
per line, so that `zcat` shows it and a crash leaves a valid prefix.
The first record is the header.  Secrets are replaced by keyed tokens before they are
written (`fnop.interpreters.redaction`).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import asdict
from enum import Enum
from typing import Any, BinaryIO

import orjson

from fnop.core.handlers.program import Program
from fnop.core.memory.seals import without_seals
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import command_to_wire, input_to_wire
from fnop.core.values.now import Now
from fnop.effects.values import canonical
from fnop.interpreters.redaction import Redaction

__all__ = ["FORMAT_VERSION", "Recorder", "header_of"]

# 2: secrets are replaced by their place, and digests with them.
FORMAT_VERSION = 2
_BLOCK = 64 * 1024


def header_of(program: Program, version: str) -> dict[str, Any]:
    """The first record: the operator's version, settings and handlers."""
    settings = program.settings
    return {
        "fnop": version,
        "format": FORMAT_VERSION,
        "handlers": [handler.id for handler in program.handlers],
        "places": {each.id: each.place for each in program.handlers if each.place},
        "operator": settings.operator,
        "namespaces": None if settings.namespaces is None else [*settings.namespaces],
        "selector": settings.selector,
        "peering": None if settings.peering is None else _plain(settings.peering),
        "election": None if settings.election is None else _plain(settings.election),
        "explain": settings.explain,
        "traces": settings.traces,
    }


def _plain(value: Any) -> dict[str, Any]:
    """The operator's identity among its peers, as JSON: its decisions depend on it."""
    found = asdict(value)
    return {k: v.value if isinstance(v, Enum) else v for k, v in found.items()}


class Recorder:
    """Observes a run and writes it to a file.

    A block is written when it is full, and at the latest with the first step
    after a second: so much can a crash lose.  Recording never hurts the run: it
    ends where it cannot go on, and `problem` tells why.
    """

    def __init__(
        self, file: BinaryIO, header: dict[str, Any], redaction: Redaction
    ) -> None:
        self._file = file
        self._redaction = redaction
        # Records that are not written yet, with their lines before redaction.
        self._records: list[dict[str, Any]] = []
        self._lines: list[bytes] = []
        self._size = 0
        self._flushed_at = float("-inf")
        self.problem: Exception | None = None
        self._write([canonical(header)])

    def observe(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        """Write one step down; what cannot be written leaves a gap, and is counted."""
        if self.problem is not None:
            return
        try:
            self._record(now, input, commands)
        except Exception as problem:  # of whatever kind: the run goes on
            self.problem = problem

    def _record(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        record = {
            "wall": now.wall,
            "mono": now.mono,
            "input": input_to_wire(input),
            "commands": [command_to_wire(command) for command in commands],
        }
        self._records.append(record)
        self._lines.append(orjson.dumps(record))
        self._size += len(self._lines[-1])
        if self._size >= _BLOCK or now.mono - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now.mono
            self.flush()

    def flush(self) -> None:
        """Make everything so far readable in the file."""
        if self._records:
            records, lines = self._records, self._lines
            self._records, self._lines, self._size = [], [], 0
            self._write(self._redaction.scrubbed(records, lines))

    def _write(self, lines: list[bytes]) -> None:
        text = b"".join(without_seals(line) + b"\n" for line in lines)
        self._file.write(gzip.compress(text, compresslevel=5, mtime=0))
        self._file.flush()

    def close(self) -> None:
        try:
            if self.problem is None:
                self.flush()
        except Exception as problem:
            self.problem = problem
        try:
            self._file.close()
        except OSError as problem:
            self.problem = self.problem or problem


_FLUSH_SECONDS = 1.0
