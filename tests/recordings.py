"""Recordings of simulated runs, in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from fnop.core.handlers.program import Program
from fnop.core.handlers.registry import Registry
from fnop.core.handlers.settings import Settings
from fnop.interpreters.recorder import Recorder, header_of
from fnop.interpreters.recordings import read_header, read_records
from fnop.interpreters.redaction import Redaction
from fnop.interpreters.shadow import Shadow, shadow

__all__ = ["TRACED", "Recording"]

TRACED = Settings(traces=True)


class Recording:
    """A recorder that writes to memory, and what it has written."""

    def __init__(self, registry: Registry, settings: Settings = TRACED) -> None:
        self.program = Program(registry.handlers, settings)
        self._file = _Kept()
        header = header_of(self.program, "test")
        redaction = Redaction(b"k" * 16, self.program)
        self.recorder = Recorder(self._file, header, redaction)

    def records(self) -> tuple[dict[str, Any], Iterator[dict[str, Any] | None]]:
        """The header, and the records after it."""
        self.recorder.flush()
        assert self.recorder.problem is None, self.recorder.problem
        records = read_records(io.BytesIO(self._file.getvalue()))
        return read_header(records), records

    def shadow(self, registry: Registry, settings: Settings = TRACED) -> Shadow:
        """All attempts, asked again of these handlers."""
        header, records = self.records()
        return shadow(records, header, Program(registry.handlers, settings))


class _Kept(io.BytesIO):
    def close(self) -> None:
        """What was written stays readable."""
