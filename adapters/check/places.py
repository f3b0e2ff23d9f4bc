"""The places that a check writes to: whether it can, before anything is tried."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fnop.adapters.common.endings import EXIT_USAGE, fail

__all__ = ["SAVE", "must_be_writable"]

SAVE = "fnop-failures"
"""The folder of `--save` that is taken where none is named."""


def must_be_writable(options: Mapping[str, Any]) -> None:
    """End the command with a sentence where a place of its options is no good.

    Nobody has named the usual folder of `--save`: a check without failures needs none,
    also where nothing can be written.
    """
    for option, path, reason in _hindrances(options):
        fail(f"{option} {path} cannot be written: {reason}", EXIT_USAGE)


def _hindrances(options: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The options whose places are no good, with the reasons."""
    file = options["junit"]
    if file and (reason := _file_reason(Path(file))):
        yield "--junit", file, reason
    for option, folder in (("--results", "results"), ("--save", "save")):
        path = options[folder]
        if not path or path == SAVE:
            continue
        if reason := _folder_reason(Path(path)):
            yield option, path, reason


def _file_reason(file: Path) -> str:
    """Why a file cannot be written; or ""."""
    if file.exists():
        return "" if os.access(file, os.W_OK) else "it may not be changed; name another"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}; make it first"
    return _folder_reason(file.parent)


def _folder_reason(folder: Path) -> str:
    """Why nothing can be written into a folder, which may yet have to be made."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        return f"{there.name} is no folder; name another place"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"the folder {there} may not be written to; name another place"
    return ""
