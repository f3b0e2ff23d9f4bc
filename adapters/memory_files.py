"""Certificates and keys of a kubeconfig as files, since ssl reads keys from files only.

They are in memory where the system has such files (Linux: memfd_create), and so on no
disk, also after a kill. Each content has one file, which is whole before anybody learns
its name: several operators of a process may read it at once.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

__all__ = ["path_of", "with_files"]

_LOCK = Lock()
_paths: dict[bytes, str] = {}

_FILES = {
    f"{name}-data": name
    for name in ("certificate-authority", "client-certificate", "client-key")
}


def with_files(section: Mapping[str, Any]) -> dict[str, Any]:
    """A cluster, or a user, of a kubeconfig with files in the place of data.

    Data that is no base64 stays: whoever reads it says so.

    >>> with_files({"server": "https://h", "client-key-data": "a"})
    {'server': 'https://h', 'client-key-data': 'a'}
    """
    found = dict(section)
    for data, file in _FILES.items():
        text = found.get(data)
        if not isinstance(text, str) or not text:
            continue
        with suppress(NoBase64, ValueError):
            found[file] = path_of(b64decode(text))
            del found[data]
    return found


def path_of(content: bytes) -> str:
    """The path of a file with this content, for this process alone."""
    with _LOCK:
        if content not in _paths:
            _paths[content] = _made(content)
        return _paths[content]


def _made(content: bytes) -> str:
    if hasattr(os, "memfd_create"):
        with suppress(OSError):  # a sandbox may forbid it
            handle = os.memfd_create("fnop", os.MFD_CLOEXEC)
            with open(handle, "wb", closefd=False) as memory:
                memory.write(content)
            path = f"/proc/self/fd/{handle}"
            if os.path.isfile(path):
                return path
            os.close(handle)  # there is no /proc
    handle, path = tempfile.mkstemp(prefix="fnop-")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    atexit.register(_removed, path)
    return path


def _removed(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
