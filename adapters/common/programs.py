"""The program of a command: the handlers of the files in its arguments."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

import fnop
from fnop.adapters.common.endings import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    fail,
    warn,
)
from fnop.adapters.common.loading import OF_KOPF, LoadProblem, authors_place, load
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.runtime.installed import is_installed

__all__ = ["guarded", "interrupted", "program_of", "python"]

guarded = click.option(
    "--guard/--no-guard",
    default=True,
    help="Keep handlers that are not impure from acting on the world, in a simulation "
    "and a replay; on a cluster only warn.",
)
"""The option by which the guard is on or off."""


def program_of(
    paths: Sequence[str],
    modules: Sequence[str],
    settings: Settings,
    command: str = "fnop run",
    *,
    wrong: int = EXIT_USAGE,
    broken: int = EXIT_ERROR,
) -> Program:
    """The handlers that importing the files has declared.

    If they declare no handlers, the command ends with the status `wrong`, of a wrong
    call. If they cannot be imported, it ends with the status `broken`, of a broken
    operator.
    """
    if not paths and not modules:
        raise click.UsageError(
            f"name the operator's file, such as: {command} operator.py"
        )
    try:
        load(paths, modules)
    except LoadProblem as problem:
        fail(str(problem), broken)
    handlers = default_registry.handlers
    if not handlers:
        names = ", ".join([*paths, *modules])
        remedy = "decorate a function with @fnop.on.create('pods') or the like"
        if "kopf" in sys.modules:
            remedy = OF_KOPF
        fail(f"{names} declares no handlers; {remedy}", wrong)
    return Program(handlers, settings)


def interrupted(interrupt: KeyboardInterrupt, after: str = "") -> int:
    """Print the place in the author's code that Ctrl-C has interrupted.

    That code may be what does not end.
    """
    place = authors_place(interrupt)
    at = f", at {place}" if place else ""
    warn(f"interrupted{after}{at}")
    return EXIT_INTERRUPTED


def python(*path: str) -> tuple[str, str]:
    """The interpreter for another process of fnop, and its PYTHONPATH.

    The path begins with these folders. It includes fnop itself if that comes from an
    archive (zipapp, shiv). Raises `OSError` in a frozen program: that has no
    interpreter, and calling it again may run anything.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise OSError(errno.ENOEXEC, "a frozen program cannot start fnop again")
    place = str(Path(fnop.__file__).parents[1])
    own = () if is_installed(fnop.__file__) else (place,)
    places = (*path, *own, os.environ.get("PYTHONPATH"))
    return sys.executable, os.pathsep.join(filter(None, places))
