"""Delete children, or release them."""

from __future__ import annotations

from typing import Any

from fnop.core.children.findings import Conversation, Told, target_of
from fnop.core.children.marks import (
    APPLIED_ANNOTATION,
    KEEP_ANNOTATION,
    SET_LABEL,
    is_far,
)
from fnop.core.children.owned import OWNER_ANNOTATION, Owned, owners_of
from fnop.core.children.planning import Keeper, rank_of
from fnop.core.values.body import Body, Key
from fnop.core.values.errors import Refused, TemporaryError
from fnop.effects import Delete, Get, Log, Patch, Target

__all__ = ["deleted", "from_the_last", "pruned"]


def from_the_last(owned: Owned) -> Any:
    ranks = {each.key: rank_of(each) for each in owned.kinds.values()}
    return lambda key: (-ranks[key.resource], key)


def pruned(
    key: Key, body: Body, owned: Owned, keeper: Keeper, told: Told
) -> Conversation[None]:
    """Delete a child that is not desired any longer, or release it."""
    if body.is_deleting or not (keeper.clears or keeper.set.has(key, body)):
        return  # another client's; or it is being deleted already
    if not owners_of(body) and not is_far(keeper.owner.namespace, key):
        return  # another client has taken it from its owner, perhaps to keep it
    label = _label_of(key, owned, keeper)
    why = "whose owner is deleted" if keeper.clears else "which is no longer desired"
    if not (keeper.orphans or KEEP_ANNOTATION in body.mapping("annotations")):
        yield Log("info", f"deleting {label}, {why}")
        yield from deleted(key, body, told, label)
        return
    names = (OWNER_ANNOTATION, APPLIED_ANNOTATION, KEEP_ANNOTATION)
    marks = {"labels": {SET_LABEL: None}, "annotations": dict.fromkeys(names)}
    why = "which its owner orphans" if keeper.orphans else why
    yield Log("info", f"letting go of {label}, {why}")
    try:
        yield Patch(target_of(key, body), {"metadata": marks})
    except (Refused, TemporaryError) as problem:
        if not (yield from _is_gone(key, body, problem)):
            told.failing[label] = f"cannot be let go: {problem}"


def _label_of(key: Key, owned: Owned, keeper: Keeper) -> str:
    """`kind/name`, with the namespace if it differs from the owner's."""
    kinds = {each.key: each.kind.lower() for each in owned.kinds.values()}
    is_near = key.namespace in ("", keeper.owner.namespace or "")
    place = "" if is_near else f"{key.namespace}/"
    return f"{kinds[key.resource]}/{place}{key.name}"


def deleted(key: Key, body: Body, told: Told, label: str) -> Conversation[None]:
    references = body.meta.get("ownerReferences") or ()
    waits = any(isinstance(e, dict) and e.get("blockOwnerDeletion") for e in references)
    try:
        yield Delete(
            target_of(key, body),
            uid=body.uid,
            propagation="Foreground" if waits else "Background",
        )
    except (Refused, TemporaryError) as problem:
        if not (yield from _is_gone(key, body, problem)):
            told.failing[label] = f"cannot be deleted: {problem}"
            return
    told.deleted.add(key)


def _is_gone(key: Key, body: Body, problem: Exception) -> Conversation[bool]:
    """Whether a child that could not be changed has ceased to exist.

    A 409 does not show it: another object may have its name (the uid was a
    precondition), or another change came at the same time. A live read shows it.
    """
    if not isinstance(problem, Refused) or problem.status not in (404, 409):
        return False
    if problem.status == 404:
        return True
    place = key.namespace or None
    try:
        found = yield Get(Target.existing(key.resource, key.name, place))
    except (Refused, TemporaryError):
        return False
    return found is None or found["metadata"]["uid"] != body.uid
