"""The places where the state of a kind, its conditions and results are stored."""

from __future__ import annotations

from fnop.core.children.beside import SYNCED
from fnop.core.memory.storage import Place
from fnop.core.state.context import Context
from fnop.core.state.fusion import (
    Writing,
)
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body

__all__ = [
    "falls_back",
    "home_of",
    "homeless",
    "housed",
    "own_conditions",
    "takes_conditions",
]


def housed(context: Context, record: ObjectRecord, writing: Writing) -> Writing:
    """The write; results without a place in the status move to the state (R25)."""
    resource = context.kind.resource
    if not writing.results or not resource.is_built_in:
        return writing
    return homeless(context, record, writing, set(writing.results))


def homeless(
    context: Context, record: ObjectRecord, writing: Writing, names: set[str]
) -> Writing:
    """The write with these results kept in the state: the status has no such field."""
    for name in sorted(names):
        context.warn_once(
            f"result {context.key.resource} {name}",
            f"the status of this kind has no place for the result of {name}; it is "
            f"kept with the state, in {_named(home_of(context, record.body))}",
        )
    left = {k: v for k, v in writing.results.items() if k not in names}
    if not record.readable:
        return writing._replace(results=left)
    moved = {name: writing.results[name] for name in names}
    base = writing.after or writing.memory or record.stored
    after = base._replace(results={**base.results, **moved})
    return writing._replace(results=left, after=after, memory=after)


def home_of(context: Context, body: Body) -> Place:
    """The place where the state of an object of this kind is stored."""
    resource, places = context.kind.resource, context.settings.places
    is_pruned = context.key.resource in context.notes.annotated
    return places.for_object(places.on(resource, refused=is_pruned), body)


def falls_back(context: Context, place: Place, why: str) -> bool:
    """Store the state of this kind elsewhere from now on; False if that cannot be."""
    places = context.settings.places
    if places.fallback is None or place is not places.first:
        return False
    context.note(context.notes.pruning(context.key.resource))
    if not places.quietly:
        context.warn_once(
            f"storage {context.key.resource}",
            f"{why}: the state of this kind is kept in {_named(places.fallback)} "
            f"and not in {_named(place)}",
        )
    return True


def _named(place: Place) -> str:
    return ", ".join(
        f"the annotation {path[2]}" if path[0] == "metadata" else ".".join(path)
        for path in place.paths
    )


def takes_conditions(context: Context) -> bool:
    """Whether the kind is the author's own, and its status takes conditions."""
    resource = context.kind.resource
    fits = resource.has_status and not resource.is_built_in
    return fits and context.key.resource not in context.notes.unconditioned


def own_conditions(context: Context) -> tuple[str, ...]:
    """The types of the conditions by which the operator itself tells of an object.

    A reconcile handler tells by `Synced`, and is not called because it is gone.
    """
    marker = (context.settings.marker,) if context.settings.conditions else ()
    return (*marker, SYNCED) if context.kind.levels else marker
