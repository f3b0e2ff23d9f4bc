"""Private modules of Kopf that operators use for types, and those of fnop instead."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["PACKAGES", "PRIVATE", "Package", "package", "refusal"]

# The modules of fnop by the private modules of Kopf: operators name their types, and
# programs with options of their own load files and configure logs.
PRIVATE = {
    "kopf._cogs.structs.bodies": "fnop.adapters.kopf.arguments.bodies",
    "kopf._cogs.structs.patches": "fnop.adapters.kopf.arguments.patches",
    "kopf._cogs.structs.ephemera": "fnop.adapters.kopf.arguments.memos",
    "kopf._cogs.structs.diffs": "fnop.core.values.diff",
    "kopf._cogs.structs.references": "fnop.core.api.resources",
    "kopf._cogs.structs.dicts": "fnop.adapters.kopf.arguments.types",
    "kopf._cogs.structs.ids": "fnop.adapters.kopf.arguments.types",
    "kopf._cogs.structs.credentials": "fnop.adapters.kopf.arguments.connections",
    "kopf._cogs.helpers.loaders": "fnop.adapters.kopf.commands.loaders",
    "kopf._cogs.helpers.typedefs": "fnop.adapters.kopf.arguments.types",
    "kopf._cogs.configs.configuration": "fnop.adapters.kopf.declaring.settings",
    "kopf._cogs.configs.diffbase": "fnop.adapters.kopf.declaring.storages",
    "kopf._cogs.configs.progress": "fnop.adapters.kopf.declaring.storages",
    "kopf._core.actions.execution": "fnop.core.values.errors",
    "kopf._core.actions.loggers": "fnop.adapters.kopf.running.logs",
    "kopf._core.intents.registries": "fnop.adapters.kopf.declaring.registry",
    "kopf._core.intents.callbacks": "fnop.adapters.kopf.arguments.callbacks",
    "kopf._core.intents.causes": "fnop.core.values.cause",
}
# The packages of the private modules; they have nothing else.
PACKAGES = frozenset(
    name.rsplit(".", count)[0]
    for name in PRIVATE
    for count in range(1, name.count("."))
)


class Package(ModuleType):
    """A package of private modules, which are its attributes without an import.

    With Kopf, `import kopf` imports all of them.
    """

    def __getattr__(self, name: str) -> Any:
        """The module of this name; any other one is refused with the remedy."""
        path = f"{self.__name__}.{name}"
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if path in PACKAGES:
            return package(path)
        if path in PRIVATE:
            return import_module(PRIVATE[path])
        raise refusal(path)


@cache
def package(name: str) -> Package:
    """The package of this name."""
    return Package(name)


def refusal(name: str) -> ModuleNotFoundError:
    """The error about a private module that fnop does not have."""
    return ModuleNotFoundError(
        f"{name} is a private module of Kopf, which fnop does not have; import the "
        "name from kopf",
        name=name,
    )
