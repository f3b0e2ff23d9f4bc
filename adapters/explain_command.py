"""`fnop explain`: why an object is as it is, and what comes next."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from fnop.adapters.explain_report import as_json, as_lines
from fnop.adapters.loading import LoadProblem, load
from fnop.adapters.name_options import a_name, a_namespace
from fnop.adapters.operator_settings import signing, storage_at, told_settings
from fnop.adapters.plain import echo, one_line
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.explaining.facts import Evidence, Recorded
from fnop.core.explaining.fitting import handlers_for
from fnop.core.explaining.recorded import recorded_of
from fnop.core.explaining.surroundings import operators_on
from fnop.core.explaining.telling import explain as story_of
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.registry import default_registry
from fnop.core.handlers.settings import Settings
from fnop.core.values.body import Body
from fnop.interpreters.clock import SystemClock
from fnop.interpreters.explaining import Gatherer
from fnop.interpreters.protocol import Api, Unreachable
from fnop.interpreters.reading import ReadProblem

__all__ = ["explain", "explained"]

EXIT_ERROR, EXIT_USAGE = 1, 2
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
@click.option("--context", metavar="NAME", help="The kubeconfig's context.")
@click.option("--kubeconfig", type=click.Path(), help="The kubeconfig file.")
@click.option(
    "--name",
    metavar="NAME",
    help="The operator's name, as `fnop run --name` has it; by default the one that "
    "has left marks on the object.",
)
@click.option(
    "--operator",
    "paths",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The operator's file: its settings are used, and its filters are asked.",
)
@click.option(
    "-m",
    "--module",
    multiple=True,
    metavar="NAME",
    help="The operator as an importable module.",
)
@click.option(
    "--state",
    "places",
    multiple=True,
    metavar="PLACE",
    help="Another place of the state: the prefix of an annotation, such as "
    "example.com, or a field, such as status.example.state; repeat it for several.",
)
@click.option(
    "--state-key-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Check the signature of the state with these keys.",
)
@click.option(
    "-P",
    "--peering",
    default="default",
    show_default=True,
    callback=a_name,
    metavar="NAME",
    help="The peering object in which operators are looked for.",
)
@click.option(
    "--record",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A recording (`fnop run --record`): what it has about the object.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"], case_sensitive=False),
    default="text",
    show_default=True,
    help="The form of the story.",
)
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
    kind, name = _named(words)
    try:
        given = Settings(options["name"] or "default")
        storages = tuple(map(storage_at, options["places"]))
        given = signing(given, options["state_key_file"])
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    handlers = _handlers(paths, module)
    settings = told_settings(handlers or (), given, storages, _warn)
    from fnop.adapters.kubernetes import ConfigurationProblem

    try:
        evidence = asyncio.run(_connected(kind, name, settings, handlers, options))
    except ConfigurationProblem as problem:
        _fail(str(problem))
    except Unreachable as problem:
        _fail(f"the API server cannot be reached: {problem}")
    except ReadProblem as problem:
        _fail(str(problem))
    _print(replace(evidence, recorded=_recorded(evidence, options)), options)


def _named(words: Sequence[str]) -> tuple[str, str]:
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
        _fail(str(problem))
    return default_registry.handlers


async def _connected(
    kind: str,
    name: str,
    settings: Settings,
    handlers: tuple[Handler, ...] | None,
    options: dict[str, Any],
) -> Evidence:
    from fnop.adapters.kubernetes import connect

    api = await connect(kubeconfig=options["kubeconfig"], context=options["context"])
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


async def explained(
    api: Api,
    kind: str,
    name: str,
    namespace: str,
    settings: Settings,
    *,
    handlers: tuple[Handler, ...] | None = None,
    is_named: bool = False,
    peering: str = "default",
) -> Evidence:
    """Read all that there is about an object.

    Without a name of the operator it is the one whose marks are on the object.  Raises
    `ReadProblem` where the object cannot be read.
    """
    gatherer = Gatherer(api)
    catalogue, problem = await gatherer.reader.catalogue()
    resource = _resource(catalogue, kind, problem)
    body = await gatherer.object(resource, namespace, name)
    found = Body(body)
    on = operators_on(found)
    if not is_named and settings.operator == "default" and on and "default" not in on:
        settings = settings.replace(operator=on[0])
    wall = SystemClock().now().wall
    evidence = await gatherer.evidence(
        catalogue, resource, body, settings, peering=peering, wall=wall
    )
    if problem is not None:
        unread = (*evidence.unread, f"some kinds: {problem}")
        evidence = replace(evidence, unread=unread)
    if handlers is None:
        return evidence
    facts = handlers_for(handlers, catalogue, resource, found, settings, wall)
    return replace(evidence, handlers=facts)


def _resource(catalogue: Catalogue, kind: str, problem: str | None) -> Resource:
    """The kind of a name as kubectl takes it, in whatever case."""
    for word in (kind, kind.lower()):
        found = catalogue.lookup(word)
        if found is not None:
            return found
    rest = f" (some kinds could not be read: {problem})" if problem else ""
    raise ReadProblem(f"{catalogue.absence(kind)}{rest}")


def _recorded(
    evidence: Evidence, options: dict[str, Any]
) -> tuple[Recorded, ...] | None:
    path = options["record"]
    if path is None:
        return None
    from fnop.interpreters.recordings import (
        RecordingProblem,
        read_header,
        read_records,
    )

    body = Body(dict(evidence.body))
    with Path(path).open("rb") as file:
        try:
            records = read_records(file)
            read_header(records)
            return recorded_of(records, evidence.resource, body.namespace, body.name)
        except RecordingProblem as problem:
            _fail(f"{path}: {problem}")


def _print(evidence: Evidence, options: dict[str, Any]) -> None:
    story = story_of(evidence)
    if options["output"].lower() == "json":
        # Escapes of JSON keep a terminal safe from what others have written.
        echo(json.dumps(as_json(story)))
        return
    width = min(shutil.get_terminal_size((_WIDTH_MAX, 24)).columns, _WIDTH_MAX)
    for line in as_lines(story, width):
        echo(one_line(line))


def _warn(sentence: str) -> None:
    echo(f"fnop: {sentence}", err=True)


def _fail(sentence: str, status: int = EXIT_ERROR) -> NoReturn:
    _warn(sentence)
    sys.exit(status)
