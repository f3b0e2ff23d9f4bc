"""Loads the files and modules of an operator that is written with Kopf."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from fnop.adapters.common.endings import EXIT_USAGE, fail
from fnop.adapters.common.loading import SCRIPT, LoadProblem, load
from fnop.adapters.kopf.commands.finder import KopfImported, install
from fnop.adapters.kopf.declaring.registry import OperatorRegistry, get_default_registry
from fnop.core.handlers.declare.registry import default_registry

__all__ = ["loaded"]


def loaded(
    paths: Sequence[str],
    modules: Sequence[str],
    registry: OperatorRegistry | None = None,
) -> OperatorRegistry:
    """The registry with the handlers that importing the files has declared.

    The command ends if they cannot be imported, or declare no handlers.
    """
    try:
        install()
        _forget(paths)
        load(paths, modules)
    except (LoadProblem, KopfImported) as problem:
        fail(str(problem))
    found = registry or get_default_registry()
    if found.is_empty:
        names = ", ".join([*paths, *modules]) or "the operator"
        fail(
            f"{names} declares no handlers with Kopf's decorators; without --kopf it "
            "runs as an operator of fnop",
            EXIT_USAGE,
        )
    return found


def _forget(paths: Sequence[str]) -> None:
    """Forget files that were loaded before: each run executes them, as in Kopf."""
    files = {str(Path(path).resolve()) for path in paths}
    for name, module in list(sys.modules.items()):
        if name.startswith(SCRIPT) and getattr(module, "__file__", None) in files:
            del sys.modules[name]
            default_registry.forget(name)
