"""Who keeps the children of an object, for one call of a reconcile handler."""

from __future__ import annotations

from fnop.core.children.marks import ChildSet, set_of
from fnop.core.children.planning import Keeper
from fnop.core.handlers.handler import Handler
from fnop.core.objects.home import takes_conditions
from fnop.core.state.context import Context
from fnop.core.state.record import ObjectRecord

__all__ = ["keeper_of"]


def keeper_of(
    context: Context, record: ObjectRecord, handler: Handler, *, clears: bool = False
) -> Keeper:
    """The keeper; with `clears` the object's children go before it."""
    settings = context.settings
    label = set_of(settings.marker, handler.id)
    return Keeper(
        record.body,
        context.kind.resource,
        ChildSet(settings.marker, label, record.body.uid),
        settings.conditions and takes_conditions(context),
        settings.marker in record.body.finalizers,
        context.now.wall,
        clears,
        record.orphans,
    )
