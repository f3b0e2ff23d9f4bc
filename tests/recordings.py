"""Recordings of simulated runs, in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import orjson

from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.format.blocks import Block, reader_of
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.shadow.attempts import Shadow, shadow

__all__ = [
    "HEADER",
    "STEP",
    "TRACED",
    "Recording",
    "bomb",
    "compressed",
    "inflated",
    "lines_of",
    "records_in",
    "text_of",
]


def compressed(text: bytes) -> bytes:
    """A text as one block of a recording."""
    block = Block()
    return block.write(text) + block.end()


def inflated(data: bytes) -> bytes:
    """The text of a recording as it is written, of all its blocks."""
    text = b""
    while data:
        reader = reader_of(data)
        text += reader.decompress(data, -1)
        assert reader.eof, "it is cut off"
        data = reader.unused_data
    return text


def records_in(data: bytes) -> list[dict[str, Any]]:
    """The records of a whole recording, after its header."""
    records = read_records(io.BytesIO(data))
    read_header(records)
    found = [*records]
    assert None not in found, "it is cut off"
    return found  # type: ignore[return-value]


def text_of(data: bytes) -> str:
    """All text in a recording: as it is written, and as it is read."""
    read = b"\n".join(orjson.dumps(each) for each in records_in(data))
    return inflated(data).decode() + read.decode()


TRACED = Settings(traces=True)


class Recording:
    """A recorder that writes to memory, and what it has written."""

    def __init__(self, registry: Registry, settings: Settings = TRACED) -> None:
        self.program = Program(registry.handlers, settings)
        self._file = _Kept()
        header = header_of(self.program, "test")
        redaction = Redaction(b"k" * 16, self.program)
        self.recorder = Recorder(self._file, header, redaction)
        self._is_finished = False

    def records(
        self, *, reviews: bool = False
    ) -> tuple[dict[str, Any], Iterator[dict[str, Any] | None]]:
        """The header, and the records after it; with `reviews` the reviews, too."""
        if not self._is_finished:
            self.recorder.finish()
            self._is_finished = True
        assert self.recorder.problem is None, self.recorder.problem
        file = io.BytesIO(self._file.getvalue())
        records = read_records(file, reviews=reviews)
        return read_header(records), records

    def written(self) -> bytes:
        """The present content of the file: a process that is killed leaves that."""
        return self._file.getvalue()

    def shadow(self, registry: Registry, settings: Settings = TRACED) -> Shadow:
        """All attempts, asked again of these handlers."""
        header, records = self.records(reviews=True)
        return shadow(records, header, Program(registry.handlers, settings))


class _Kept(io.BytesIO):
    def close(self) -> None:
        """Keep the written file readable."""


HEADER: dict[str, Any] = {
    "format": 2,  # whole records
    "fnop": "0.1",
    "operator": "default",
    "namespaces": None,
    "selector": "",
    "peering": None,
    "election": None,
}


STEP = {
    "wall": 0.0,
    "mono": 0.0,
    "input": {"in": "Started", "seed": "s"},
    "commands": [],
}


def lines_of(*records: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


def bomb(megabytes: int) -> bytes:
    """A recording with one record of that size, which compresses a thousandfold."""
    block = Block()
    found = block.write(lines_of(HEADER) + b'{"a":"')
    for _ in range(megabytes):
        found += block.write(b"a" * 1_000_000)
    return found + block.write(b'"}\n') + block.end()
