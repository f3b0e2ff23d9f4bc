"""The places of a kind's state, its conditions and results."""

from __future__ import annotations

from fnop.core.children.siblings import SYNCED
from fnop.core.memory.storage import Place
from fnop.core.state.context import Context
from fnop.core.state.record import ObjectRecord
from fnop.core.state.writing import Contents
from fnop.core.values.body import Body
from fnop.effects import Event
from fnop.effects.structs import replace

__all__ = [
    "falls_back",
    "home_of",
    "homeless",
    "housed",
    "own_conditions",
    "takes_conditions",
    "tell_unconditioned",
]


def housed(context: Context, record: ObjectRecord, contents: Contents) -> Contents:
    """Return the contents; results that do not fit the status go to the state (R25)."""
    status, names = context.kind.status, set(contents.results)
    if not context.kind.resource.is_built_in:
        # A result is not a whole status, if others' fields are required.
        lacks = status.lacks(record.body.stanza("status"))
        is_whole = bool(contents.patches) or not lacks
        names = {each for each in names if not (is_whole and status.keeps(each))}
    return homeless(context, record, contents, names) if names else contents


def homeless(
    context: Context, record: ObjectRecord, contents: Contents, names: set[str]
) -> Contents:
    """Return the contents with results in the state: the status lacks the fields.

    Kopf's form of the state has no results.
    """
    place = _name_place(home_of(context, record.body))
    end = f"is kept with the state, in {place}" if place else "is not stored"
    for name in sorted(names):
        context.warn_once(
            f"result {context.key.resource} {name}",
            f"the status of this kind has no place for the result of {name}; it {end}",
        )
    left = {k: v for k, v in contents.results.items() if k not in names}
    if not record.readable or not place:
        return replace(contents, results=left)
    moved = {name: contents.results[name] for name in names}
    base = contents.after or contents.memory or record.stored
    after = replace(base, results={**base.results, **moved})
    return replace(contents, results=left, after=after, memory=after)


def home_of(context: Context, body: Body) -> Place:
    """The place of the state of an object of this kind."""
    kind, places = context.kind, context.settings.places
    is_pruned = context.key.resource in context.turn.notes.annotated
    place = places.on(kind.resource, status=kind.status, refused=is_pruned)
    return places.for_object(place, body)


def falls_back(context: Context, place: Place, why: str) -> bool:
    """Store the state of this kind elsewhere from now on; False if impossible."""
    places = context.settings.places
    if places.fallback is None or place is not places.first:
        return False
    context.turn.notes = context.turn.notes.pruning(context.key.resource)
    if not places.quietly:
        context.warn_once(
            f"storage {context.key.resource}",
            f"{why}: the state of this kind is kept in {_name_place(places.fallback)} "
            f"and not in {_name_place(place)}",
        )
    return True


def _name_place(place: Place) -> str:
    return ", ".join(
        f"the annotation {path[2]}" if path[0] == "metadata" else ".".join(path)
        for path in place.paths
    )


def takes_conditions(context: Context) -> bool:
    """Whether the kind is the author's own, and its status takes conditions."""
    refused = context.kind.status.refused.intersection(own_conditions(context))
    fits = _may_have_conditions(context) and not refused
    return fits and context.key.resource not in context.turn.notes.unconditioned


def _may_have_conditions(context: Context) -> bool:
    resource = context.kind.resource
    return resource.has_status and not resource.is_built_in


def tell_unconditioned(context: Context) -> None:
    """Log once that a kind's status takes no condition from the operator."""
    if not _may_have_conditions(context) or takes_conditions(context):
        return
    about = f"conditions {context.key.resource}"
    if context.settings.conditions and context.turn.is_first(about):
        context.say("warning", _NO_CONDITIONS)
        context.post(Event("ConditionsUnsupported", _NO_CONDITIONS, "Warning"), "")


_NO_CONDITIONS = (
    "the status of this kind takes no condition of fnop's, by its schema: what its "
    "handlers wait for, and which have failed, is told in the log alone; with "
    "Settings(conditions=False) fnop does not try"
)


def own_conditions(context: Context) -> tuple[str, ...]:
    """The types of the operator's own conditions.

    A reconciler reports with `Synced`, and is not called because the condition is gone.
    """
    marker = (context.settings.marker,) if context.settings.conditions else ()
    return (*marker, SYNCED) if context.kind.reconcilers else marker
