"""Reading a cluster, and a recording, for the story of one object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fnop.adapters.recordings.recorded import CUT_OFF
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.interpreters.explain.facts import Evidence, Recorded
from fnop.interpreters.explain.fitting import handlers_for, requested_for
from fnop.interpreters.explain.reading import Gatherer
from fnop.interpreters.explain.recorded import recorded_of
from fnop.interpreters.explain.surroundings import operators_on
from fnop.interpreters.recording.format.reader import (
    Damage,
    RecordingLimits,
    RecordingProblem,
    read_header,
    read_records,
)
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import Api
from fnop.interpreters.runtime.reading import ReadProblem

__all__ = ["explained", "with_recording"]


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
    """Read everything about an object.

    Without an operator's name it is the operator whose marks are on the object. Raises
    `ReadProblem` if the object cannot be read.
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
    requested = requested_for(handlers, catalogue, resource, settings)
    return replace(evidence, handlers=facts, requested=requested)


def _resource(catalogue: Catalogue, kind: str, problem: str | None) -> Resource:
    """The kind with a name as kubectl takes it, in upper or lower case."""
    for word in (kind, kind.lower()):
        found = catalogue.lookup(word)
        if found is not None:
            return found
    rest = f" (some kinds could not be read: {problem})" if problem else ""
    raise ReadProblem(f"{catalogue.absence(kind)}{rest}")


def with_recording(evidence: Evidence, path: str | None, damage: Damage) -> Evidence:
    """The evidence, with the records of a recording about the object.

    Of a recording that is damaged or cut off, it has the records before the damage, and
    `damage` is called. Raises `ReadProblem` for a file that is not a recording.
    """
    if path is None:
        return evidence
    return replace(evidence, recorded=_read_recorded(evidence, path, damage))


def _read_recorded(
    evidence: Evidence, path: str, damage: Damage
) -> tuple[Recorded, ...]:
    body = Body(dict(evidence.body))
    with Path(path).open("rb") as file:
        try:
            limits = RecordingLimits(damage=damage)
            records = read_records(file, limits, reviews=True)
            read_header(records)
            whole = _noting_its_end(records, damage)
            places = {each.id: each.place for each in evidence.handlers or ()}
            return recorded_of(
                whole, evidence.resource, body.namespace, body.name, places
            )
        except RecordingProblem as problem:
            raise ReadProblem(f"{path}: {problem}") from problem


def _noting_its_end(
    records: Iterator[dict[str, Any] | None], damage: Damage
) -> Iterator[dict[str, Any] | None]:
    """Pass the records on; report that they are cut off."""
    for each in records:
        if each is None and not damage:
            damage.problem = RecordingProblem(f"the recording {CUT_OFF}")
        yield each
