"""The command `fnop`.

Each command is short: read the options, assemble the parts, report the result. The
module of a command is imported when the command is called; it imports what takes long
only where it is needed.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

import fnop
from fnop.adapters.common.collector import calm_collector
from fnop.adapters.common.programs import interrupted
from fnop.adapters.common.streams import prepared
from fnop.core.values.errors import nearest
from fnop.effects.regexes import regex

__all__ = ["main"]

_PREFIX = "FNOP"
# The commands that are not in a module of their name.
_MODULES = {"resume": "freeze"}
# The commands, with their lines in the help, for which no module has to be imported.
_COMMANDS = {
    "check": "Try an operator with every fault, and judge each run.",
    "cluster": "Serve a simulated Kubernetes cluster over HTTP.",
    "crd": "Print the definitions (CRDs) of the kinds in some files.",
    "diff": "Compare two recorded runs: the first difference and its cause.",
    "explain": "Explain why an object is as it is, and what comes next.",
    "freeze": "Freeze operators, until `fnop resume`.",
    "new": "Make a new project: an operator that runs, with tests.",
    "olm": "Make a bundle for the Operator Lifecycle Manager.",
    "plan": "Show what an operator would do to a cluster now.",
    "port": "Report what to change in a Kopf operator.",
    "rbac": "Print the least rights that an operator needs.",
    "replay": "Show a recorded run, or call its handlers again.",
    "resume": "Resume operators that `fnop freeze` has frozen.",
    "run": "Run the operator of some files until it is stopped.",
    "uninstall": "Take an operator's finalizers and state off all objects.",
    "webhooks": "Print the configurations of an operator's webhooks.",
}


class Commands(click.Group):
    """The commands; Ctrl-C ends any of them with a sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of a name, or None if there is none."""
        if name not in _COMMANDS:
            return None
        module = import_module(f"fnop.adapters.cli.{_MODULES.get(name, name)}")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the names and lines of all commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items()])

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command as a process does, with streams that take any text."""
        with prepared():
            return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, which may end itself differently when it is interrupted."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            sys.exit(interrupted(interrupt))


@click.group(cls=Commands, context_settings={"auto_envvar_prefix": _PREFIX})
@click.version_option(fnop.__version__, prog_name="fnop")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Kubernetes operators as pure functions.

    An operator is a Python file with handlers.  `fnop run` executes it, on a real
    cluster or in a simulated one; `fnop replay` decides a recorded run again.
    """
    calm_collector()
    name = ctx.invoked_subcommand
    command = None if name is None else main.get_command(ctx, name)
    if command is not None:
        _check_variables(command)


def _check_variables(command: click.Command) -> None:
    """Refuse mistyped variables, which would have no effect."""
    prefix = f"{_PREFIX}_{command.name}_".upper()
    known = {f"{prefix}{each.name}".upper() for each in command.params}
    for name in sorted(os.environ):
        if not name.startswith(prefix) or name in known or _OF_SERVICE.search(name):
            continue
        near = nearest(name, known)
        hint = f"; did you mean {near}?" if near else ""
        wrong = getattr(command, "wrong_call", click.UsageError)
        raise wrong(
            f"the variable {name} belongs to no option of fnop {command.name}{hint}"
        )


# Kubernetes sets such variables for a Service, including one called fnop-run.
_OF_SERVICE = regex(r"_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT(_\d+_|$)")
