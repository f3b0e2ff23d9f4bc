"""The keeper of an object's children, and its other handlers, for one call."""

from __future__ import annotations

from fnop.core.children.marks import ChildSet, set_of
from fnop.core.children.planning import Keeper
from fnop.core.children.siblings import Beside
from fnop.core.handlers.declare.handler import Handler
from fnop.core.objects.write.state_location import takes_conditions
from fnop.core.state.context import Context
from fnop.core.state.record import ObjectRecord, ReconcilerState
from fnop.core.values.body import Body
from fnop.effects.values import same_json

__all__ = ["beside_of", "is_new", "keeper_of"]


def keeper_of(
    context: Context, record: ObjectRecord, handler: Handler, *, clears: bool = False
) -> Keeper:
    """Return the keeper; with `clears`, the children are deleted before the object."""
    settings = context.settings
    label = set_of(settings.marker, handler.id)
    return Keeper(
        record.body,
        context.kind.resource,
        ChildSet(settings.marker, label, record.body.uid, record.body.namespace or ""),
        settings.conditions and takes_conditions(context),
        settings.own_finalizer in record.body.finalizers,
        context.now.wall,
        clears,
        record.orphans,
    )


def beside_of(
    record: ObjectRecord, handler: Handler, *, awaits: bool = False
) -> Beside:
    """The other handlers of the object, by their results at their last calls.

    With another spec they may desire other children by now.
    """
    others = {k: each for k, each in record.reconcilers.items() if k != handler.id}
    verdicts = {k: each.synced for k, each in others.items() if each.synced}
    claims = {
        key: name
        for name, each in others.items()
        if each.body is not None and not is_new(each, record.body)
        for key in each.checked
    }
    return Beside(handler.id, verdicts, claims, awaits)


def is_new(state: ReconcilerState, body: Body) -> bool:
    """Whether the spec has changed since the last call: failures count from zero.

    A change of children does not count: a failing handler may cause it.
    """
    was = state.body
    if was is None or was is body:
        return False
    return not same_json(was.stanza("spec"), body.stanza("spec"))
