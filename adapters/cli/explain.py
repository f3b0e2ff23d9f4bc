"""`fnop explain`: the reasons for an object's state, and its next changes."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fnop.adapters.cli.option_fields import declared, option, takes
from fnop.adapters.cli.options import ClusterOptions, a_namespace, shared
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


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The options of `fnop explain`."""

    words: tuple[str, ...] = declared(
        click.argument("words", nargs=-1, required=True, metavar="KIND/NAME")
    )
    namespace: str | None = option(
        "-n",
        "--namespace",
        callback=a_namespace,
        metavar="NAME",
        help="The object's namespace; by default that of the kubeconfig's context.",
    )
    cluster: ClusterOptions
    name: str | None = declared(
        shared(
            "name",
            "; by default the one that has left marks on the object",
            default=None,
            show_default=False,
        )
    )
    paths: tuple[str, ...] = option(
        "--operator",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="The operator's file: fnop uses its settings, and asks its filters.",
    )
    module: tuple[str, ...] = declared(shared("module"))
    places: tuple[str, ...] = declared(state_places)
    state_key_file: str | None = declared(shared("state_key_file"))
    peering: str = declared(shared("peering", default="default", show_default=True))
    record: str | None = option(
        "--record",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="A recording (`fnop run --record`): show its lines about the object.",
    )
    output: str = declared(
        shared("output", type=click.Choice(["text", "json"], case_sensitive=False))
    )


@click.command()
@takes(ExplainOptions)
def explain(given: ExplainOptions) -> None:
    """Explain why an object is as it is, and what comes next.

    fnop reads the cluster, and changes nothing. It reads the operator's state and
    conditions on the object, the children, the Events, the writers of the fields, and
    whether an operator is alive.  KIND is as for kubectl: databases, db,
    databases.fnop.dev.

    \b
      fnop explain databases/orders -n prod
      fnop explain db/orders --operator operator.py --record run.fnop

    Exit status: 0 when the object was read, 1 when not, 2 for a wrong call.
    """
    kind, name = _kind_and_name(given.words)
    try:
        settings = Settings(given.name or "default")
        storages = tuple(map(storage_at, given.places))
        settings = signing(settings, given.state_key_file)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    handlers = _handlers(given.paths, given.module)
    settings = told_settings(handlers or (), settings, storages, warn)
    from fnop.adapters.kubernetes.client import ConfigurationProblem
    from fnop.adapters.reports.explaining import with_recording
    from fnop.interpreters.recording.format.reader import Damage
    from fnop.interpreters.runtime.reading import ReadProblem

    damage = Damage()
    try:
        evidence = asyncio.run(_connected(kind, name, settings, handlers, given))
        evidence = with_recording(evidence, given.record, damage)
    except ConfigurationProblem as problem:
        fail(str(problem))
    except Unreachable as problem:
        fail(f"the API server cannot be reached: {problem}")
    except ReadProblem as problem:
        fail(str(problem))
    if damage.problem is not None:
        warn(f"{given.record}: {damage.problem}")
    _print(evidence, given)


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
    if "kopf" in sys.modules and not default_registry.handlers:
        names = ", ".join([*paths, *modules])
        fail(
            f"{names} declares no handlers of fnop; without --operator, fnop explain "
            "reads the objects of any operator"
        )
    return default_registry.handlers


async def _connected(
    kind: str,
    name: str,
    settings: Settings,
    handlers: tuple[Handler, ...] | None,
    given: ExplainOptions,
) -> Evidence:
    from fnop.adapters.reports.explaining import explained

    async with given.cluster.connected() as api:
        return await explained(
            api,
            kind,
            name,
            given.namespace or api.default_namespace or "default",
            settings,
            handlers=handlers,
            is_named=given.name is not None,
            peering=given.peering,
        )


def _print(evidence: Evidence, given: ExplainOptions) -> None:
    from fnop.adapters.reports.explain_report import as_json, as_lines
    from fnop.interpreters.explain.telling import explain as story_of

    story = story_of(evidence)
    if given.output.lower() == "json":
        # Escapes of JSON keep a terminal safe from foreign text.
        echo(json.dumps(as_json(story)))
        return
    width = min(shutil.get_terminal_size((_WIDTH_MAX, 24)).columns, _WIDTH_MAX)
    for line in as_lines(story, width):
        echo(one_line(line))
