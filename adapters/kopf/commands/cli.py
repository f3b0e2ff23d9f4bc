"""The commands of Kopf: `run`, with its own options and variables."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from fnop.adapters.common.endings import EXIT_USAGE, fail
from fnop.adapters.common.loading import SCRIPT, LoadProblem, load
from fnop.adapters.kopf.commands.finder import install
from fnop.adapters.kopf.declaring.registry import OperatorRegistry, get_default_registry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.embedding import ActivityError, operator
from fnop.adapters.kopf.running.logs import LogFormat, configure
from fnop.adapters.running.embedding import ConfigurationProblem, OperatorFailed

__all__ = ["CliControls", "main", "run"]

_FORMATS = {each.name.lower(): each for each in LogFormat}
_DEV_PRIORITY = 666


class CliControls:
    """Values that a test gives to the command, in place of its own."""

    def __init__(
        self,
        *,
        ready_flag: Any = None,
        stop_flag: Any = None,
        registry: OperatorRegistry | None = None,
        settings: OperatorSettings | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.ready_flag = ready_flag
        self.stop_flag = stop_flag
        self.registry = registry
        self.settings = settings
        self.loop = loop


def logging_options(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the log, which the decorated command does not see."""

    @click.option("-v", "--verbose", is_flag=True, help="Log the details.")
    @click.option("-d", "--debug", is_flag=True, help="Log everything.")
    @click.option("-q", "--quiet", is_flag=True, help="Log warnings and errors only.")
    @click.option(
        "--log-format",
        type=click.Choice([*_FORMATS], case_sensitive=False),
        default="full",
        help="How log lines look.",
    )
    @click.option(
        "--log-refkey", help="The key of the object in lines of JSON: object."
    )
    @click.option(
        "--log-prefix/--no-log-prefix",
        default=None,
        help="Begin lines with the object they are about.",
    )
    @functools.wraps(fn)
    def wrapper(
        verbose: bool,
        debug: bool,
        quiet: bool,
        log_format: str,
        log_refkey: str | None,
        log_prefix: bool | None,
        **options: Any,
    ) -> Any:
        configure(
            debug=debug,
            verbose=verbose,
            quiet=quiet,
            log_format=_FORMATS[log_format.lower()],
            log_refkey=log_refkey,
            log_prefix=log_prefix,
        )
        return fn(**options)

    return wrapper


@click.group(name="kopf", context_settings={"auto_envvar_prefix": "KOPF"})
def main() -> None:
    """Run operators that are written with Kopf."""


@main.command()
@logging_options
@click.option(
    "-A",
    "--all-namespaces",
    "clusterwide",
    is_flag=True,
    envvar="KOPF_RUN_CLUSTERWIDE",
    help="Serve the whole cluster.",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    envvar=["KOPF_RUN_NAMESPACES", "KOPF_RUN_NAMESPACE"],
    help="Serve these namespaces: names or patterns.",
)
@click.option("--standalone", is_flag=True, default=None, help="Look for no peers.")
@click.option("--dev", "dev", is_flag=True, help="The same as --priority=666.")
@click.option(
    "-L",
    "--liveness",
    "liveness_endpoint",
    envvar="KOPF_RUN_LIVENESS_ENDPOINT",
    metavar="URL",
    help="Serve the liveness endpoint here.",
)
@click.option(
    "-P",
    "--peering",
    "peering_name",
    envvar="KOPF_RUN_PEERING",
    help="The peering, which has to exist.",
)
@click.option("-p", "--priority", type=int, help="The priority among peers.")
@click.option(
    "-m",
    "--module",
    "modules",
    multiple=True,
    envvar="KOPF_RUN_MODULES",
    help="Import this module.",
)
@click.option(
    "--record",
    type=click.Path(),
    metavar="PATH",
    help="Write a recording to this file.",
)
@click.option(
    "--metrics", metavar="URL", help="Serve metrics for Prometheus here: http://:9090."
)
@click.option("--kubeconfig", metavar="FILE", help="The kubeconfig to connect by.")
@click.option("--context", "kube_context", help="The context in the kubeconfig.")
@click.argument("paths", nargs=-1)
@click.pass_context
def run(
    context: click.Context,
    /,
    paths: Sequence[str],
    modules: Sequence[str],
    namespaces: Sequence[str],
    dev: bool,
    priority: int | None,
    kube_context: str | None,
    **options: Any,
) -> None:
    """Run an operator that is written with Kopf, without Kopf.

    Its options and variables are those of `kopf run`.

    Exit status: 0 when stopped; 1 when the operator cannot run; 2 for a wrong call.
    """
    given = [each for each in namespaces if each]
    if options["clusterwide"] and given:
        raise click.UsageError("use either --namespace or --all-namespaces")
    controls = context.find_object(CliControls) or CliControls()
    try:
        install()
        _forget(paths)
        load(paths, modules)
    except LoadProblem as problem:
        fail(str(problem))
    registry = controls.registry or get_default_registry()
    if registry.is_empty:
        names = ", ".join([*paths, *modules]) or "the operator"
        fail(
            f"{names} declares no handlers with Kopf's decorators; without --kopf it "
            "runs as an operator of fnop",
            EXIT_USAGE,
        )
    work = operator(
        registry=registry,
        settings=controls.settings,
        namespaces=given,
        priority=_DEV_PRIORITY if dev else priority,
        context=kube_context,
        ready_flag=controls.ready_flag,
        stop_flag=controls.stop_flag,
        **{**options, "clusterwide": options["clusterwide"] or not given},
    )
    try:
        if controls.loop is None:
            asyncio.run(work)
        else:
            controls.loop.run_until_complete(work)
    except (ConfigurationProblem, OperatorFailed, ActivityError) as problem:
        fail(str(problem))


def _forget(paths: Sequence[str]) -> None:
    """Forget files that were loaded before: each run executes them, as in Kopf."""
    files = {str(Path(path).resolve()) for path in paths}
    for name, module in list(sys.modules.items()):
        if name.startswith(SCRIPT) and getattr(module, "__file__", None) in files:
            del sys.modules[name]
