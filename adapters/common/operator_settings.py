"""The settings, from its files, of an operator that does not run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.storage import AnnotationStorage, AnyStorage, StatusStorage
from fnop.core.operator.uninstalling import settings_told
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.interrupts import interruptible

__all__ = ["signing", "state_places", "storage_at", "told_settings"]

# The option of commands that read the operator's state from objects.
state_places = click.option(
    "--state",
    "places",
    multiple=True,
    metavar="PLACE",
    help="Another place of the state: the prefix of an annotation, such as "
    "example.com, or a field, such as status.example.state; repeat it for several.",
)


def storage_at(place: str) -> AnyStorage:
    """The storage at a place: the prefix of an annotation, or a field of the status.

    >>> storage_at("example.com")
    AnnotationStorage(prefix='example.com')
    >>> storage_at("status.example.state")
    StatusStorage(field='status.example.state')
    """
    is_field = place.startswith("status.")
    return StatusStorage(place) if is_field else AnnotationStorage(place)


def told_settings(
    handlers: tuple[Handler, ...],
    given: Settings,
    storages: Iterable[AnyStorage],
    warn: Callable[[str], None],
) -> Settings:
    """The settings that the operator has, searched for in these storages, too.

    `warn` gets a sentence for each startup handler whose settings stay unknown.
    """
    with interruptible():
        told, silent = settings_told(handlers, given, SystemClock().now())
    for name in silent:
        warn(
            f"the startup handler {name} does not tell its settings without being "
            "answered; if it gives the operator another name or storage, say so with "
            "--name and --state"
        )
    return told.replace(
        namespaces=given.namespaces,
        former_storages=(*told.former_storages, *storages),
    )


def signing(settings: Settings, path: str | None) -> Settings:
    """The settings with the keys of a file, whose text never appears in a message.

    Raises `ValueError` with a sentence if the file has no keys.
    """
    if path is None:
        return settings
    try:
        keys = tuple(
            filter(None, map(str.strip, Path(path).read_text("utf-8").splitlines()))
        )
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"cannot read the state keys of {path}") from None
    if not keys:
        raise ValueError(f"there is no state key in {path}")
    try:
        return settings.replace(state_keys=keys)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from problem
