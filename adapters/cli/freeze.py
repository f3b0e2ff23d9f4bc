"""`fnop freeze` and `fnop resume`: a person among the operators.

A record with a higher priority than the operators' freezes them all.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import click

from fnop.adapters.cli.option_fields import declared, option, takes
from fnop.adapters.cli.options import ClusterOptions, shared
from fnop.adapters.common.durations import duration
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


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """The operators that are meant, and who speaks to them."""

    namespace: tuple[str, ...] = declared(
        shared("namespace", "; repeat it for several")
    )
    all_namespaces: bool = declared(
        shared("all_namespaces", ". Either -n or -A is required")
    )
    peering: str = declared(shared("peering", default="default", show_default=True))
    identity: str | None = option(
        "-i", "--id", help="The record's author. By default your user name and host."
    )
    cluster: ClusterOptions

    def check(self) -> None:
        """Raise `click.UsageError` unless they say which operators are meant."""
        if bool(self.namespace) == self.all_namespaces:
            raise click.UsageError("say which operators: -n/--namespace NAME, or -A")
        if has_patterns(self.namespace):
            raise click.UsageError(
                "name each namespace; patterns are not supported here"
            )
        try:
            for each in self.namespace:
                check_namespace(each)
        except ValueError as problem:
            raise click.UsageError(str(problem)) from problem


@dataclass(frozen=True, kw_only=True)
class FreezeOptions:
    """The options of `fnop freeze`."""

    where: ResumeOptions
    priority: int = declared(shared("priority", default=FREEZE_PRIORITY))
    dev: bool = option(
        "--dev", is_flag=True, help=f"The same as --priority={DEV_PRIORITY}."
    )
    lifetime: int = option(
        "-t",
        "--lifetime",
        type=duration(least=1, is_whole=True),
        default="1h",
        show_default=True,
        help="The time after which the operators resume by themselves (90s, 15m, "
        "1h30m).",
    )
    message: str = option(
        "-m", "--message", default="", help="The reason; the operators log it."
    )


@click.command()
@takes(FreezeOptions)
def freeze(given: FreezeOptions) -> None:
    """Freeze operators, until `fnop resume`.

    This command writes a record into the peering object. Operators stop handling
    objects while their peering object has a record of a higher priority than theirs.
    Operators have the priority 0, unless they run with --priority or --dev (666).

    \b
      fnop freeze -A -m "the storage is being moved"
      fnop freeze -A -p 1000    # also operators that run with --dev

    Exit status: 0 when the record is written; 1 when it cannot be written; 2 for a
    wrong call.
    """
    from fnop.adapters.kubernetes.identity import person

    identity, lifetime = person(given.where.identity), given.lifetime
    priority = DEV_PRIORITY if given.dev else given.priority
    record = record_of(priority, lifetime, SystemClock().now().wall, given.message)
    found = _patch_all(renewal_patch(identity, record), given.where)
    for place in found:
        echo(f"frozen: {place}, by {identity}, for {lifetime} s")


@click.command()
@takes(ResumeOptions)
def resume(given: ResumeOptions) -> None:
    """Resume operators that `fnop freeze` has frozen.

    This command removes the record of `fnop freeze`, with the same -n or -A, --peering
    and --id.

    Exit status: 0 when the record is removed; 1 when it cannot be removed; 2 for a
    wrong call.
    """
    from fnop.adapters.kubernetes.identity import person

    identity = person(given.identity)
    for place in _patch_all(removal_patch([identity]), given):
        echo(f"resumed: {place}, by {identity}")


def _patch_all(patch: dict[str, Any], where: ResumeOptions) -> list[str]:
    """Write a record into each of the peering objects; return their places."""
    where.check()
    from fnop.adapters.kubernetes.client import ConfigurationProblem

    try:
        return asyncio.run(_send(patch, where))
    except (ConfigurationProblem, Unreachable) as problem:
        fail(str(problem))


async def _send(patch: dict[str, Any], where: ResumeOptions) -> list[str]:
    async with where.cluster.connected() as api:
        found: list[str] = []
        for namespace in where.namespace or (None,):
            found += await _send_into(api, patch, where.peering, namespace)
        return found


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
            f"the peering object {name!r} does not exist {scope}; create it, or name "
            "the one that your operators use with --peering (see "
            "docs/how-to/run-beside-another-operator.md)"
        )
    return found
