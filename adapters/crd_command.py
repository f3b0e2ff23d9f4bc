"""`fnop crd`: the CustomResourceDefinitions of the kinds in an operator's files."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click

from fnop.adapters.endings import EXIT_USAGE, fail, warn
from fnop.adapters.loading import LoadProblem, load
from fnop.adapters.manifests import echo_yaml
from fnop.adapters.options import files, shared
from fnop.adapters.plain import echo

__all__ = ["crd"]


@click.command()
@files
@shared("module")
@click.option(
    "--check",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Print nothing but the difference from this file, and exit with 1 where there "
    "is one.",
)
def crd(paths: Sequence[str], module: Sequence[str], check: str | None) -> None:
    """Print the definitions (CRDs) of the kinds in some files.

    A kind is a class with @fnop.definition(...) that a file defines or imports, also
    as a part of a module of the same project: a dataclass, a TypedDict, or a model of
    pydantic.

    \b
      fnop crd operator.py > crd.yaml
      fnop crd operator.py --check crd.yaml       # for CI

    A definition that an API server would refuse is not printed; the class, the field
    and the reason are told.

    Exit status: 0 when printed, or the same as the file; 1 when different, or when no
    definition can be made; 2 for a wrong call, or files without kinds.
    """
    from fnop.adapters.class_kinds import DefinitionProblem, kinds_in
    from fnop.adapters.definitions import (
        definitions_of,
        definitions_yaml,
        warnings_about,
    )

    names = [*paths, *module]
    if not names:
        raise click.UsageError(
            "name the file with the kinds, such as: fnop crd operator.py"
        )
    try:
        classes = kinds_in(load(paths, module))
        if not classes:
            fail(
                f"{', '.join(names)}: there is no kind; decorate a class with "
                "@fnop.definition('databases.v1.example.com')",
                EXIT_USAGE,
            )
        definitions = definitions_of(classes)
    except (LoadProblem, DefinitionProblem) as problem:
        fail(str(problem))
    for each in definitions:
        for warning in warnings_about(each):
            warn(f"{each['metadata']['name']}: {warning}")
    text = definitions_yaml(definitions)
    if check is None:
        echo_yaml(text)
    else:
        named = [*paths, *(f"-m {each}" for each in module)]
        _compare(check, text, f"fnop crd {' '.join(named)}")


def _compare(file: str, text: str, command: str) -> None:
    """Show the difference of a file from what would be printed; exit with 1 for one."""
    try:
        found = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        fail(f"{file} cannot be read as text in UTF-8")
    if found == text:
        return
    lines = difflib.unified_diff(
        found.splitlines(), text.splitlines(), file, command, lineterm=""
    )
    for line in lines:
        echo(line)
    fail(f"{file} is not what the types say; write it anew: {command} > {file}")
