"""From the desired to the existing children: one conversation of effects.

`synchronise` is a generator of effects, as a handler may be. It applies the children
that differ, in an order that suits Kubernetes. It deletes owned children that are not
desired any longer. It ends with the object's conditions and status. A failing child
does not stop the others.

It sends no request if all is as desired. The digest of the last applied manifest is on
each child, and `managedFields` show whether its fields are still ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.core.children.applying import settled
from fnop.core.children.conditions import is_told, tell, told_by_all
from fnop.core.children.drift import as_known
from fnop.core.children.findings import Conversation, Told, Unkept
from fnop.core.children.marks import outside
from fnop.core.children.owned import AsDesired, Checked, Owned, names_its_owner
from fnop.core.children.planning import Keeper, Planned, planned_children
from fnop.core.children.pruning import from_the_last, pruned
from fnop.core.children.siblings import (
    MESSAGE_MAX,
    SYNCED,
    Beside,
    as_desired,
    left_unchanged,
)
from fnop.core.values.body import Key
from fnop.core.values.merge import applied
from fnop.effects import Again, Effect
from fnop.effects.desired import Child, Desired, StatusCondition
from fnop.effects.values import digest, same_json

__all__ = ["ChildrenFailed", "Synchronised", "synchronise"]


class ChildrenFailed(Exception):
    """Some children could not be made as desired; the handler is retried."""


class Synchronised(Struct, frozen=True):
    """Result of a sync: status changes to write, further effects, and any failure.

    `synced` is this handler's report about its own children. `checked` are the children
    that were found as desired. `repaired` are the fields that others had changed.
    `changed` are the children that were applied because the desired manifest has
    changed. `unkept` are the fields that the API server does not keep. The set of
    children `grows` if some were made, and no others were touched. With `holds`, the
    object has children that the garbage collector does not delete with it. The
    finalizer must keep the object until they are gone.
    """

    status: Mapping[str, Any]
    conditions: tuple[StatusCondition, ...]
    effects: tuple[Effect, ...]
    failure: ChildrenFailed | None
    checked: Checked
    synced: StatusCondition
    repaired: tuple[str, ...]
    changed: tuple[str, ...]
    unkept: tuple[Unkept, ...]
    grows: bool
    holds: bool
    # An answer has reported an object as gone, which the watch has yet to show.
    unshown: bool
    # The digest of what is desired, if all was as desired; else "".
    answer: str

    def tell(self, keeper: Keeper, body: dict[str, Any]) -> None:
        """Merge the conditions into an object, by their types; others' stay."""
        tell(self.conditions, keeper, body)


def synchronise(
    desired: Desired, owned: Owned, keeper: Keeper, beside: Beside
) -> Conversation[Synchronised]:
    """Make the children as desired; return the report about it.

    With `UNCHANGED` they are left as they are. Deletions come last, in the reverse
    order. A deleted child is owned by the object's uid, and was applied by the same
    handler.
    """
    planned: Sequence[Planned] = ()
    if desired.unchanged:
        told = Told({}, _claimed_children(owned, keeper))
        own = left_unchanged()
    else:
        planned, told = yield from _kept(desired.children, owned, keeper, beside)
        own = _synced_condition(told)
    left = outside(owned.bodies, keeper.set).items()
    holds = (
        (keeper.is_held and owned.is_blind())  # some may exist
        or any(each.is_outside for each in planned)
        or any(not body.is_deleting and key not in told.deleted for key, body in left)
    )
    return _synchronised_end(desired, keeper, beside, told, own, holds=holds)


def _claimed_children(owned: Owned, keeper: Keeper) -> Checked:
    """The children of a handler that leaves them alone: no other handler gets them.

    After a restart, only the marks identify them.
    """
    made = (key for key, body in owned.bodies.items() if keeper.set.has(key, body))
    return {**dict.fromkeys(made, AsDesired("", "", "")), **owned.checked}


def _kept(
    children: tuple[Child, ...], owned: Owned, keeper: Keeper, beside: Beside
) -> Conversation[tuple[Sequence[Planned], Told]]:
    """Apply the children that are desired, and delete or release all others."""
    answer = _digest_of(children)
    checked = _unchanged_children(answer, owned, keeper)
    if checked is not None:
        return (), Told({}, checked, answer)
    planned, problems = planned_children(children, owned, keeper)
    told = Told({**problems, **_duplicate_reasons(planned)}, answer=answer)
    for each in planned:
        claimed = beside.claimed(each.key)
        if each.label in told.failing:
            continue  # another child of the same name is desired, too
        if claimed:
            told.failing[each.label] = claimed
        elif each.is_outside and not keeper.is_held:
            told.pending[each.label] = "waits for the finalizer of its owner"
        else:
            yield from settled(each, owned, keeper, told)
    wanted = {each.key for each in planned} | _unplanned_keys(children, told, owned)
    unwanted = [key for key in owned.bodies if key not in wanted]
    for key in sorted(unwanted, key=from_the_last(owned)) if unwanted else ():
        yield from pruned(key, owned.bodies[key], owned, keeper, told)
    return planned, told


def _digest_of(children: Iterable[Child]) -> str:
    return digest(
        [
            (e.manifest, e.after, e.keep, e.adopt, e.force, e.foreground)
            for e in children
        ]
    )


def _unchanged_children(answer: str, owned: Owned, keeper: Keeper) -> Checked | None:
    """The children, if they and the desired ones are as at the last call; else None.

    All was as desired then. So most calls look at no child but the changed one.
    """
    if answer != owned.answer or not owned.checked.keys() <= owned.bodies.keys():
        return None
    found: dict[Key, AsDesired] = {}
    for key, body in owned.bodies.items():
        known = owned.checked.get(key)
        if known is None:
            if keeper.set.has(key, body):
                return None
            continue
        if body.is_deleting or owned.unseen(key):
            return None
        same = as_known(known, body, keeper)
        if same is None or (names_its_owner(body) and not keeper.is_held):
            return None
        found[key] = same
    return found


def _duplicate_reasons(planned: Iterable[Planned]) -> dict[str, str]:
    """The reasons not to make children that are one and the same object, by label.

    One of them may name the namespace that the other one has by default.
    """
    labels: dict[Key, list[str]] = {}
    for each in planned:
        labels.setdefault(each.key, []).append(each.label)
    told = "is desired twice, as {}; give one of them another name"
    return {
        label: told.format(" and ".join(several))
        for several in labels.values()
        if len(several) > 1
        for label in several
    }


def _unplanned_keys(children: Iterable[Child], told: Told, owned: Owned) -> set[Key]:
    """The existing, desired children that cannot be planned."""
    names = {
        (each.manifest["kind"], each.manifest["metadata"]["name"])
        for each in (children if told.failing else ())
        if each.label in told.failing
    }
    if not names:
        return set()
    kinds = {each.key: each.kind for each in owned.kinds.values()}
    return {key for key in owned.bodies if (kinds[key.resource], key.name) in names}


def _synchronised_end(
    desired: Desired,
    keeper: Keeper,
    beside: Beside,
    told: Told,
    own: StatusCondition,
    *,
    holds: bool,
) -> Synchronised:
    conditions, synced = desired.conditions, told_by_all(keeper, beside, own)
    if keeper.reports and synced is not None:
        conditions = (*conditions, synced)
    present = keeper.owner.stanza("status")
    if all(is_told(each, keeper, present) for each in conditions):
        conditions = ()
    status = desired.status
    if status and same_json(applied(status, present), present):
        status = {}
    effects = () if desired.again is None else (Again(desired.again),)
    failure = None
    if told.failing:
        failure = ChildrenFailed(_text_of(told.failing))
    return Synchronised(
        status,
        conditions,
        effects,
        failure,
        {k: each for k, each in told.checked.items() if k not in told.deleted},
        own,
        tuple(told.repaired),
        tuple(told.changed),
        tuple(told.unkept),
        told.grows,
        holds,
        told.unshown,
        told.settled,
    )


def _synced_condition(told: Told) -> StatusCondition:
    if told.failing:
        return StatusCondition(SYNCED, "False", "Failing", _text_of(told.failing))
    if told.pending:
        return StatusCondition(SYNCED, "False", "Pending", _text_of(told.pending))
    return as_desired()


def _text_of(told: Mapping[str, str]) -> str:
    lines = (f"{label} {why}" for label, why in sorted(told.items()))
    return "; ".join(lines)[:MESSAGE_MAX]
