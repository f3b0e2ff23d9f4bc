"""`fnop crd`: the CustomResourceDefinitions of the kinds in an operator's files."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fnop.adapters.cli.option_fields import declared, option, takes
from fnop.adapters.cli.options import ClusterOptions, files, shared
from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.loading import LoadProblem, load
from fnop.adapters.common.manifests import ManifestProblem, echo_yaml
from fnop.adapters.common.plain import echo, one_line
from fnop.interpreters.runtime.protocol import Unreachable
from fnop.interpreters.runtime.reading import Expired, ReadProblem

__all__ = ["crd"]


@dataclass(frozen=True, kw_only=True)
class CrdOptions:
    """The options of `fnop crd`."""

    paths: tuple[str, ...] = declared(files)
    module: tuple[str, ...] = declared(shared("module"))
    check: str | None = option(
        "--check",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Print only the difference from this file, and exit with 1 if there is "
        "one.",
    )
    compatible_with: str | None = option(
        "--compatible-with",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Exit with 1 if the definitions reject objects, or lack versions, that "
        "the definitions in this file accept or serve, such as the last release's.",
    )
    live: bool = option(
        "--live",
        is_flag=True,
        help="As --compatible-with, but with the definitions of the cluster. Also name "
        "its objects that would become invalid. fnop only reads the cluster.",
    )
    cluster: ClusterOptions

    @property
    def names(self) -> tuple[str, ...]:
        """The files and modules."""
        return (*self.paths, *self.module)


@click.command()
@takes(CrdOptions)
def crd(given: CrdOptions) -> None:
    """Print the definitions (CRDs) of the kinds in some files.

    A kind is a class with @fnop.definition(...): a dataclass, a TypedDict, or a model
    of pydantic. The file defines the class, imports it, or imports a module of the same
    project that does so.

    \b
      fnop crd operator.py > crd.yaml
      fnop crd operator.py --check crd.yaml       # for CI
      fnop crd operator.py --compatible-with released.yaml
      fnop crd operator.py --live

    A change breaks if a version stops being served, a field becomes required or is
    pruned, or a valid value is rejected.

    fnop does not print a definition that an API server would refuse. The error names
    the class, the field and the reason.

    Exit status: 0 when printed, or the same as the file, or compatible; 1 when
    different, or breaking, or when no definition can be made; 2 for a wrong call, or
    files without kinds.
    """
    from fnop.adapters.definitions.classes import definitions_yaml, warnings_about

    if not given.names:
        raise click.UsageError(
            "name the file with the kinds, such as: fnop crd operator.py"
        )
    definitions = _definitions(given)
    for each in definitions:
        for warning in warnings_about(each):
            warn(f"{each['metadata']['name']}: {warning}")
    text = definitions_yaml(definitions)
    if given.check is not None:
        named = [*given.paths, *(f"-m {each}" for each in given.module)]
        _compare(given.check, text, f"fnop crd {' '.join(named)}")
    if given.compatible_with is not None or given.live:
        _must_not_break(definitions, given)
    elif given.check is None:
        echo_yaml(text)


def _definitions(given: CrdOptions) -> list[dict[str, Any]]:
    """The definitions of the kinds; the command ends if there are none."""
    from fnop.adapters.definitions.class_kinds import kinds_in
    from fnop.adapters.definitions.classes import definitions_of
    from fnop.adapters.definitions.problems import DefinitionProblem

    try:
        classes = kinds_in(load(given.paths, given.module))
        if not classes:
            fail(
                f"{', '.join(given.names)}: there is no kind; decorate a class with "
                "@fnop.definition('databases.v1.example.com')",
                EXIT_USAGE,
            )
        return definitions_of(classes)
    except (LoadProblem, DefinitionProblem) as problem:
        fail(str(problem))


def _must_not_break(
    definitions: Sequence[Mapping[str, Any]], given: CrdOptions
) -> None:
    """Show the breaking changes; exit with 1 if there are any."""
    from fnop.adapters.definitions.crd_compatibility import breaks_of_file

    found: list[tuple[str, str]] = []
    if given.compatible_with is not None:
        try:
            found += breaks_of_file(definitions, given.compatible_with)
        except ManifestProblem as problem:
            fail(str(problem))
    if given.live:
        found += _breaks_of_live_objects(definitions, given.cluster)
    for name, text in found:
        echo(one_line(f"{name} {text}"))
    if found:
        count = f"{len(found)} changes break" if len(found) > 1 else "a change breaks"
        fail(f"{count} what exists; serve the former version beside a new one")


def _breaks_of_live_objects(
    definitions: Sequence[Mapping[str, Any]], cluster: ClusterOptions
) -> list[tuple[str, str]]:
    from fnop.adapters.definitions.crd_compatibility import breaks_of_live
    from fnop.adapters.kubernetes.client import ConfigurationProblem

    async def asked() -> list[tuple[str, str]]:
        async with cluster.connected() as api:
            return await breaks_of_live(definitions, api)

    try:
        return asyncio.run(asked())
    except (ConfigurationProblem, ReadProblem, Expired, Unreachable) as problem:
        fail(str(problem) or "the objects changed while they were read; try again")


def _compare(file: str, text: str, command: str) -> None:
    """Show the difference between a file and the output; exit with 1 for one."""
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
