"""The compressed blocks that a recording is made of.

They are frames of Zstandard (RFC 8878), each with its checksum; earlier releases wrote
members of gzip (RFC 1952), which are read in the same way.
"""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["CORRUPT", "Block", "Reader", "is_block", "reader_of"]

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# At this level a recorded step takes 3 us, and a third less space than at the lowest.
_LEVEL = 6
# So far back equal text is looked for, and no further by a reader: 4 MiB.
_WINDOW_LOG = 22

# The text that is packed by itself, and can be unpacked without what follows: smaller
# parts take more bytes, for each has its own codes.
_PART = 32 * 1024

# The errors of readers for data that are damaged.
CORRUPT = (zlib.error, zstd.ZstdError)


def is_block(data: bytes) -> bool:
    """Whether a block begins so.

    >>> is_block(bytes.fromhex("28b52ffd")), is_block(b"hello")
    (True, False)
    """
    return data.startswith((_GZIP, _ZSTD))


class Block:
    """A block that is being written."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(
            options={
                zstd.CompressionParameter.compression_level: _LEVEL,
                zstd.CompressionParameter.window_log: _WINDOW_LOG,
                zstd.CompressionParameter.checksum_flag: 1,
            }
        )

    def write(self, text: bytes) -> bytes:
        """The data of a text; with those before, they can be read to its end."""
        parts = (text[at : at + _PART] for at in range(0, len(text), _PART))
        return b"".join(map(self._packed, parts))

    def _packed(self, part: bytes) -> bytes:
        return self._compressor.compress(part, zstd.ZstdCompressor.FLUSH_BLOCK)

    def end(self) -> bytes:
        """The end of the block, with the checksum."""
        return self._compressor.flush(zstd.ZstdCompressor.FLUSH_FRAME)


class Reader(Protocol):
    """Reads one block, as `compression.zstd.ZstdDecompressor` does."""

    @property
    def eof(self) -> bool:
        """Whether the block was read to its end."""

    @property
    def needs_input(self) -> bool:
        """Whether there is no more text without more data."""

    @property
    def unused_data(self) -> bytes:
        """The data after the block."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """The next text, of at most so many bytes; raises what is in `CORRUPT`."""


def reader_of(data: bytes) -> Reader:
    """The reader of the block that begins with these data."""
    if data[:1] == _GZIP[:1]:
        return _Gzip()
    return zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    )


class _Gzip:
    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflater.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        data = self._inflater.unconsumed_tail + data
        text = self._inflater.decompress(data, max_length)
        self.needs_input = len(text) < max_length
        return text
