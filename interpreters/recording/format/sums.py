"""Checksums in a recording, which prove that its lines are unchanged.

A damaged file may be unpacked to another text than was packed, and someone may have
removed lines from it. So lines carry the CRC-32 of all lines before them. A reader does
not trust a line before it has read the next sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from zlib import crc32

__all__ = ["OtherLines", "Sums", "has_sums", "trusted"]

# A line carries the sum once this much text follows the last sum. So a damage costs at
# most this much of the text before it. A sum takes about 7 bytes of the file.
_EVERY = 8192
_SUM = re.compile(rb',"s":([0-9]+)}$')
_STEPS = (b'{"t":', b'{"gap":')


class OtherLines(Exception):
    """The lines differ from those that were written."""


class Sums:
    """The sum of all lines so far, and the bytes since the last written sum."""

    def __init__(self) -> None:
        self._sum = self._behind = 0

    @property
    def is_due(self) -> bool:
        """Whether the next line has a sum."""
        return self._behind >= _EVERY

    def summed(self, lines: list[bytes], *, last: bool = False) -> Iterator[bytes]:
        """The lines of records as they are written, with the sums in them.

        With `last` the recording ends with these lines.
        """
        for position, line in enumerate(lines, 1):
            is_due = self.is_due or (last and position == len(lines))
            if is_due and line.startswith(_STEPS):
                line = b'%b,"s":%d}' % (line[:-1], self._sum)
                self._behind = 0
            self._add_line(line)
            yield line + b"\n"

    def told_by(self, line: bytes) -> bool:
        """Whether a line has a sum; raises `OtherLines` for a wrong or missing sum."""
        found = _SUM.search(line) if line.startswith(_STEPS) else None
        if found is not None and int(found[1]) != self._sum:
            raise OtherLines("lines before it are missing, or were changed")
        if found is not None:
            self._behind = 0
        elif self.is_due:
            raise OtherLines("a checksum is missing")
        self._add_line(line)
        return found is not None

    def _add_line(self, line: bytes) -> None:
        self._sum = crc32(b"\n", crc32(line, self._sum))
        self._behind += len(line) + 1


def has_sums(header: bytes) -> bool:
    """Whether the lines after this first one have sums; older recordings have none."""
    return b'"sums":true' in header


def _is_header(line: bytes) -> bool:
    """Whether another recording begins with a line: two files were joined."""
    return not line.startswith(_STEPS) and has_sums(line)


def trusted(lines: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """The lines of a recording whose sum was read; raises `OtherLines`.

    If the file is cut off, with a None at its end, all its lines are returned: nothing
    shows that they are damaged.
    """
    each = iter(lines)
    for first in each:
        yield first
        if first is None or not has_sums(first):
            yield from each
        else:
            yield from _behind(first, each)


def _behind(header: bytes, lines: Iterator[bytes | None]) -> Iterator[bytes | None]:
    sums, held = Sums(), list[bytes]()
    sums.told_by(header)
    for line in lines:
        if line is not None and _is_header(line):
            yield from held  # as at the end of a file
            raise OtherLines("another recording begins there: two files were joined")
        if line is None or sums.told_by(line):
            yield from held
            held.clear()
        if line is None:
            yield None
            return
        held.append(line)
    yield from held
