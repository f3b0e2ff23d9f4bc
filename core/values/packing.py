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
# Raw deflate (RFC 1951) with its largest window, which also holds the dictionary.
_WINDOW = -15
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
        # Copies of these begin after reading the dictionary.
        self._deflate = zlib.compressobj(_FAST, zlib.DEFLATED, _WINDOW, zdict=like)
        self._inflate = zlib.decompressobj(_WINDOW, like)

    def packed(self, text: bytes) -> bytes:
        """The compressed text."""
        deflate = self._deflate.copy()
        return deflate.compress(text) + deflate.flush()

    def text_of(self, packed: bytes) -> bytes:
        """The text that was compressed."""
        return self._inflate.copy().decompress(packed)
