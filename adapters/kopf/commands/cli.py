"""The commands of Kopf: `run`, with its own options and variables."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from fnop.adapters.common.durations import duration
from fnop.adapters.common.endings import fail, warn
from fnop.adapters.common.manifests import (
    ManifestProblem,
    dump_yaml,
    echo_yaml,
    read_manifests,
)
from fnop.adapters.common.spreading import SpreadingCommand
from fnop.adapters.kopf.commands.loading import loaded
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.embedding import operator
from fnop.adapters.kopf.running.logs import LogFormat, configure
from fnop.adapters.kopf.running.startup import ActivityError
from fnop.adapters.kopf.running.translation import Unsupported
from fnop.adapters.running.embedding import ConfigurationProblem, OperatorFailed
from fnop.core.api.namespaces import check_namespace

if TYPE_CHECKING:
    from fnop.adapters.serving.live_cluster import Live

__all__ = [
    "CliControls",
    "check_simulation",
    "main",
    "own_options",
    "populate",
    "run",
]

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


# The options that Kopf does not have.
_OWN_OPTIONS = (
    click.option(
        "--record",
        type=click.Path(),
        metavar="PATH",
        help="Write a recording to this file.",
    ),
    click.option(
        "--metrics",
        metavar="URL",
        help="Serve metrics for Prometheus here: http://:9090. They need the extra "
        "fnop[metrics].",
    ),
    click.option(
        "--simulate",
        multiple=True,
        type=click.Path(exists=True, allow_dash=True),
        metavar="MANIFEST...",
        help="With --served: begin with the objects of these files and folders.",
    ),
    click.option(
        "--served",
        is_flag=True,
        help="Run on a simulated cluster, which is served on this machine for all "
        "clients of the operator, and print the final objects.",
    ),
    click.option(
        "--for",
        "seconds",
        type=duration(),
        help="With --served: stop after this time (90s, 15m, 1h30m).",
    ),
    click.option("--kubeconfig", metavar="FILE", help="The kubeconfig to connect by."),
    click.option("--context", "kube_context", help="The context in the kubeconfig."),
)


def own_options(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The options of fnop, for a command that runs an operator."""
    for each in reversed(_OWN_OPTIONS):
        fn = each(fn)
    return fn


@click.group(name="kopf", context_settings={"auto_envvar_prefix": "KOPF"})
def main() -> None:
    """Run operators that are written with Kopf."""


@main.command(cls=SpreadingCommand)
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
@own_options
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
    simulate: Sequence[str],
    served: bool,
    seconds: float | None,
    **options: Any,
) -> None:
    """Run an operator that is written with Kopf, without Kopf.

    Its options and variables are those of `kopf run`.

    \b
      fnop run --kopf operator.py -n default
      fnop run --kopf operator.py --simulate crd.yaml object.yaml --served

    Exit status: 0 when stopped; 1 when the operator cannot run; 2 for a wrong call.
    """
    given = [each for each in namespaces if each]
    try:
        for each in given:
            check_namespace(each)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from None
    if options["clusterwide"] and given:
        raise click.UsageError("use either --namespace or --all-namespaces")
    check_simulation(simulate, served, seconds, options["kubeconfig"], kube_context)
    controls = context.find_object(CliControls) or CliControls()
    options |= {
        "namespaces": given,
        "clusterwide": options["clusterwide"] or not given,
        "priority": _DEV_PRIORITY if dev else priority,
        "context": kube_context,
    }
    if not served:
        _run(controls, paths, modules, options)
        return
    from fnop.adapters.serving.live_cluster import served_here

    # The cluster is there before the operator's modules, which may look for it.
    with served_here() as live:
        populate(live, simulate)
        _run(controls, paths, modules, options, seconds)
        echo_yaml(dump_yaml(live.objects()))


def check_simulation(
    simulate: Sequence[str],
    served: bool,
    seconds: float | None,
    *of_clusters: str | None,
) -> None:
    """Refuse options of a simulated cluster that do not fit together."""
    if not served and simulate:
        raise click.UsageError(
            "a Kopf operator acts by itself, through clients, which need a cluster; "
            "add --served: then they find the simulated one"
        )
    if not served and seconds is not None:
        raise click.UsageError("--for needs --served")
    if served and not simulate:
        raise click.UsageError("--served needs --simulate MANIFEST...")
    if served and any(of_clusters):
        raise click.UsageError("use either --served, or --kubeconfig and --context")


def populate(live: Live, paths: Sequence[str]) -> None:
    """Create the objects of --simulate."""
    from fnop.adapters.serving.cluster_client import ObjectProblem

    try:
        live.populate(read_manifests(paths, warn))
    except (ManifestProblem, ObjectProblem) as problem:
        fail(str(problem))


def _run(
    controls: CliControls,
    paths: Sequence[str],
    modules: Sequence[str],
    options: dict[str, Any],
    seconds: float | None = None,
) -> None:
    """Load the operator, and run it until it ends, or for some seconds."""
    registry = loaded(paths, modules, controls.registry)
    work = operator(
        registry=registry,
        settings=controls.settings,
        ready_flag=controls.ready_flag,
        stop_flag=controls.stop_flag,
        _loaded=True,
        **options,
    )
    bounded = work if seconds is None else _at_most(seconds, work)
    try:
        if controls.loop is None:
            asyncio.run(bounded)
        else:
            controls.loop.run_until_complete(bounded)
    except (
        ActivityError,
        ConfigurationProblem,
        OperatorFailed,
        Unsupported,
    ) as problem:
        fail(str(problem))


async def _at_most(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    """Run the operator, and end it in order when the time is over."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)
