"""The command `fnop`.

Each command is short: read the options, assemble the parts, report the result. Modules
that take long to import are imported by the command that needs them.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import click

import fnop
from fnop.adapters.cli.check import check
from fnop.adapters.cli.cluster import cluster
from fnop.adapters.cli.crd import crd
from fnop.adapters.cli.diff import diff
from fnop.adapters.cli.explain import explain
from fnop.adapters.cli.freeze import freeze, resume
from fnop.adapters.cli.new import new
from fnop.adapters.cli.olm import olm
from fnop.adapters.cli.plan import plan
from fnop.adapters.cli.rbac import rbac
from fnop.adapters.cli.replay import replay
from fnop.adapters.cli.run import run
from fnop.adapters.cli.uninstall import uninstall
from fnop.adapters.cli.webhooks import webhooks
from fnop.adapters.common.collector import calm_collector
from fnop.adapters.common.programs import interrupted
from fnop.adapters.common.streams import prepared
from fnop.core.values.errors import nearest

__all__ = ["main"]

_PREFIX = "FNOP"


class Commands(click.Group):
    """The commands; Ctrl-C ends any of them with a sentence."""

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
    command = None if name is None else main.commands.get(name)
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
_OF_SERVICE = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT(_\d+_|$)")


main.add_command(check)
main.add_command(cluster)
main.add_command(crd)
main.add_command(diff)
main.add_command(explain)
main.add_command(freeze)
main.add_command(new)
main.add_command(olm)
main.add_command(plan)
main.add_command(rbac)
main.add_command(replay)
main.add_command(resume)
main.add_command(run)
main.add_command(uninstall)
main.add_command(webhooks)
