"""`fnop uninstall`: objects need not wait for an operator that is gone."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from fnop.adapters.cli.option_fields import declared, option, takes
from fnop.adapters.cli.options import (
    ClusterOptions,
    ScopeOptions,
    files,
    shared,
)
from fnop.adapters.common.endings import EXIT_ERROR, EXIT_USAGE, fail, warn
from fnop.adapters.common.loading import LoadProblem, load
from fnop.adapters.common.operator_settings import (
    state_places,
    storage_at,
    told_settings,
)
from fnop.adapters.common.plain import echo
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.declare.settings import Settings
from fnop.core.operator.uninstalling import Tally, kinds_named
from fnop.core.values.errors import described, number_of
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import Api, Unreachable
from fnop.interpreters.runtime.reading import ReadProblem
from fnop.interpreters.runtime.uninstalling import Configuration, Uninstaller

__all__ = ["uninstall", "uninstalled"]

# The number of objects of each kind that are named if they could not be freed.
_SHOWN_MAX = 5
# Progress is reported after this number of objects.
_TOLD_EACH = 100


@dataclass(frozen=True, kw_only=True)
class UninstallOptions:
    """The options of `fnop uninstall`."""

    paths: tuple[str, ...] = declared(files)
    module: tuple[str, ...] = declared(shared("module"))
    scope: ScopeOptions
    name: str = declared(shared("name"))
    peering: str = declared(shared("peering", default="default", show_default=True))
    places: tuple[str, ...] = declared(state_places)
    dry_run: bool = option("--dry-run", is_flag=True, help="Count, and change nothing.")
    yes: bool = option("-y", "--yes", is_flag=True, help="Do not ask.")
    cluster: ClusterOptions


@click.command()
@takes(UninstallOptions)
def uninstall(given: UninstallOptions) -> None:
    """Take an operator's finalizers, state and conditions off all objects.

    Without this command, objects with the operator's finalizer can never be deleted
    once the operator is gone.  fnop first deletes the operator's webhook
    configurations, which refuse writes without a running operator.  Stop the operator
    before, because a running operator restores all of this.

    \b
      fnop uninstall operator.py --dry-run
      fnop uninstall operator.py -n default

    fnop looks at the kinds that the handlers name. It calls the startup handlers, for
    the settings that they return: the place of the state, and the operator's name.
    Objects that wait to be deleted disappear at once, and fnop does not call their
    deletion handlers.

    Exit status: 0 when nothing is left, or with --dry-run; 1 when something could not
    be read or changed, or you have answered no; 2 for a wrong call.
    """
    try:
        settings = Settings(given.name, given.scope.namespaces)
        storages = tuple(map(storage_at, given.places))
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    handlers = _handlers(given.paths, given.module)
    settings = told_settings(handlers, settings, storages, warn)
    from fnop.adapters.kubernetes.client import ConfigurationProblem

    try:
        status = asyncio.run(_connected(handlers, settings, given))
    except (ConfigurationProblem, Unreachable, ReadProblem) as problem:
        fail(str(problem))
    sys.exit(status)


def _handlers(paths: Sequence[str], modules: Sequence[str]) -> tuple[Handler, ...]:
    """The handlers that importing the files has declared."""
    if not paths and not modules:
        raise click.UsageError(
            "name the operator's file, such as: fnop uninstall operator.py"
        )
    try:
        load(paths, modules)
    except LoadProblem as problem:
        fail(str(problem))
    handlers = default_registry.handlers
    if not any(each.selector for each in handlers):
        names = ", ".join([*paths, *modules])
        fail(f"{names} declares no handlers of objects", EXIT_USAGE)
    return handlers


async def _connected(
    handlers: tuple[Handler, ...], settings: Settings, given: UninstallOptions
) -> int:
    async with given.cluster.connected() as api:
        return await uninstalled(
            api,
            handlers,
            settings,
            peering=given.peering,
            dry_run=given.dry_run,
            yes=given.yes,
        )


async def uninstalled(
    api: Api,
    handlers: tuple[Handler, ...],
    settings: Settings,
    *,
    peering: str = "default",
    dry_run: bool = False,
    yes: bool = False,
) -> int:
    """Count, ask, strip, and count again; return the exit status."""
    uninstaller = Uninstaller(api, settings, jitter=random.random)
    catalogue, problem = await uninstaller.reader.catalogue()
    if problem is not None:
        warn(f"not all kinds of the API server are known: {problem}")
    kinds, unserved = _find_kinds(handlers, catalogue)
    for each in unserved:
        warn(f"the API server serves no {each!r}: there are no such objects")
    namespaces = await uninstaller.namespaces(settings.namespaces)
    if namespaces == ():
        fail(f"no namespace is meant by {', '.join(settings.namespaces or ())}")
    registered, refused = await _print_webhooks(uninstaller, handlers, catalogue)
    counts, unread = await _count_objects(uninstaller, kinds, namespaces)
    complete = problem is None and not unread and not refused
    total = _sum(counts.values())
    if not total.objects and not registered:
        echo(f"nothing carries marks of {settings.marker}")
        return 0 if complete else EXIT_ERROR
    if total.deleting:
        echo(
            f"being deleted, and held back by the finalizer: {total.deleting}; their "
            "deletion handlers will not be called"
        )
    signs = await uninstaller.running(
        catalogue,
        namespaces,
        lease=f"fnop-{settings.operator}",
        peering=peering,
        wall=SystemClock().now().wall,
    )
    for sign in signs:
        warn(f"{sign}; stop the operator first")
    if dry_run:
        echo("nothing was changed (--dry-run)")
        return 0 if complete else EXIT_ERROR
    if not yes and not _confirm(total, settings.marker, registered):
        echo("nothing was changed")
        return EXIT_ERROR
    # First: without a server to answer them, webhooks may refuse the following writes.
    unregistered = await _delete_webhooks(uninstaller, registered)
    freed = await _strip_marks(uninstaller, counts, namespaces)
    return 0 if complete and unregistered and freed else EXIT_ERROR


def _find_kinds(
    handlers: tuple[Handler, ...], catalogue: Catalogue
) -> tuple[tuple[Resource, ...], tuple[str, ...]]:
    try:
        return kinds_named(handlers, catalogue)
    except Exception as problem:  # of an author's function that names kinds
        fail(f"which kinds are meant cannot be told: {described(problem)}")


def _confirm(total: Tally, marker: str, registered: Sequence[Configuration]) -> bool:
    question = _question(total, marker, registered)
    try:
        return click.confirm(f"The operator must not run any more. {question}")
    except click.Abort:  # no terminal to answer
        echo()
        return False


async def _print_webhooks(
    uninstaller: Uninstaller, handlers: Iterable[Handler], catalogue: Catalogue
) -> tuple[list[Configuration], bool]:
    """Print the operator's webhook configurations; also returns if reading failed."""
    try:
        found = await uninstaller.configurations(catalogue)
    except ReadProblem as problem:
        # Without such handlers there should be no webhooks, and rarely a right to read
        # them.
        if not any(each.role in ADMISSION for each in handlers):
            return [], False
        warn(str(problem))
        return [], True
    for each in found:
        echo(f"{each.label}: {number_of(each.webhooks, 'webhook')}")
    return found, False


async def _delete_webhooks(
    uninstaller: Uninstaller, registered: Iterable[Configuration]
) -> bool:
    """Delete the webhook configurations and print each; False if any is left."""
    complete = True
    for each in registered:
        problem = await uninstaller.unregister(each)
        if problem is None:
            echo(f"{each.label}: deleted")
        else:
            warn(f"{each.label} stays: {problem}")
            complete = False
    return complete


async def _count_objects(
    uninstaller: Uninstaller,
    kinds: Sequence[Resource],
    namespaces: tuple[str, ...] | None,
) -> tuple[dict[Resource, Tally], int]:
    """Print the count of each kind; return the number of kinds without a count."""
    counts: dict[Resource, Tally] = {}
    unread = 0
    for kind in kinds:
        try:
            counts[kind] = await uninstaller.count(kind, namespaces)
        except ReadProblem as problem:
            unread += 1
            warn(str(problem))
        else:
            echo(f"{kind.label}: {_counts(counts[kind])}")
    return counts, unread


async def _strip_marks(
    uninstaller: Uninstaller,
    counts: dict[Resource, Tally],
    namespaces: tuple[str, ...] | None,
) -> bool:
    """Take the marks off, report the result, and count again: whether none is left."""
    marked = {kind: tally for kind, tally in counts.items() if tally.objects}
    complete = True
    for kind, tally in marked.items():
        progress = _progress(kind, tally.objects)
        done, failed = await uninstaller.strip(kind, namespaces, progress)
        echo(f"{kind.label}: taken off {number_of(done, 'object')}")
        _tell_failed(kind, failed)
        complete = complete and not failed
    if not complete:
        return False
    return await _is_clean(uninstaller, tuple(marked), namespaces)


def _progress(kind: Resource, of: int) -> Callable[[int], None]:
    """A line now and then, if it takes long."""
    told = 0

    def tell(done: int) -> None:
        nonlocal told
        if told + _TOLD_EACH <= done < of:
            told = done
            echo(f"{kind.label}: {done} of {of}", err=True)

    return tell


async def _is_clean(
    uninstaller: Uninstaller,
    kinds: Sequence[Resource],
    namespaces: tuple[str, ...] | None,
) -> bool:
    again = _sum([await uninstaller.count(kind, namespaces) for kind in kinds])
    if again.objects:
        what = number_of(again.objects, "object")
        verb = "carries" if again.objects == 1 else "carry"
        warn(f"{what} {verb} marks again; stop the operator, then run this once more")
    return not again.objects


def _tell_failed(kind: Resource, failed: dict[str, str]) -> None:
    for name, problem in [*failed.items()][:_SHOWN_MAX]:
        warn(f"{kind.label} {name} keeps its marks: {problem}")
    if len(failed) > _SHOWN_MAX:
        rest = len(failed) - _SHOWN_MAX
        warn(f"{kind.label}: {number_of(rest, 'other object')} likewise")


# ---------------------------------------------------------------------- words


def _sum(tallies: Any) -> Tally:
    return Tally(*map(sum, zip(*tallies, strict=True))) if tallies else Tally()


def _question(total: Tally, marker: str, registered: Sequence[Configuration]) -> str:
    """
    >>> _question(Tally(4, 2), "fnop.dev/a", [])
    'Take the marks of fnop.dev/a off 2 objects?'
    """
    parts = []
    if registered:
        parts.append(f"delete {number_of(len(registered), 'webhook configuration')}")
    if total.objects:
        objects = number_of(total.objects, "object")
        parts.append(f"take the marks of {marker} off {objects}")
    text = " and ".join(parts)
    return f"{text[0].upper()}{text[1:]}?"


def _counts(tally: Tally) -> str:
    """
    >>> _counts(Tally(4, 2, 2, 1))
    '2 of 4 objects carry marks: 2 finalizers, 1 state'
    >>> _counts(Tally(1))
    'none of 1 object carries marks'
    """
    of = number_of(tally.seen, "object")
    if not tally.objects:
        return f"none of {of} carries marks" if tally.seen else "there are none"
    marks = [
        number_of(count, name)
        for count, name in (
            (tally.finalizers, "finalizer"),
            (tally.states, "state"),
            (tally.conditions, "condition"),
        )
        if count
    ]
    verb = "carries" if tally.objects == 1 else "carry"
    return f"{tally.objects} of {of} {verb} marks: {', '.join(marks)}"
