"""Loads the files and modules of an operator that is written with Kopf."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from fnop.adapters.common.endings import EXIT_ERROR, EXIT_USAGE, fail
from fnop.adapters.common.loading import SCRIPT, LoadProblem, load
from fnop.adapters.kopf.commands.finder import KopfImported, install
from fnop.adapters.kopf.declaring.registry import (
    OperatorRegistry,
    get_default_registry,
    set_default_registry,
)
from fnop.core.handlers.declare.registry import default_registry

__all__ = ["load_modules", "loaded", "refuse_empty"]


def loaded(
    paths: Sequence[str],
    modules: Sequence[str],
    registry: OperatorRegistry | None = None,
    *,
    broken: int = EXIT_ERROR,
) -> OperatorRegistry:
    """The registry with the handlers that importing the files has declared.

    A given `registry` replaces that of decorators without `registry=`, as in Kopf. The
    command ends if the files cannot be imported, with the status `broken`, or declare
    no handlers.
    """
    if registry is not None:
        set_default_registry(registry)
    load_modules(paths, modules, broken)
    found = get_default_registry()
    refuse_empty(found, (*paths, *modules))
    return found


def load_modules(
    paths: Sequence[str], modules: Sequence[str], broken: int = EXIT_ERROR
) -> list[ModuleType]:
    """Import the files and modules; the command ends if that is impossible."""
    try:
        install()
        _forget(paths)
        return load(paths, modules)
    except (LoadProblem, KopfImported) as problem:
        fail(str(problem), broken)


def refuse_empty(registry: OperatorRegistry, names: Sequence[str]) -> None:
    """End the command if the operator of these files declares no handlers."""
    if registry.is_empty:
        fail(
            f"{', '.join(names) or 'the operator'} declares no handlers with Kopf's "
            "decorators; without --kopf it runs as an operator of fnop",
            EXIT_USAGE,
        )


def _forget(paths: Sequence[str]) -> None:
    """Forget files that were loaded before: each run executes them, as in Kopf."""
    files = {str(Path(path).resolve()) for path in paths}
    for name, module in list(sys.modules.items()):
        if name.startswith(SCRIPT) and getattr(module, "__file__", None) in files:
            del sys.modules[name]
            default_registry.forget(name)
