"""The compressed blocks of which a recording consists.

They are frames of Zstandard (RFC 8878), each with its checksum. Earlier releases wrote
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
# At this level a recorded step takes 3 us, and a third less space than at the lowest
# level.
_LEVEL = 6
# The distance within which equal text is searched: 4 MiB. A reader needs no more.
_WINDOW_LOG = 22

# The size of a text that is packed by itself, and can be unpacked without the following
# text. Smaller parts take more bytes, because each part has its own codes.
_PART = 32 * 1024

# The errors that readers raise for damaged data.
CORRUPT = (zlib.error, zstd.ZstdError)


def is_block(data: bytes) -> bool:
    """Whether a block begins with these data.

    >>> is_block(bytes.fromhex("28b52ffd")), is_block(b"hello")
    (True, False)
    """
    return data.startswith((_GZIP, _ZSTD))


class Block:
    """A block while it is written."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(
            options={
                zstd.CompressionParameter.compression_level: _LEVEL,
                zstd.CompressionParameter.window_log: _WINDOW_LOG,
                zstd.CompressionParameter.checksum_flag: 1,
            }
        )

    def write(self, text: bytes) -> bytes:
        """The packed data of a text; data packed earlier must precede them."""
        parts = (text[at : at + _PART] for at in range(0, len(text), _PART))
        return b"".join(map(self._compressed_block, parts))

    def _compressed_block(self, part: bytes) -> bytes:
        return self._compressor.compress(part, zstd.ZstdCompressor.FLUSH_BLOCK)

    def end(self) -> bytes:
        """The end of the block, with the checksum."""
        return self._compressor.flush(zstd.ZstdCompressor.FLUSH_FRAME)


class Reader(Protocol):
    """A reader of one block, like `compression.zstd.ZstdDecompressor`."""

    @property
    def eof(self) -> bool:
        """Whether the block was read to its end."""

    @property
    def needs_input(self) -> bool:
        """Whether the reader needs more data before it can return more text."""

    @property
    def unused_data(self) -> bytes:
        """The data after the block."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """The next text, at most `max_length` bytes; raises an error of `CORRUPT`."""


def reader_of(data: bytes) -> Reader:
    """The reader for the block that begins with these data."""
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
