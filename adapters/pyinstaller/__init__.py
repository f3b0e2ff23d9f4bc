"""The hook by which PyInstaller finds what fnop imports and reads by name."""

from pathlib import Path

__all__ = ["hook_dirs"]


def hook_dirs() -> list[str]:
    """The folders of hooks: the entry point `pyinstaller40`."""
    return [str(Path(__file__).parent)]
