"""`python -m fnop.kopf`: a program that uses Kopf itself, or a command of Kopf.

python -m fnop.kopf operator.py …        runs the file as a program
python -m fnop.kopf -m package …         runs a module as a program
python -m fnop.kopf run operator.py …    the commands of Kopf

Options of fnop come before the program, and those of the program after it:

python -m fnop.kopf --record run.fnop -- operator.py …
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.manifests import dump_yaml, echo_yaml
from fnop.adapters.common.plain import echo
from fnop.adapters.common.spreading import SpreadingCommand
from fnop.adapters.kopf.commands.cli import (
    check_simulation,
    main as commands,
    own_options,
    populate,
)
from fnop.adapters.kopf.commands.finder import install
from fnop.adapters.kopf.declaring.registry import get_default_registry
from fnop.adapters.kopf.running.extras import extras_given
from fnop.adapters.running.embedding import ConfigurationProblem

__all__ = ["main", "run_program"]

_NAME = "python -m fnop.kopf"
_USAGE = (
    f"usage: {_NAME} [OPTIONS] [--] [FILE | -m MODULE] ..., or "
    f"{_NAME} [run | --help] ..."
)

_OPTIONS = SpreadingCommand(_NAME)
own_options(_OPTIONS)
_WITH_VALUES = frozenset(
    name
    for each in _OPTIONS.params
    if isinstance(each, click.Option) and not each.is_flag
    for name in each.opts
)


def main() -> None:
    """Run the program that the command line names; `import kopf` finds fnop in it."""
    install()
    given = sys.argv[1:]
    if not given or given[0] == "--help":
        for line in _help().splitlines():
            echo(line)
        sys.exit(0 if given else EXIT_USAGE)
    if given[0] in ("--version", *commands.commands):
        commands(prog_name=_NAME)
        return
    own, program = _split(given)
    if not program or (program[0].startswith("-") and program[0] != "-m"):
        sys.exit(_USAGE)
    if program[0] == "-m" and len(program) < 2:
        sys.exit(_USAGE)
    _run(program, _options_in(own))


def _help() -> str:
    """The help about commands of Kopf, and then about programs."""
    about_commands = commands.get_help(click.Context(commands, info_name=_NAME))
    about_programs = click.HelpFormatter()
    _OPTIONS.format_options(click.Context(_OPTIONS), about_programs)
    return (
        f"{about_commands}\n\n"
        f"A program that starts its operator itself: {_NAME} [OPTIONS] -- FILE ...\n"
        f"or {_NAME} [OPTIONS] -- -m MODULE ...\n\n{about_programs.getvalue()}"
    )


def _options_in(own: Sequence[str]) -> dict[str, Any]:
    """The values of fnop's options; a wrong call ends the program."""
    try:
        context = _OPTIONS.make_context(_NAME, [*own], auto_envvar_prefix="KOPF_RUN")
        found: dict[str, Any] = context.params
        clusters = found["kubeconfig"], found["kube_context"]
        check_simulation(
            found["simulate"], found["served"], found["seconds"], *clusters
        )
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    return found


def _run(program: Sequence[str], options: Mapping[str, Any]) -> None:
    """Run a program with options of fnop, which are for all of its operators."""
    extras = {name: options[name] for name in ("record", "metrics", "kubeconfig")}
    with extras_given({**extras, "context": options["kube_context"]}) as has_begun:
        try:
            if options["served"]:
                _run_served(program, options["simulate"], options["seconds"])
            else:
                run_program(program)
        except ConfigurationProblem as problem:
            fail(str(problem))
        if not has_begun() and not get_default_registry().is_empty:
            words = " ".join(program[:2] if program[0] == "-m" else program[:1])
            warn(
                f"{words} declares handlers, and has started no operator; to run them, "
                f"write: fnop run --kopf {words}"
            )


def run_program(given: Sequence[str]) -> None:
    """Run a file, or the module after `-m`, as Python runs its main module."""
    if given[0] == "-m":
        sys.argv = [*given[1:]]
        if not _is_found(given[1]):
            fail(f"there is no module {given[1]}")
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)
        return
    if not Path(given[0]).exists():
        fail(f"there is no file {given[0]}")
    sys.argv = [*given]
    sys.path.insert(0, str(Path(given[0]).resolve().parent))
    # As Python has it in `__file__`: the file may be named from another folder later,
    # and the id of a lambda has it.
    runpy.run_path(str(Path(given[0]).absolute()), run_name="__main__")


def _is_found(module: str) -> bool:
    """Whether there is a module; its packages are imported for that."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{module}.".startswith(f"{problem.name}."):
            raise  # an import of the program's own
        return False


def _split(given: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The options of fnop, and the program with its own arguments."""
    position = 0
    while position < len(given) and (name := given[position]).startswith("--"):
        if name == "--":
            return given[:position], given[position + 1 :]
        if name == "--simulate":  # it takes all files that follow it
            position += 1
            while position < len(given) and not given[position].startswith("-"):
                position += 1
            continue
        has_value = name in _WITH_VALUES and "=" not in name
        position += 2 if has_value else 1
    return given[:position], given[position:]


def _run_served(
    program: Sequence[str], simulate: Sequence[str], seconds: float | None
) -> None:
    """Run a program on a simulated cluster, and print its objects at the end."""
    from fnop.adapters.serving.live_cluster import served_here

    with served_here() as live:
        populate(live, simulate)
        try:
            with _ended_after(seconds):
                run_program(program)
        finally:
            echo_yaml(dump_yaml(live.objects()))


@contextmanager
def _ended_after(seconds: float | None) -> Iterator[None]:
    """End the program in the block after some seconds, as Ctrl-C does."""
    if seconds is None:
        yield
        return
    is_over = threading.Event()

    def interrupt() -> None:
        is_over.set()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if not is_over.is_set():
            raise
    finally:
        timer.cancel()
