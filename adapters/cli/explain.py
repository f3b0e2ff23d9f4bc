"""`fnop explain`: the reasons for an object's state, and its next changes."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fnop.adapters.cli.name_options import a_namespace
from fnop.adapters.cli.options import cluster_of, of_cluster, shared
from fnop.adapters.common.endings import fail, warn
from fnop.adapters.common.loading import LoadProblem, load
from fnop.adapters.common.operator_settings import (
    signing,
    state_places,
    storage_at,
    told_settings,
)
from fnop.adapters.common.plain import echo, one_line
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.settings import Settings
from fnop.interpreters.runtime.protocol import Unreachable

if TYPE_CHECKING:
    from fnop.interpreters.explain.facts import Evidence

__all__ = ["explain"]

_WIDTH_MAX = 110


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="KIND/NAME")
@click.option(
    "-n",
    "--namespace",
    callback=a_namespace,
    metavar="NAME",
    help="The object's namespace; by default that of the kubeconfig's context.",
)
@of_cluster
@shared(
    "name",
    "; by default the one that has left marks on the object",
    default=None,
    show_default=False,
)
@click.option(
    "--operator",
    "paths",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The operator's file: its settings are used, and its filters are asked.",
)
@shared("module")
@state_places
@shared("state_key_file")
@shared("peering", default="default", show_default=True)
@click.option(
    "--record",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A recording (`fnop run --record`): what it has about the object.",
)
@shared("output", type=click.Choice(["text", "json"], case_sensitive=False))
def explain(
    words: Sequence[str],
    paths: Sequence[str],
    module: Sequence[str],
    **options: Any,
) -> None:
    """Explain why an object is as it is, and what comes next.

    The story is read from the cluster: the operator's state and conditions on the
    object, its children, Events, who has written it, and whether an operator is alive.
    Nothing is changed.  KIND is as for kubectl: databases, db, databases.fnop.dev.

    \b
      fnop explain databases/orders -n prod
      fnop explain db/orders --operator operator.py --record run.fnop

    Exit status: 0 when the object was read, 1 when not, 2 for a wrong call.
    """
    kind, name = _kind_and_name(words)
    try:
        given = Settings(options["name"] or "default")
        storages = tuple(map(storage_at, options["places"]))
        given = signing(given, options["state_key_file"])
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    handlers = _handlers(paths, module)
    settings = told_settings(handlers or (), given, storages, warn)
    from fnop.adapters.kubernetes.client import ConfigurationProblem
    from fnop.adapters.reports.explaining import with_recording
    from fnop.interpreters.recording.format.reader import Damage
    from fnop.interpreters.runtime.reading import ReadProblem

    damage = Damage()
    try:
        evidence = asyncio.run(_connected(kind, name, settings, handlers, options))
        evidence = with_recording(evidence, options["record"], damage)
    except ConfigurationProblem as problem:
        fail(str(problem))
    except Unreachable as problem:
        fail(f"the API server cannot be reached: {problem}")
    except ReadProblem as problem:
        fail(str(problem))
    if damage.problem is not None:
        warn(f"{options['record']}: {damage.problem}")
    _print(evidence, options)


def _kind_and_name(words: Sequence[str]) -> tuple[str, str]:
    """The kind and the name, of `KIND/NAME` or `KIND NAME`."""
    parts = words[0].split("/") if len(words) == 1 else [*words]
    if len(parts) != 2 or not all(parts) or "/" in "".join(parts):
        raise click.UsageError(
            "name one object as KIND/NAME, such as: fnop explain databases/orders"
        )
    return parts[0], parts[1]


def _handlers(
    paths: Sequence[str], modules: Sequence[str]
) -> tuple[Handler, ...] | None:
    if not paths and not modules:
        return None
    try:
        load(paths, modules)
    except LoadProblem as problem:
        fail(str(problem))
    return default_registry.handlers


async def _connected(
    kind: str,
    name: str,
    settings: Settings,
    handlers: tuple[Handler, ...] | None,
    options: dict[str, Any],
) -> Evidence:
    from fnop.adapters.kubernetes.client import connect
    from fnop.adapters.reports.explaining import explained

    api = await connect(**cluster_of(options))
    try:
        return await explained(
            api,
            kind,
            name,
            options["namespace"] or api.default_namespace or "default",
            settings,
            handlers=handlers,
            is_named=options["name"] is not None,
            peering=options["peering"],
        )
    finally:
        await api.close()


def _print(evidence: Evidence, options: dict[str, Any]) -> None:
    from fnop.adapters.reports.explain_report import as_json, as_lines
    from fnop.interpreters.explain.telling import explain as story_of

    story = story_of(evidence)
    if options["output"].lower() == "json":
        # Escapes of JSON keep a terminal safe from foreign text.
        echo(json.dumps(as_json(story)))
        return
    width = min(shutil.get_terminal_size((_WIDTH_MAX, 24)).columns, _WIDTH_MAX)
    for line in as_lines(story, width):
        echo(one_line(line))
