"""Apply a child, unless it is as desired, or cannot be just now.

Others' changes are repaired, and reported. Others' objects are left alone. A child that
cannot be changed is replaced if the author asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fnop.core.children.fields import (
    differing,
    fields_digest,
    folded,
    lost_fields,
    managers_of,
    names_in,
)
from fnop.core.children.findings import Conversation, Told, Unkept, target_of
from fnop.core.children.marks import APPLIED_PATH, KEEP_ANNOTATION, applied_mark
from fnop.core.children.owned import OWNER_ANNOTATION, AsDesired, Owned, owner_mark
from fnop.core.children.planning import Keeper, Planned, manifest_for
from fnop.core.children.pruning import deleted
from fnop.core.values.body import Body
from fnop.core.values.errors import Refused, TemporaryError, text_of
from fnop.core.values.merge import applied
from fnop.effects import Apply, Event, Get, Log, Patch, Target
from fnop.effects.values import thaw_json

__all__ = ["as_known", "is_immutable", "settled"]

_IMMUTABLE = re.compile(
    r"immutable|(may not|can ?not) (be )?(changed?|unset)\b"
    r"|updates to .* are forbidden"
    r"|Forbidden: updates to",
    re.IGNORECASE,
)

# Names, values and the paths of fields in such a message, which authors choose.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S+: (?=[A-Z][a-z]+( value)?: )')


def is_immutable(message: str) -> bool:
    """Whether an API server refuses a write because a field cannot be changed.

    >>> is_immutable('Service "a" is invalid: spec.clusterIP: field is immutable')
    True
    """
    return _IMMUTABLE.search(_QUOTED.sub("", message)) is not None


def settled(
    planned: Planned, owned: Owned, keeper: Keeper, told: Told
) -> Conversation[None]:
    """Make one child as desired, unless it is, or cannot be just now."""
    label, live = planned.label, owned.bodies.get(planned.key)
    blocker = told.blocks(planned.child.after)
    if blocker:
        told.pending[label] = f"waits for {blocker}"
        return
    if live is not None and live.is_deleting:
        told.pending[label] = _ANEW
        return
    if live is None:
        live = owned.find(planned.key)
        if not (yield from _may_be_made(planned, live, owned, keeper, told)):
            return
    same = None if live is None else _known_as_desired(planned, live, owned, keeper)
    if same is not None:
        told.checked[planned.key] = same
        return
    is_child = planned.key in owned.bodies
    lost = _drifted_fields(planned, live, owned, keeper) if is_child else []
    if live is not None and lost is None:
        told.checked[planned.key] = _state_as_desired(planned, live, keeper)
        return
    lost = lost or []
    # Any client that applies another manifest from now on undoes this one.
    told.checked[planned.key] = AsDesired("", planned.applied, "")
    try:
        try:
            yield from _apply_child(planned, live, lost, keeper, told)
            yield from _note_change(planned, live, lost, owned, told)
        except Refused as problem:
            lists = _lists_of_lost(manifest_for(planned, keeper), lost)
            if live is None or not lists or problem.status != 422:
                raise
            yield from _rewrite_lists(planned, live, lists, keeper, told)
    except (Refused, TemporaryError) as problem:
        yield from _note_refusal(planned, live, problem, told)


def _may_be_made(
    planned: Planned, live: Body | None, owned: Owned, keeper: Keeper, told: Told
) -> Conversation[bool]:
    """Whether a non-child may become one, or be made; else note the reason."""
    label = planned.label
    if live is None:
        known = owned.checked.get(planned.key)
        if known is None or (yield from _is_owner_there(label, keeper, told)):
            return True
        told.checked[planned.key] = known  # until then no call makes it
        if label not in told.failing:
            told.pending[label] = "is gone, and its owner is going, too"
        return False
    problem = _reason_not_to_take(live, planned, keeper)
    if problem:
        told.failing[label] = problem
    if problem == _ANEW and not live.is_deleting:
        yield from deleted(planned.key, live, told, label)
    return not problem


def _is_owner_there(label: str, keeper: Keeper, told: Told) -> Conversation[bool]:
    """Whether the owner still exists, by a live read; a failed read is noted.

    An existing child is gone. A user has deleted it. Or the garbage collector has,
    since the owner was deleted, and the watch has yet to show that.
    """
    if told.is_owner_there is None:
        place = keeper.key.namespace or None
        owner = Target.existing(keeper.key.resource, keeper.key.name, place)
        try:
            found = yield Get(owner)
        except (Refused, TemporaryError) as problem:
            why = "is gone, and is made anew when its owner can be read"
            told.failing[label] = f"{why}: {problem}"
            return False
        meta = {} if found is None else found["metadata"]
        is_same = meta.get("uid") == keeper.owner.uid
        told.is_owner_there = is_same and not meta.get("deletionTimestamp")
    return told.is_owner_there


def _known_as_desired(
    planned: Planned, live: Body, owned: Owned, keeper: Keeper
) -> AsDesired | None:
    """The child in its present form, if it is still as the last call left it."""
    known = owned.checked.get(planned.key)
    if known is None or known.applied != planned.applied:
        return None
    return as_known(known, live, keeper)


def as_known(known: AsDesired, live: Body, keeper: Keeper) -> AsDesired | None:
    """The child in its present form, if others have not changed what was applied."""
    if not known.version:
        return None
    if known.version == live.version:
        return known
    if applied_mark(live) != known.applied:
        return None
    fields = fields_digest(live.data, keeper.manager)
    return known._replace(version=live.version) if fields == known.fields else None


def _state_as_desired(planned: Planned, live: Body, keeper: Keeper) -> AsDesired:
    fields = fields_digest(live.data, keeper.manager)
    return AsDesired(live.version, planned.applied, fields)


_ANEW = "is being deleted, and is made anew when it is gone"


def _reason_not_to_take(live: Body, planned: Planned, keeper: Keeper) -> str:
    """The reason why an object of the child's name may not be taken over; "" if it may.

    An object that this handler made for this owner, and that now names no owner, is its
    own. Objects that a previous owner of this name left against its will are not taken
    over: they may hold what does not concern this owner.
    """
    if live.is_deleting:
        return _ANEW
    references = live.meta.get("ownerReferences")
    for each in references if isinstance(references, list) else ():
        if isinstance(each, dict) and each.get("controller"):
            return f"exists, and belongs to {each.get('kind')} {each.get('name')}"
    mark = str(live.mapping("annotations").get(OWNER_ANNOTATION) or "")
    ours = owner_mark(keeper.resource, keeper.owner)
    if mark and mark.rpartition("/")[0] != ours.rpartition("/")[0]:
        return f"exists, and belongs to {mark.rpartition('/')[0]}"
    is_kept = KEEP_ANNOTATION in live.mapping("annotations")
    if mark and mark != ours and not is_kept:
        return _ANEW
    if planned.child.adopt or mark == ours:
        return ""
    if not mark and keeper.set.made(planned.key, live):
        return ""
    why = "was kept from a former owner of this name" if mark else "nobody owns it"
    return f"exists, and {why}; adopt=True takes it over"


def _drifted_fields(
    planned: Planned, live: Body | None, owned: Owned, keeper: Keeper
) -> list[str] | None:
    """The fields that others have changed; None if nothing is to be applied."""
    if live is None:
        return []
    if applied_mark(live) != planned.applied:
        known = owned.checked.get(planned.key)
        is_undone = known is not None and known.applied == planned.applied
        return ["metadata.annotations"] if is_undone else []
    manifest = manifest_for(planned, keeper)
    if _folded_fields(live, manifest, keeper) is not None:
        return []
    return lost_fields(manifest, live.data, keeper.manager) or None


def _apply_child(
    planned: Planned, live: Body | None, lost: list[str], keeper: Keeper, told: Told
) -> Conversation[None]:
    manifest = manifest_for(planned, keeper)
    fields = _folded_fields(live, manifest, keeper)
    if live is not None and fields is not None:
        change = {"op": "replace", "path": "/metadata/managedFields", "value": fields}
        yield Patch(target_of(planned.key, live), None, (change,))
    if live is not None:  # for this object alone, and not for another of its name
        manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": live.uid}}
    after = yield Apply(manifest, force=planned.child.force)
    unkept = _unkept(planned, manifest, after, keeper, told)
    lost = [each for each in lost if each not in unkept]
    if live is None or not lost:
        return
    managers = {name for path in lost for name in managers_of(live.data, path)}
    who = sorted(managers - {keeper.manager})
    by = f", changed by {', '.join(who)}" if who else ""
    text = f"{planned.label}: {', '.join(lost[:5])}{by}"
    told.repaired += [f"{planned.label} {path}" for path in lost]
    yield from _report_repair(planned, text)


def _unkept(
    planned: Planned,
    manifest: Mapping[str, Any],
    after: Mapping[str, Any],
    keeper: Keeper,
    told: Told,
) -> list[str]:
    """The fields that are missing although they have just been applied.

    The child is as desired then: to apply it again would change nothing. An empty
    mapping is not the manager's if others have fields in it, which is correct.
    """
    fields = lost_fields(manifest, after, keeper.manager)
    if fields:
        found = _state_as_desired(planned, Body(thaw_json(after)), keeper)
        told.checked[planned.key] = found
    unkept = tuple(each for each in fields if _value_at(manifest, each) != {})
    if unkept:
        told.unkept.append(Unkept(planned.label, planned.applied, unkept))
    return fields


def _value_at(manifest: Mapping[str, Any], path: str) -> Any:
    """The value at a path of `lost_fields`, or the list that contains it."""
    value: Any = manifest
    for name in names_in(path):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _note_change(
    planned: Planned, live: Body | None, lost: list[str], owned: Owned, told: Told
) -> Conversation[None]:
    """Note that a child was applied: for this handler, or to repair others' changes."""
    known = owned.checked.get(planned.key)
    if lost:
        return  # it was repaired
    if live is not None:
        fields = differing(planned.child.manifest, live.data)
        told.changed.append(f"{planned.label} {', '.join(fields[:3])}".rstrip())
    elif known is not None and known.applied == planned.applied:
        told.repaired.append(f"{planned.label} (deleted)")
        yield from _report_repair(planned, f"{planned.label}, which was deleted")
    else:
        told.changed.append(planned.label)
        told.made.append(planned.label)


def _report_repair(planned: Planned, text: str, **more: Any) -> Conversation[None]:
    """Report in the log and in an Event what others have done to a child."""
    yield Log("info", f"repaired {text}", {"repaired": planned.label, **more})
    yield Event("Repaired", text[:1000])


def _folded_fields(
    live: Body | None, manifest: Mapping[str, Any], keeper: Keeper
) -> list[dict[str, Any]] | None:
    """The managed fields, if an apply alone would not have its full effect."""
    if live is None:
        return None
    return folded(live.data, keeper.manager, APPLIED_PATH, manifest)


def _lists_of_lost(manifest: Mapping[str, Any], lost: Iterable[str]) -> dict[str, Any]:
    """The lists of a manifest with lost elements, as a merge patch."""
    found: dict[str, Any] = {}
    for path in lost:
        value = _value_at(manifest, path)
        if not isinstance(value, list):
            continue
        for name in reversed(names_in(path)):
            value = {name: value}
        found = applied(value, found)
    return found


def _rewrite_lists(
    planned: Planned,
    live: Body,
    lists: Mapping[str, Any],
    keeper: Keeper,
    told: Told,
) -> Conversation[None]:
    """Set lists as a whole, and then apply.

    Another client has added elements that conflict with ours, such as another port of
    the same name. An apply adds its own elements, and does not remove others'.
    """
    after = yield Patch(target_of(planned.key, live), lists)
    yield from _apply_child(planned, Body(thaw_json(after)), [], keeper, told)
    told.repaired.append(f"{planned.label} {', '.join(sorted(lists))}")
    text = f"{planned.label}: the lists in {', '.join(sorted(lists))} are set anew"
    yield from _report_repair(planned, text, anew=sorted(lists))


def _note_refusal(
    planned: Planned, live: Body | None, problem: Exception, told: Told
) -> Conversation[None]:
    """Note the reason for a child's refusal; replace it if the author asks for it."""
    text = text_of(problem) or type(problem).__name__
    is_fixed = (
        isinstance(problem, Refused)
        and problem.status == 422
        and live is not None
        and is_immutable(text)
    )
    if not is_fixed or live is None:
        told.failing[planned.label] = text
    elif planned.child.on_immutable == "fail":
        remedy = "on_immutable='replace' would delete it and make it anew"
        told.failing[planned.label] = f"{text}; {remedy}"
    else:
        told.pending[planned.label] = "is replaced, for a field of it cannot be changed"
        yield Log("info", f"replacing {planned.label}: {text}")
        yield Event("Replacing", f"{planned.label}: {text}"[:1000])
        yield from deleted(planned.key, live, told, planned.label)
