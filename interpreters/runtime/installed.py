"""The distinction between authors' code, Python's code and installed libraries."""

from __future__ import annotations

import os
import sysconfig
import zoneinfo
from functools import cache

__all__ = ["is_installed", "is_library"]


@cache
def _library_folders() -> tuple[str, ...]:
    """The folders of Python's own modules, of installed ones, and of time zones."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {os.path.realpath(each) for each in zoneinfo.TZPATH}
    found |= {os.path.realpath(paths[name]) for name in names}
    return tuple(sorted(os.path.join(each, "") for each in found))


def is_installed(path: str) -> bool:
    """Whether a file is Python's or an installed library's."""
    try:
        return os.path.realpath(path).startswith(_library_folders())
    except (OSError, ValueError):  # the path is invalid, or the working folder is gone
        return False


@cache
def is_library(file: str) -> bool:
    """Whether the code of a file is not an author's; `<string>` is a library's."""
    return file.startswith("<") or is_installed(file)
