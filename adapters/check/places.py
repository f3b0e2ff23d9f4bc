"""The places that a check writes to, tested before anything is tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fnop.adapters.check.options import CheckOptions
from fnop.adapters.common.endings import EXIT_USAGE, fail

__all__ = ["SAVE", "must_be_writable"]

SAVE = "fnop-failures"
"""The folder of `--save` that is taken where none is named."""


def must_be_writable(options: CheckOptions) -> None:
    """End the command with a sentence if a place of its options cannot be written to.

    The default folder of `--save` is not tested, as the user has not named it. A check
    without failures does not need it, even if nothing can be written there.
    """
    for option, path, reason in _unwritable_places(options):
        fail(f"{option} {path} cannot be written: {reason}", EXIT_USAGE)


def _unwritable_places(options: CheckOptions) -> Iterator[tuple[str, str, str]]:
    """Yield the options whose places cannot be written to, with the reasons."""
    file = options.junit
    if file and (reason := _file_reason(Path(file))):
        yield "--junit", file, reason
    for option, path in (("--results", options.results), ("--save", options.save)):
        if not path or path == SAVE:
            continue
        if reason := _folder_reason(Path(path)):
            yield option, path, reason


def _file_reason(file: Path) -> str:
    """Return why a file cannot be written; or ""."""
    if file.exists():
        return "" if os.access(file, os.W_OK) else "it may not be changed; name another"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}; make it first"
    return _folder_reason(file.parent)


def _folder_reason(folder: Path) -> str:
    """Return why nothing can be written into a folder, which may not exist yet."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        return f"{there.name} is not a folder; name another place"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"the folder {there} may not be written to; name another place"
    return ""
