"""The loading of files and modules, for programs that call Kopf's private function."""

from __future__ import annotations

from collections.abc import Iterable

from fnop.adapters.common.loading import load

__all__ = ["preload"]


def preload(paths: Iterable[str], modules: Iterable[str]) -> None:
    """Import files, then modules by name; their decorators register handlers."""
    load([*paths], [*modules])
