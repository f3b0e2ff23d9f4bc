"""The name `kopf` for operators that import it: the modules of fnop in its place.

It is active only where it is asked for: by `fnop run --kopf`, and by `python -m
fnop.kopf`. An installed Kopf is then not used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

from fnop.adapters.common.loading import Alias
from fnop.adapters.kopf.commands.private_modules import (
    PACKAGES,
    PRIVATE,
    package,
    refusal,
)

__all__ = ["KopfImported", "below_kopf", "install"]

# The public modules that operators import, and those of fnop.
_MODULES = {
    "kopf": "fnop.kopf",
    "kopf.on": "fnop.adapters.kopf.declaring.on",
    "kopf.cli": "fnop.adapters.kopf.commands.cli",
    "kopf.testing": "fnop.adapters.kopf.commands.testing",
}


class _Packages(Loader):
    """Makes a package of private modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The one that is an attribute of its parent, too."""
        return package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""


class _Kopf(MetaPathFinder):
    """Finds `kopf` and its modules in fnop."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The module of fnop for a module of Kopf."""
        if fullname != "kopf" and not fullname.startswith("kopf."):
            return None
        found = _MODULES.get(fullname) or PRIVATE.get(fullname)
        if found is not None:
            alias = Alias(partial(importlib.import_module, found))
            return spec_from_loader(fullname, alias, is_package=fullname == "kopf")
        if fullname in PACKAGES:
            return spec_from_loader(fullname, _Packages(), is_package=True)
        raise refusal(fullname)


class KopfImported(RuntimeError):
    """Kopf itself is in use in this process; the text has the remedy."""


_KOPF = _Kopf()


def install() -> None:
    """Let `import kopf` find fnop, from now on.

    Raises `KopfImported` if Kopf itself has been imported already.
    """
    loaded = sys.modules.get("kopf")
    if loaded is not None and loaded.__name__ != "fnop.kopf":
        raise KopfImported(
            "Kopf itself is imported already: start the program by python -m fnop.kopf"
        )
    if _KOPF not in sys.meta_path:
        sys.meta_path.insert(0, _KOPF)


def below_kopf(path: str, alias: str | None) -> str | None:
    """A module's path below Kopf: "" for Kopf itself, and None for other modules."""
    if path == "fnop" and alias == "kopf":
        return ""
    for top in ("kopf", "fnop.kopf"):
        if path == top or path.startswith(f"{top}."):
            return path.removeprefix(top).strip(".")
    return None
