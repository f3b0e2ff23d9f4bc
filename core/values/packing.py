"""Object texts in less memory: compressed with the help of an object of their kind.

Objects of one kind share most of their text: the names of fields, the managers of
fields, much template output. A compressor that has already read one of them (RFC 1950:
a preset dictionary) stores only the differences of another.
"""

from __future__ import annotations

import zlib

__all__ = ["PACKED_MAX", "Packing"]

# A longer text takes milliseconds, which block all other work: it stays as it is.
PACKED_MAX = 128 * 1024
# Raw deflate (RFC 1951) has windows of 2 ** 9 to 2 ** 15 bytes.
_WINDOW_BITS = range(9, 16)
_FAST = 3


class Packing:
    """A compression of texts that are similar to one text.

    >>> packing = Packing(b'{"kind":"Pod","spec":{"nodeName":"a"}}')
    >>> packed = packing.packed(b'{"kind":"Pod","spec":{"nodeName":"b"}}')
    >>> len(packed) < 20, packing.text_of(packed)
    (True, b'{"kind":"Pod","spec":{"nodeName":"b"}}')
    """

    __slots__ = ("_deflate", "_inflate")

    def __init__(self, like: bytes = b"") -> None:
        # Copies of these begin after reading the dictionary. The window holds all of
        # it, if possible: each copy takes some eight times the memory of the window.
        bits = min(max(len(like).bit_length(), _WINDOW_BITS[0]), _WINDOW_BITS[-1])
        buffers = bits - _WINDOW_BITS[0] + 2  # in proportion, from 2 to 8
        self._deflate = zlib.compressobj(
            _FAST, zlib.DEFLATED, -bits, buffers, zdict=like
        )
        self._inflate = zlib.decompressobj(-bits, like)

    def packed(self, text: bytes) -> bytes:
        """The compressed text."""
        deflate = self._deflate.copy()
        return deflate.compress(text) + deflate.flush()

    def text_of(self, packed: bytes) -> bytes:
        """The text that was compressed."""
        return self._inflate.copy().decompress(packed)
