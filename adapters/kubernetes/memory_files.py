"""A temporary file: the ssl module reads certificates' keys from files only.

It is in memory if the system has such files (Linux: memfd_create), so it is never on a
disk, also after a kill. Elsewhere it is removed before anything else is done.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["file_with"]


@contextmanager
def file_with(content: bytes) -> Iterator[str]:
    """The path of a file with this content, for this process and for the block.

    Raises `OSError` if there is neither memory nor a folder for it.
    """
    handle = _create_memory_file()
    if handle is None:
        handle, path = tempfile.mkstemp(prefix="fnop-")
    else:
        path = f"/proc/self/fd/{handle}"
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(content)
        yield path
    finally:
        os.close(handle)
        with suppress(OSError):
            os.unlink(path)


def _create_memory_file() -> int | None:
    """A new file in memory; None if the system has no such files or paths."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):  # a sandbox may forbid it
            handle = os.memfd_create("fnop", os.MFD_CLOEXEC)
            if os.path.isfile(f"/proc/self/fd/{handle}"):
                return handle
            os.close(handle)
    return None
