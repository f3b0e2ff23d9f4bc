"""Read recordings, including untrusted ones.

A file is read in pieces, and everything that it can make grow is bounded. Limits apply
to the size of its text, the length and nesting of a record, and the number of records.
Nothing in the file is imported, called or looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import orjson
from msgspec import Struct

from fnop.core.admission.wire import REVIEWED
from fnop.core.seam.wire import together
from fnop.interpreters.recording.format.blocks import (
    CORRUPT,
    Reader,
    is_block,
    reader_of,
)
from fnop.interpreters.recording.format.deltas import MEMORY_BYTES, DeltaReader
from fnop.interpreters.recording.format.recorder import FORMAT_VERSION
from fnop.interpreters.recording.format.sums import OtherLines, trusted

__all__ = [
    "UNLIMITED",
    "AtOnce",
    "Damage",
    "Readable",
    "RecordingLimits",
    "RecordingProblem",
    "Unsupported",
    "is_review",
    "read_header",
    "read_records",
    "understood",
]


class RecordingProblem(Exception):
    """The recording cannot be read; the message is one sentence."""


class AtOnce(RecordingProblem):
    """The processes of a folder's recordings have run at the same time."""


class Unsupported(RecordingProblem):
    """The recording needs another release of fnop to be read."""


class Damage:
    """The findings about a recording of which only the beginning can be read."""

    def __init__(self) -> None:
        self.problem: RecordingProblem | None = None

    def __bool__(self) -> bool:
        return self.problem is not None


class _Damaged(RecordingProblem):
    """The recording cannot be read beyond a place; the message says why."""


@contextmanager
def understood(number: int) -> Iterator[None]:
    """Raise `RecordingProblem` for any error while record `number`, from 1, is read.

    A record may be hostile, so any error is attributed to the record.
    """
    try:
        yield
    except RecordingProblem:
        raise
    except Exception as problem:
        raise _unreadable_record(number, problem) from problem


def _unreadable_record(number: int, problem: Exception) -> RecordingProblem:
    return RecordingProblem(
        f"record {number} of the recording cannot be understood: "
        f"{type(problem).__name__}: {problem!s:.200}; it is damaged, or was not "
        "written by fnop"
    )


class RecordingLimits(Struct, frozen=True):
    """The limits of a recording that is read, against hostile files.

    - `ratio` is how many bytes of text one byte of the file may become.
    - `step_ratio` is how many bytes of a step one byte of that text may become.
    - `ratio_free_bytes` is how many bytes are allowed regardless of these ratios.
    - `memory_bytes` is the amount of text that steps may refer to.

    `damage` receives the reason if a recording can be read only up to a place. Without
    it, the reason is raised.
    """

    ratio: float = 200.0
    step_ratio: float = 500.0
    memory_bytes: float = 4.0 * MEMORY_BYTES
    ratio_free_bytes: int = 16 * 1024 * 1024
    record_bytes: int = 32 * 1024 * 1024
    depth: int = 200
    records: int = 10_000_000
    damage: Damage | None = None


_ALL = float("inf")
UNLIMITED = RecordingLimits(_ALL, _ALL, _ALL, 0, 2**62, 2**62, 2**62)
_LIMITS = RecordingLimits()
_REMEDY = "if it is your own, read it with --trusted"
_MAKE_ONE = "make one with `fnop run ... --record FILE`"
_PIECE = 256 * 1024
# Data are unpacked in such small pieces because the text of a damaged piece is lost.
_PACKED_PIECE = 64


class Readable(Protocol):
    """A file, or a part of one."""

    def read(self, size: int, /) -> bytes:
        """At most `size` of the next bytes; empty at the end."""


def read_records(
    file: Readable, limits: RecordingLimits = _LIMITS, *, reviews: bool = False
) -> Iterator[dict[str, Any] | None]:
    """The records of a recording; a last None if it was cut off, or is damaged.

    A record such as {"gap": 12} stands for 12 steps that were not written. Reviews are
    not steps, and are skipped unless `reviews` is set.

    Raises `RecordingProblem` for a file that is not a recording, and beyond the limits.
    Damage is raised after all earlier records were read, unless `limits.damage` is
    there to take it.
    """
    steps = -1  # the header is not a step
    try:
        for record in _records(file, limits):
            if record is not None and is_review(record):
                if reviews:
                    yield record
                continue
            yield record
            steps += 1 if record is None else _steps_in_record(record)
    except (_Damaged, OtherLines) as problem:
        if steps < 0:
            raise RecordingProblem(
                f"the recording is damaged at its beginning: {problem}; {_MAKE_ONE}"
            ) from problem
        found = RecordingProblem(
            f"the recording is damaged after step {steps}: {problem}; only what is "
            "before it can be read"
        )
        if limits.damage is None:
            raise found from problem
        limits.damage.problem = found
        yield None


def is_review(record: dict[str, Any]) -> bool:
    """Whether a record is a review rather than a step."""
    input = record.get("input")
    return isinstance(input, dict) and input.get("in") == REVIEWED


def _steps_in_record(record: dict[str, Any]) -> int:
    """The number of steps that a record stands for."""
    count = record.get("gap", 1)
    return count if type(count) is int else 1


def _records(
    file: Readable, limits: RecordingLimits
) -> Iterator[dict[str, Any] | None]:
    steps: _Steps | None = None
    for number, line in enumerate(trusted(_lines(file, limits))):
        if line is None:
            yield None
            return
        if number > limits.records:
            raise RecordingProblem(
                f"the recording has more than {limits.records} records; {_REMEDY}"
            )
        record = _record(line, number, limits)
        if number and "gap" in record:
            _check_gap(record, number)
        elif steps is not None:
            record = steps.read(record, number, len(line))
        elif number == 0 and record.get("format") == FORMAT_VERSION:
            steps = _Steps(limits)
        yield record


def _check_gap(record: dict[str, Any], number: int) -> None:
    """Raise `RecordingProblem` for a gap without a valid number of steps."""
    with understood(number):
        count = record["gap"]
        if type(count) is not int or not 0 < count <= _GAP_MAX:
            raise ValueError("the number of missing steps is none")


# A run never has more steps.
_GAP_MAX = 2**53


class _Steps:
    """Restores the steps of the present format."""

    def __init__(self, limits: RecordingLimits) -> None:
        self._limits = limits
        self._texts = DeltaReader(limits.memory_bytes)
        self._then = 0, 0
        self._read = self._made = 0

    def read(self, step: dict[str, Any], number: int, size: int) -> dict[str, Any]:
        """The record of a step that was written in `size` bytes."""
        try:
            text = self._texts.read(step["r"])
            body = self._texts.read(step["b"]) if "b" in step else b""
            self._count(size, len(text) + len(body))
            record = _record(text, number, self._limits)
            if body:
                together(record["input"], _record(body, number, self._limits))
            record["wall"], record["mono"] = self._absolute_time(*step["t"])
        except RecordingProblem:
            raise
        except Exception as problem:
            raise _Damaged(
                f"record {number} cannot be understood: "
                f"{type(problem).__name__}: {problem!s:.200}"
            ) from problem
        return record

    def _count(self, read: int, made: int) -> None:
        self._read += read
        self._made += made
        limits = self._limits
        if self._made > limits.ratio_free_bytes + limits.step_ratio * self._read:
            raise RecordingProblem(
                f"the recording's steps are more than {limits.step_ratio:g} times as "
                f"large as what is written of them, as none of a run are; {_REMEDY}"
            )

    def _absolute_time(self, wall: Any, mono: Any) -> tuple[Any, Any]:
        if isinstance(wall, int) and isinstance(mono, int):
            self._then = self._then[0] + wall, self._then[1] + mono
            return self._then[0] / 1e6, self._then[1] / 1e6
        return wall, mono


# Earlier recordings have the file names of operators in the names of functions.
_SCRIPT = re.compile(rb'"function":"fnop_script_\w*:')


def _record(line: bytes, number: int, limits: RecordingLimits) -> dict[str, Any]:
    if b'"function":"fnop_script_' in line:
        line = _SCRIPT.sub(b'"function":"fnop_script:', line)
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        if any(word in str(problem).lower() for word in ("depth", "recursion")):
            raise _depth_problem(limits) from problem
        if number == 0:
            raise _no_recording_problem() from problem
        raise _Damaged(f"a line is not JSON: {problem}") from problem
    if not isinstance(record, dict):
        if number == 0:
            raise _no_recording_problem()
        raise _Damaged("a line is not a record")
    # A value of that depth has at least as many brackets.
    if line.count(b"{") + line.count(b"[") > limits.depth and _is_deeper(
        record, limits.depth
    ):
        raise _depth_problem(limits)
    return record


def _depth_problem(limits: RecordingLimits) -> RecordingProblem:
    return RecordingProblem(
        "the recording has a record that is nested deeper than "
        f"{limits.depth} levels, as no Kubernetes object is; {_REMEDY}"
    )


def _no_recording_problem() -> RecordingProblem:
    return RecordingProblem(f"this is not a recording of fnop; {_MAKE_ONE}")


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


class _Inflated:
    """The text of a file of compressed blocks, in pieces of bounded size."""

    def __init__(self, file: Readable, limits: RecordingLimits) -> None:
        self._file = file
        self._limits = limits
        self._data = b""
        self._read = self._made = 0
        self.truncated = False
        self._is_one = True

    def pieces(self) -> Iterator[bytes]:
        """The text; an empty piece at the end of each block."""
        while self._fill():
            yield from self._read_block()

    def _fill(self) -> bool:
        if not self._data:
            self._data = self._file.read(_PIECE)
            self._read += len(self._data)
        return bool(self._data)

    def _read_block(self) -> Iterator[bytes]:
        self._is_one = self._made > 0 or is_block(self._data)
        block = reader_of(self._data)
        while not block.eof:
            if block.needs_input and not self._fill():
                self.truncated = True
                return
            text = self._inflate(block)
            if text:
                yield text
        self._data = block.unused_data + self._data
        yield b""

    def _inflate(self, block: Reader) -> bytes:
        data = b""
        if block.needs_input:
            data, self._data = self._data[:_PACKED_PIECE], self._data[_PACKED_PIECE:]
        try:
            text = block.decompress(data, _PIECE)
        except CORRUPT as problem:
            if not self._is_one:
                raise _no_recording_problem() from problem
            raise _Damaged(f"it cannot be unpacked there: {problem}") from problem
        self._made += len(text)
        limits = self._limits
        if self._made > limits.ratio_free_bytes + limits.ratio * self._read:
            raise RecordingProblem(
                f"the recording becomes more than {limits.ratio:g} times as large when "
                f"it is unpacked, as none of a run does; {_REMEDY}"
            )
        return text


def _lines(file: Readable, limits: RecordingLimits) -> Iterator[bytes | None]:
    """The lines of a recording; a last None if the file ends within a block.

    A block that was cut off is read up to its last whole line.
    """
    inflated, rest = _Inflated(file, limits), bytearray()
    for piece in inflated.pieces():
        rest += piece
        if piece and b"\n" in piece:
            *lines, last = rest.split(b"\n")
            rest = bytearray(last)
        else:
            lines = []
        if not piece and rest:  # a block holds whole lines
            lines, rest = [rest], bytearray()
        if len(rest) > limits.record_bytes or any(
            len(each) > limits.record_bytes for each in lines
        ):
            raise RecordingProblem(
                "the recording has a record of more than "
                f"{limits.record_bytes} bytes; {_REMEDY}"
            )
        yield from (bytes(each) for each in lines if each)
    if inflated.truncated:
        yield None


# ------------------------------------------------------------------------ the header


def read_header(records: Iterator[dict[str, Any] | None]) -> dict[str, Any]:
    """The header; raises `RecordingProblem` if this is not a readable recording."""
    try:
        header = next(records)
    except StopIteration:
        raise RecordingProblem(f"the recording is empty; {_MAKE_ONE}") from None
    if header is None:
        raise RecordingProblem(
            "the recording is cut off before its first record; its run was killed "
            f"before it began, or the copy is not complete: {_MAKE_ONE}"
        )
    if "format" not in header:
        raise _no_recording_problem()
    if header["format"] not in _FORMATS:
        formats = " and ".join(map(str, _FORMATS))
        raise Unsupported(
            f"the recording has format {header['format']!r:.20}, and this fnop reads "
            f"{formats}; replay it with the release that made it "
            f"({header.get('fnop')!r:.40}), or record the run again"
        )
    wrong = [
        name for name, kinds in _HEADER.items() if not _is_of_type(header, name, kinds)
    ]
    names = header.get("namespaces", 0)  # None means the whole cluster
    known = names is None or isinstance(names, list)
    if wrong or not known or not all(isinstance(each, str) for each in names or ()):
        raise RecordingProblem(
            f"the recording's header is damaged ({', '.join(wrong) or 'namespaces'}); "
            f"{_MAKE_ONE}"
        )
    return header


# Format 2 has whole records for steps, in the form to which format 3 is restored.
_FORMATS = (2, FORMAT_VERSION)
_HEADER: dict[str, tuple[type, ...]] = {
    "fnop": (str,),
    "operator": (str,),
    "namespaces": (list, type(None)),
    "selector": (str,),
    "peering": (dict, type(None)),
    "election": (dict, type(None)),
}


def _is_of_type(header: dict[str, Any], name: str, kinds: tuple[type, ...]) -> bool:
    return isinstance(header.get(name), kinds)
