"""`fnop freeze` and `fnop resume`: a person among the operators.

A record with a higher priority than the operators' freezes them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from fnop.adapters.cli.options import cluster_of, of_cluster, shared
from fnop.adapters.common.endings import fail
from fnop.adapters.common.plain import echo
from fnop.core.api.namespaces import check_namespace, has_patterns
from fnop.core.api.resources import Resource, path_of
from fnop.core.peers.peering import kinds_for
from fnop.core.peers.peers import (
    DEV_PRIORITY,
    FREEZE_PRIORITY,
    record_of,
    removal_patch,
    renewal_patch,
)
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest, Unreachable

__all__ = ["freeze", "resume"]


def _options(command: Any) -> Any:
    for option in (
        of_cluster,
        click.option("-i", "--id", "identity", help="The record's author; you@host."),
        shared("peering", default="default", show_default=True),
        shared("all_namespaces"),
        shared("namespace", "; repeat it for several"),
    ):
        command = option(command)
    return command


@click.command()
@_options
@shared("priority", default=FREEZE_PRIORITY)
@click.option("--dev", is_flag=True, help=f"The same as --priority={DEV_PRIORITY}.")
@click.option(
    "-t",
    "--lifetime",
    type=click.IntRange(min=1),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="The time after which they resume by themselves.",
)
@click.option("-m", "--message", default="", help="The reason; the operators log it.")
def freeze(priority: int, dev: bool, lifetime: int, message: str, **where: Any) -> None:
    """Freeze operators, until `fnop resume`.

    Operators stop handling objects while their peering object has a record of a higher
    priority than theirs.

    \b
      fnop freeze -A -m "the storage is being moved"
    """
    from fnop.adapters.kubernetes.identity import person

    identity = person(where["identity"])
    wall = SystemClock().now().wall
    record = record_of(DEV_PRIORITY if dev else priority, lifetime, wall, message)
    found = _patch_all(renewal_patch(identity, record), where)
    for place in found:
        echo(f"frozen: {place}, by {identity}, for {lifetime} s")


@click.command()
@_options
def resume(**where: Any) -> None:
    """Resume operators that `fnop freeze` has frozen."""
    from fnop.adapters.kubernetes.identity import person

    identity = person(where["identity"])
    for place in _patch_all(removal_patch([identity]), where):
        echo(f"resumed: {place}, by {identity}")


def _patch_all(patch: dict[str, Any], where: dict[str, Any]) -> list[str]:
    """Write a record into each of the peering objects; return their places."""
    namespaces: Sequence[str] = where["namespace"]
    if bool(namespaces) == where["all_namespaces"]:
        raise click.UsageError("say which operators: -n/--namespace NAME, or -A")
    if has_patterns(namespaces):
        raise click.UsageError("name each namespace; patterns are not supported here")
    try:
        for each in namespaces:
            check_namespace(each)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    from fnop.adapters.kubernetes.client import ConfigurationProblem

    try:
        return asyncio.run(_send(patch, where))
    except (ConfigurationProblem, Unreachable) as problem:
        fail(str(problem))


async def _send(patch: dict[str, Any], where: dict[str, Any]) -> list[str]:
    from fnop.adapters.kubernetes.client import connect

    api = await connect(**cluster_of(where))
    try:
        found: list[str] = []
        for namespace in where["namespace"] or (None,):
            found += await _send_into(api, patch, where["peering"], namespace)
        return found
    finally:
        await api.close()


async def _send_into(
    api: Any, patch: dict[str, Any], name: str, namespace: str | None
) -> list[str]:
    found: list[str] = []
    for kind in kinds_for(None if namespace is None else [namespace]):
        plural, version, group = kind.split(".", 2)
        path = path_of(Resource(group, version, plural, ""), namespace, name)
        request = ApiRequest("PATCH", path, (), patch, MERGE_PATCH)
        response = await api.send(request)
        if response.status < 300:
            within = f" in {namespace}" if namespace else ""
            found.append(f"{plural}.{group} {name}{within}")
        elif response.status != 404:
            fail(f"{plural}.{group} {name}: {message_of(response)}")
    if not found:
        scope = f"in {namespace}" if namespace else "in the cluster"
        fail(
            f"there is no peering object {name!r} {scope}; operators that nobody can "
            "freeze have none (see docs/peering.md)"
        )
    return found
