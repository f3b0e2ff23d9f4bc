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

__all__ = ["KopfImported", "below_kopf", "install"]

# The modules that operators import, and those of fnop. The private ones are imported
# by public operators for their types alone.
_MODULES = {
    "kopf": "fnop.kopf",
    "kopf.on": "fnop.adapters.kopf.declaring.on",
    "kopf.cli": "fnop.adapters.kopf.commands.cli",
    "kopf.testing": "fnop.adapters.kopf.commands.testing",
}
_PRIVATE = {
    "kopf._cogs.structs.bodies": "fnop.adapters.kopf.arguments.bodies",
    "kopf._cogs.structs.patches": "fnop.adapters.kopf.arguments.patches",
    "kopf._cogs.structs.ephemera": "fnop.adapters.kopf.arguments.memos",
    "kopf._cogs.structs.diffs": "fnop.core.values.diff",
    "kopf._cogs.structs.references": "fnop.core.api.resources",
    "kopf._cogs.structs.dicts": "fnop.adapters.kopf.arguments.types",
    "kopf._cogs.structs.ids": "fnop.adapters.kopf.arguments.types",
    "kopf._cogs.structs.credentials": "fnop.adapters.kopf.arguments.connections",
    "kopf._cogs.helpers.typedefs": "fnop.adapters.kopf.arguments.types",
    "kopf._cogs.configs.configuration": "fnop.adapters.kopf.declaring.settings",
    "kopf._cogs.configs.diffbase": "fnop.adapters.kopf.declaring.storages",
    "kopf._cogs.configs.progress": "fnop.adapters.kopf.declaring.storages",
    "kopf._core.actions.execution": "fnop.core.values.errors",
    "kopf._core.intents.registries": "fnop.adapters.kopf.declaring.registry",
    "kopf._core.intents.callbacks": "fnop.adapters.kopf.arguments.callbacks",
    "kopf._core.intents.causes": "fnop.core.values.cause",
}
# The packages of the private modules; they have nothing else.
_PACKAGES = frozenset(
    name.rsplit(".", count)[0]
    for name in _PRIVATE
    for count in range(1, name.count("."))
)


class _Empty(Loader):
    """Makes a package without content."""

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
        found = _MODULES.get(fullname) or _PRIVATE.get(fullname)
        if found is not None:
            alias = Alias(partial(importlib.import_module, found))
            return spec_from_loader(fullname, alias, is_package=fullname == "kopf")
        if fullname in _PACKAGES:
            return spec_from_loader(fullname, _Empty(), is_package=True)
        raise ModuleNotFoundError(
            f"{fullname} is a private module of Kopf, which fnop does not have; import "
            "the name from kopf",
            name=fullname,
        )


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
