"""The command `fnop port`: how to bring a Kopf operator to fnop, handler by handler."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePath

import click

from fnop.adapters.cli.option_fields import declared, takes
from fnop.adapters.cli.options import files, shared
from fnop.adapters.common.endings import EXIT_ERROR, fail
from fnop.adapters.common.plain import echo, one_line

__all__ = ["port"]


@dataclass(frozen=True, kw_only=True)
class PortOptions:
    """The options of `fnop port`."""

    paths: tuple[str, ...] = declared(files)
    output: str = declared(
        shared("output", type=click.Choice(["text", "json"], case_sensitive=False))
    )

    def __post_init__(self) -> None:
        if not self.paths:
            raise click.UsageError("name the operator's file: fnop port operator.py")


@click.command()
@takes(PortOptions)
def port(given: PortOptions) -> None:
    """Report what to change in a Kopf operator, so that its handlers are pure.

    fnop reads the files and the modules next to them that they import. It runs none of
    their code. Name the files of modules that only a run finds, as by pkgutil. Each
    handler gets one of three verdicts:

    \b
      pure already        change the import, and nothing else
      pure after changes  each change has a line and a replacement
      keep impure=True    it acts on the world, or calls code that was not found

    Then follow the names of Kopf that fnop does not have.

    \b
      fnop port operator.py
      fnop port operator.py handlers.py -o json

    Each option has a variable: FNOP_PORT_OUTPUT for --output.

    Exit status: 0 when there is a report; 1 when a file cannot be parsed, or declares
    no handlers of Kopf; 2 for a wrong call.
    """
    from fnop.adapters.kopf.porting.judging import ported
    from fnop.adapters.kopf.porting.reporting import as_json, as_lines
    from fnop.adapters.kopf.porting.sources import SourceProblem, projects_of

    here = Path.cwd()
    paths = [here / each for each in given.paths]
    try:
        found = ported(projects_of(paths, _read, here))
    except SourceProblem as problem:
        fail(str(problem), EXIT_ERROR)
    if not found.handlers:
        advice = "".join(
            f"; {each.place} loads modules that only a run finds: name their files, too"
            for each in found.loads[:1]
        )
        advice += "".join(
            f"; {each.place} chooses a decorator of Kopf by a name that only a run "
            "knows"
            for each in found.choices[:1]
        )
        fail(f"no handlers of Kopf in {', '.join(given.paths)}{advice}", EXIT_ERROR)
    if given.output.lower() == "json":
        echo(json.dumps(as_json(found)))
        return
    for line in as_lines(found):
        echo(one_line(line))


def _read(path: PurePath) -> bytes | None:
    """The content of a file; None if there is no such file, or it is not readable."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return None
