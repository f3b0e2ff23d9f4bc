"""The command `fnop new`: a project with an operator, its tests and its deployment."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from fnop.adapters.common.endings import fail
from fnop.adapters.common.plain import echo
from fnop.adapters.common.programs import python
from fnop.adapters.generate.project_names import NameProblem, Names, names_of

__all__ = ["new"]

# A new repository, or the clone of an empty one.
_OF_GIT = frozenset((".git",))


@click.command()
@click.argument("name")
@click.option(
    "--dir",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The folder of the project; by default a new one of the project's name.",
)
@click.option(
    "--kind",
    default="Website",
    show_default=True,
    metavar="KIND",
    help="The kind that the operator serves.",
)
@click.option(
    "--group",
    default="example.com",
    show_default=True,
    metavar="DOMAIN",
    help="The API group of the kind.",
)
@click.option(
    "--plural",
    metavar="WORD",
    help="The plural of the kind, for kubectl; by default the English plural.",
)
@click.option(
    "--webhooks",
    is_flag=True,
    help="Add admission handlers, and a deployment that serves them.",
)
def new(
    name: str,
    dir: Path | None,
    kind: str,
    group: str,
    plural: str | None,
    webhooks: bool,
) -> None:
    """Make a new project: an operator that runs, with tests and a deployment.

    \b
      fnop new my-operator
      fnop new dns-operator --kind Record --group dns.example.com
      fnop new my-operator --webhooks

    The project, its image, its namespace and its account in the cluster get this NAME.
    The folder has to be empty, except for .git.

    Each option has a variable: FNOP_NEW_GROUP for --group.

    Exit status: 0 when made; 1 when it cannot be; 2 for a wrong call.
    """
    try:
        names = names_of(name, kind=kind, group=group, plural=plural)
    except NameProblem as problem:
        raise click.UsageError(str(problem)) from problem
    folder = Path(name) if dir is None else dir
    try:
        _check_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        number = _make(names, folder, webhooks=webhooks)
    except OSError as problem:
        fail(f"{problem.filename or folder}: {problem.strerror or problem}")
    for line in _next_steps(names, folder, number):
        echo(line)


def _check_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        fail(f"{folder} is a file; name a folder with --dir")
    if folder.is_dir() and {each.name for each in folder.iterdir()} - _OF_GIT:
        fail(f"{folder} is not empty; name a new folder with --dir")


def _make(names: Names, folder: Path, *, webhooks: bool) -> int:
    """Write the files into the folder, all or none; return their number."""
    from fnop.adapters.generate.scaffolding import files_of

    # The only place known to be writable: there may be no folder for temporary files.
    with tempfile.TemporaryDirectory(prefix=".fnop-new-", dir=folder) as place:
        root = Path(place).resolve() / names.project
        files = files_of(names, webhooks=webhooks)
        for path, text in files.items():
            _write(root / path, text)
        generated = _generate(names, root)
        shutil.copytree(root, folder, dirs_exist_ok=True)
    return len(files) + generated


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def _generate(names: Names, root: Path) -> int:
    """Write the manifests that the project's `make manifests` also writes."""
    from fnop.adapters.generate.scaffolding import generated_by

    echo("fnop: trying the operator in a simulated cluster, for its rights", err=True)
    commands = generated_by(names)
    for path, command in commands.items():
        _write(root / path, _output_of(command, root))
    return len(commands)


def _output_of(command: tuple[str, ...], root: Path) -> str:
    """The output of a command of fnop in the project, without the user's variables."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith("FNOP_")}
    program, path = python(str(root / "src"))
    variables = {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [program, "-P", "-m", "fnop", *command],
        cwd=root,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        fail(f"fnop {shlex.join(command)} has failed:\n{done.stderr.strip()}")
    return done.stdout


def _next_steps(names: Names, folder: Path, number: int) -> list[str]:
    package = f"src/{names.package}"
    width = max(len(package), len("deploy"))
    return [
        f"{names.project}: an operator of {names.plural}.{names.group}, {number} files",
        f"  {package:{width}}  the kind, and the operator",
        f"  {'tests':{width}}  decisions, simulation, cluster",
        f"  {'deploy':{width}}  manifests for kubectl apply -k",
        "Next:",
        f"  cd {shlex.quote(str(folder))}",
        "  python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'",
        "  make lint test",
    ]
