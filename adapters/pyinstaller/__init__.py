"""The PyInstaller hook for the modules and files that fnop loads by name."""

from pathlib import Path

__all__ = ["hook_dirs"]


def hook_dirs() -> list[str]:
    """The folders of hooks: the entry point `pyinstaller40`."""
    return [str(Path(__file__).parent)]
