"""Apply a child, unless it is as desired, or cannot be just now.

Others' changes are repaired, and reported. Others' objects are left alone. A child that
cannot be changed is replaced if the author asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fnop.core.children.drift import Drift, as_known, as_now, drift_of, drift_of_all
from fnop.core.children.fields import applied_alone, differing
from fnop.core.children.findings import Conversation, Told, Unkept, target_of
from fnop.core.children.marks import KEEP_ANNOTATION
from fnop.core.children.owned import OWNER_ANNOTATION, AsDesired, Owned, owner_mark
from fnop.core.children.planning import Keeper, Planned
from fnop.core.children.pruning import deleted
from fnop.core.values.body import Body
from fnop.core.values.errors import Refused, TemporaryError, text_of
from fnop.effects import Apply, Event, Get, Log, Patch, Target
from fnop.effects.regexes import regex
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json

__all__ = ["is_immutable", "settled"]

_IMMUTABLE = regex(
    r"immutable|(may not|can ?not) (be )?(changed?|unset)\b"
    r"|updates to .* are forbidden"
    r"|Forbidden: updates to",
    re.IGNORECASE,
)

# Names, values and the paths of fields in such a message, which authors choose.
_QUOTED = regex(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S+: (?=[A-Z][a-z]+( value)?: )')


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
    if blocker or (live is not None and live.is_deleting):
        told.pending[label] = f"waits for {blocker}" if blocker else _ANEW
        return
    is_child = live is not None
    if live is None:
        live = owned.find(planned.key)
        if not (yield from _may_be_made(planned, live, owned, keeper, told)):
            return
    known = owned.checked.get(planned.key)
    if live is not None and known is not None and known.applied == planned.applied:
        same = as_known(known, live, keeper)
        if same is not None:
            told.checked[planned.key] = same
            return
    drift = (
        drift_of(planned, live, known, keeper)
        if is_child
        else drift_of_all(planned, live, keeper)
    )
    if live is not None and drift is None:
        told.checked[planned.key] = as_now(planned, live, keeper)
    elif drift is not None:
        yield from _make_as_desired(planned, live, drift, known, keeper, told)


def _make_as_desired(
    planned: Planned,
    live: Body | None,
    drift: Drift,
    known: AsDesired | None,
    keeper: Keeper,
    told: Told,
) -> Conversation[None]:
    """Apply a child; note the reason if the API server refuses it."""
    # Any client that applies another manifest from now on undoes this one.
    told.checked[planned.key] = AsDesired("", planned.applied, "")
    try:
        try:
            yield from _apply_child(planned, live, drift, keeper, told)
            yield from _note_change(planned, live, drift, known, told)
        except Refused as problem:
            lists = drift.lists
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


_ANEW = "is being deleted, and is made anew when it is gone"


def _reason_not_to_take(live: Body, planned: Planned, keeper: Keeper) -> str:
    """The reason why an object of the child's name may not be taken over; "" if it may.

    An object that this handler made for this owner, and that now names no owner, is its
    own. Objects that a previous owner of this name left against its will are not taken
    over: they may hold what does not concern this owner.
    """
    if live.is_deleting:
        return _ANEW
    mark = str(live.mapping("annotations").get(OWNER_ANNOTATION) or "")
    ours = owner_mark(keeper.resource, keeper.owner)
    if other := _other_owner(live, mark, ours):
        return f"exists, and belongs to {other}"
    if mark and mark != ours and KEEP_ANNOTATION not in live.mapping("annotations"):
        return _ANEW
    is_own = mark == ours or (not mark and keeper.set.made(planned.key, live))
    if planned.child.adopt or is_own:
        return ""
    why = "was kept from a former owner of this name" if mark else "nobody owns it"
    return f"exists, and {why}; adopt=True takes it over"


def _other_owner(live: Body, mark: str, ours: str) -> str:
    """The controller of an object, or the owner that its mark names; "" without one."""
    references = live.meta.get("ownerReferences")
    for each in references if isinstance(references, list) else ():
        if isinstance(each, dict) and each.get("controller"):
            return f"{each.get('kind')} {each.get('name')}"
    name = mark.rpartition("/")[0]
    return name if mark and name != ours.rpartition("/")[0] else ""


def _apply_child(
    planned: Planned, live: Body | None, drift: Drift, keeper: Keeper, told: Told
) -> Conversation[None]:
    manifest = drift.manifest
    if live is not None and drift.folded is not None:
        path, fields = "/metadata/managedFields", drift.folded
        change = {"op": "replace", "path": path, "value": fields}
        yield Patch(target_of(planned.key, live), None, (change,))
    if live is not None:  # for this object alone, and not for another of its name
        manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": live.uid}}
    after = yield Apply(manifest, force=planned.child.force)
    unkept = _note_unkept(planned, drift, after, keeper, told)
    lost = tuple(each for each in drift.lost if each not in unkept)
    if live is None or not lost:
        return
    who = replace(drift, lost=lost).managers(live, keeper)
    by = f", changed by {', '.join(who)}" if who else ""
    text = f"{planned.label}: {', '.join(lost[:5])}{by}"
    told.repaired += [f"{planned.label} {path}" for path in lost]
    yield from _report_repair(planned, text)


def _note_unkept(
    planned: Planned,
    drift: Drift,
    after: Mapping[str, Any],
    keeper: Keeper,
    told: Told,
) -> list[str]:
    """Note the fields that are missing although they have just been applied.

    The child is as desired then: to apply it again would change nothing. So is one that
    has nothing of others. An empty mapping is not the manager's if others have fields
    in it, which is correct.
    """
    fields = drift.missing_in(after, keeper)
    if fields or applied_alone(after, keeper.manager):
        told.checked[planned.key] = as_now(planned, Body(dict(after)), keeper)
    unkept = tuple(each for each in fields if drift.value_at(each) != {})
    if unkept:
        told.unkept.append(Unkept(planned.label, planned.applied, unkept))
    return fields


def _note_change(
    planned: Planned,
    live: Body | None,
    drift: Drift,
    known: AsDesired | None,
    told: Told,
) -> Conversation[None]:
    """Note that a child was applied: for this handler, or to repair others' changes."""
    if drift.lost:
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
    changed = Body(thaw_json(after))
    drift = drift_of_all(planned, changed, keeper)
    yield from _apply_child(planned, changed, drift, keeper, told)
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
