"""The program of a command: the handlers of the files that it is given."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from fnop.adapters.loading import LoadProblem, authors_place, load
from fnop.adapters.plain import echo
from fnop.core.handlers.program import Program
from fnop.core.handlers.registry import default_registry
from fnop.core.handlers.settings import Settings

__all__ = [
    "EXIT_DAMAGED",
    "EXIT_ERROR",
    "EXIT_INCOMPLETE",
    "EXIT_UNSUPPORTED",
    "EXIT_USAGE",
    "fail",
    "guarded",
    "interrupted",
    "program_of",
]

EXIT_ERROR, EXIT_USAGE = 1, 2
# Those about a recording (docs/recording.md).
EXIT_DAMAGED, EXIT_INCOMPLETE, EXIT_UNSUPPORTED = 3, 4, 5

guarded = click.option(
    "--guard/--no-guard",
    default=True,
    help="Keep handlers that are not impure from acting on the world, in a simulation "
    "and a replay; on a cluster only warn.",
)
"""The option by which the guard is on or off."""


def fail(sentence: str, status: int = EXIT_ERROR) -> NoReturn:
    """End the command, with a sentence on what is wrong."""
    echo(f"fnop: {sentence}", err=True)
    sys.exit(status)


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

    Where they declare none the command ends with the status of a `wrong` call; where
    they cannot be imported, with that of a `broken` operator.
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
            remedy = "it imports kopf: import fnop in its place (docs/porting.md)"
        fail(f"{names} declares no handlers; {remedy}", wrong)
    return Program(handlers, settings)


def interrupted(interrupt: KeyboardInterrupt, after: str = "") -> int:
    """Tell where Ctrl-C has met the author's code: it may be what does not end."""
    place = authors_place(interrupt)
    at = f", at {place}" if place else ""
    echo(f"fnop: interrupted{after}{at}", err=True)
    return EXIT_ERROR
