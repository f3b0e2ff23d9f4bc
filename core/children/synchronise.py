"""From what is desired to what is there: one conversation of effects.

`synchronise` is a generator of effects, as a handler may be. It applies what differs,
in an order that Kubernetes likes, deletes what is owned and not desired any more, and
ends with the object's conditions and status. A child that fails stops no other one.

It asks for nothing where all is as desired: the digest of what was last applied is on
each child, and `managedFields` tell whether its fields are still ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fnop.core.children.beside import (
    MESSAGE_MAX,
    SYNCED,
    Beside,
    as_desired,
    has_failed,
    left_unchanged,
)
from fnop.core.children.fields import (
    differing,
    fields_digest,
    folded,
    lost_fields,
    managers_of,
    names_in,
)
from fnop.core.children.marks import (
    APPLIED_ANNOTATION,
    APPLIED_PATH,
    KEEP_ANNOTATION,
    SET_LABEL,
    applied_mark,
    outside,
)
from fnop.core.children.owned import (
    OWNER_ANNOTATION,
    AsDesired,
    Checked,
    Owned,
    names_its_owner,
    owner_mark,
)
from fnop.core.children.planning import (
    Keeper,
    Planned,
    manifest_for,
    near,
    planned_children,
    rank_of,
)
from fnop.core.memory.conditions import Condition, conditions_with
from fnop.core.values.body import Body, Key
from fnop.core.values.errors import Refused, TemporaryError
from fnop.core.values.merge import applied
from fnop.core.values.now import wall_seconds
from fnop.core.values.table import NOTHING
from fnop.effects import (
    Again,
    Apply,
    Delete,
    Effect,
    Event,
    Get,
    Log,
    Patch,
    Target,
)
from fnop.effects.desired import Child, Desired, StatusCondition
from fnop.effects.values import digest, same_json, thaw_json

__all__ = [
    "ChildrenFailed",
    "Synchronised",
    "is_immutable",
    "synchronise",
    "telling",
]

_IMMUTABLE = re.compile(
    r"immutable|(may not|can ?not) (be )?(changed?|unset)\b"
    r"|updates to .* are forbidden"
    r"|Forbidden: updates to",
    re.IGNORECASE,
)

# Names, values and the paths of fields in such a message, which authors choose.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S+: (?=[A-Z][a-z]+( value)?: )')


T = TypeVar("T")
# Effects, the answers to them, and a result.
Conversation: TypeAlias = Generator[Effect, Any, T]


class ChildrenFailed(Exception):
    """Some children could not be made as desired; the handler is tried again."""


class Unkept(NamedTuple):
    """Fields of a child, in the manifest of this digest, that no API server keeps."""

    label: str
    applied: str
    fields: tuple[str, ...]


class Synchronised(NamedTuple):
    """The end: what the status lacks, further effects, and the failure if any.

    `synced` is what this handler tells of its own children. `checked` are those that
    were found as desired, `repaired` the fields that others had changed, `changed` what
    was applied since another manifest is desired, and `unkept` what the API server does
    not keep. With `holds` the object has children that the garbage collector does not
    delete with it: the finalizer has to keep it until they are gone.
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
    holds: bool
    # The digest of what is desired, if all was as desired; else "".
    answer: str

    def tell(self, keeper: Keeper, body: dict[str, Any]) -> None:
        """Merge the conditions into an object, by their types; others' stay."""
        _tell(self.conditions, keeper, body)


def _tell(
    conditions: Iterable[StatusCondition], keeper: Keeper, body: dict[str, Any]
) -> None:
    found = body.get("status")
    status = found if isinstance(found, dict) else {}
    body["status"] = {**status, "conditions": _merged(conditions, keeper, status)}


def telling(
    keeper: Keeper, beside: Beside, own: StatusCondition | None
) -> Callable[[dict[str, Any]], None] | None:
    """The change of an object whose handler has desired nothing.

    `own` is what the handler tells, if anything. None where the object tells that
    already, or shows no conditions.
    """
    status = keeper.owner.stanza("status")
    told = _of_all(keeper, beside, own)
    if told is None and own is None and not beside.awaits:
        # It may have failed before: then that is not so any more.
        told = as_desired() if _tells_failure(status) else None
    if told is None or not keeper.reports or _is_told(told, keeper, status):
        return None
    return partial(_tell, (told,), keeper)


def _of_all(
    keeper: Keeper, beside: Beside, own: StatusCondition | None
) -> StatusCondition | None:
    """What the handlers of the object tell together, as far as it is known.

    None while others are awaited, as after a restart, and the object tells of this
    generation already that something is wrong: that may be theirs.
    """
    told = beside.told(own)
    if told is None or not beside.awaits:
        return told
    is_known = any(
        each.get("type") == SYNCED
        and each.get("status") != "True"
        and each.get("observedGeneration") == keeper.owner.generation
        for each in _conditions(keeper.owner.stanza("status"))
    )
    return None if is_known else told


def _conditions(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions in a status that are well-formed."""
    present = status.get("conditions")
    found = present if isinstance(present, list) else ()
    return [each for each in found if isinstance(each, dict)]


def _tells_failure(status: Mapping[str, Any]) -> bool:
    """Whether an object tells that a handler has failed before it desired anything."""
    failed = {"type": SYNCED, "status": "False", "reason": has_failed("").reason}
    return any(failed.items() <= each.items() for each in _conditions(status))


def _merged(
    conditions: Iterable[StatusCondition], keeper: Keeper, status: Mapping[str, Any]
) -> list[Any]:
    present = status.get("conditions")
    merged: list[Any] = list(present) if isinstance(present, list) else []
    moment = wall_seconds(keeper.wall)
    for each in conditions:
        merged = conditions_with(merged, each.type, _condition(each, keeper), moment)
    return merged


def _is_told(
    condition: StatusCondition, keeper: Keeper, status: Mapping[str, Any]
) -> bool:
    """Whether a status has a condition already: merging it would change nothing."""
    for each in _conditions(status):
        if each.get("type") == condition.type:
            found = conditions_with(
                [each], condition.type, _condition(condition, keeper), ""
            )
            return bool(found == [each] and each["lastTransitionTime"])
    return False


def _condition(condition: StatusCondition, keeper: Keeper) -> Condition:
    # An API server before 1.23 takes an empty text of a typed status for null.
    words = condition.status, condition.reason, condition.message or condition.reason
    return Condition(*words, keeper.wall, keeper.owner.generation)


def is_immutable(message: str) -> bool:
    """Whether an API server refuses a write since a field cannot be changed.

    >>> is_immutable('Service "a" is invalid: spec.clusterIP: field is immutable')
    True
    """
    return _IMMUTABLE.search(_QUOTED.sub("", message)) is not None


class _Told:
    """What is found out about children on the way."""

    def __init__(
        self, failing: dict[str, str], checked: Checked = NOTHING, answer: str = ""
    ) -> None:
        self.failing = failing
        self.answer = answer
        self.pending: dict[str, str] = {}
        self.checked: dict[Key, AsDesired] = {**checked}
        self.repaired: list[str] = []
        self.changed: list[str] = []
        self.unkept: list[Unkept] = []
        self.deleted: set[Key] = set()
        self.is_owner_there: bool | None = None

    @property
    def settled(self) -> str:
        """The digest of what is desired, if all was as desired; else ""."""
        applied = any(not each.version for each in self.checked.values())
        if self.failing or self.pending or self.deleted or applied:
            return ""
        return self.answer

    def blocks(self, names: Iterable[str]) -> str:
        """The first of these children that is not there yet; else ""."""
        names = tuple(names)
        if not names:
            return ""
        waiting = {*self.failing, *self.pending}
        waiting |= {near(label) for label in waiting}
        return next((each for each in names if each in waiting), "")


def synchronise(
    desired: Desired, owned: Owned, keeper: Keeper, beside: Beside
) -> Conversation[Synchronised]:
    """Make the children as desired; returns what is to be told about it.

    With `UNCHANGED` they are left as they are. Deletions come last, in the reverse
    order. What is deleted is owned by the object's uid, and was applied by the same
    handler.
    """
    planned: Sequence[Planned] = ()
    if desired.unchanged:
        told = _Told({}, _claims(owned, keeper))
        own = left_unchanged()
    else:
        planned, told = yield from _kept(desired.children, owned, keeper, beside)
        own = _synced(told)
    left = outside(owned.bodies, keeper.set).items()
    holds = (
        (keeper.is_held and owned.is_blind())  # there may be some
        or any(each.is_outside for each in planned)
        or any(not body.is_deleting and key not in told.deleted for key, body in left)
    )
    return _ending(desired, keeper, beside, told, own, holds=holds)


def _claims(owned: Owned, keeper: Keeper) -> Checked:
    """The children of a handler that leaves them as they are: no other one gets them.

    After a restart only the marks tell which they are.
    """
    made = (key for key, body in owned.bodies.items() if keeper.set.has(key, body))
    return {**dict.fromkeys(made, AsDesired("", "", "")), **owned.checked}


def _kept(
    children: tuple[Child, ...], owned: Owned, keeper: Keeper, beside: Beside
) -> Conversation[tuple[Sequence[Planned], _Told]]:
    """Apply the children that are desired, and delete or let go of all others."""
    answer = _digest_of(children)
    checked = _all_as_before(answer, owned, keeper)
    if checked is not None:
        return (), _Told({}, checked, answer)
    planned, problems = planned_children(children, owned, keeper)
    told = _Told({**problems, **_twins(planned)}, answer=answer)
    for each in planned:
        claimed = beside.claimed(each.key)
        if each.label in told.failing:
            continue  # another one of the same name is desired, too
        if claimed:
            told.failing[each.label] = claimed
        elif each.is_outside and not keeper.is_held:
            told.pending[each.label] = "waits for the finalizer of its owner"
        else:
            yield from _settled(each, owned, keeper, told)
    wanted = {each.key for each in planned} | _unplanned(children, told, owned)
    unwanted = [key for key in owned.bodies if key not in wanted]
    for key in sorted(unwanted, key=_from_the_last(owned)) if unwanted else ():
        yield from _pruned(key, owned.bodies[key], keeper, told)
    return planned, told


def _digest_of(children: Iterable[Child]) -> str:
    return digest(
        [
            (e.manifest, e.after, e.keep, e.adopt, e.force, e.foreground)
            for e in children
        ]
    )


def _all_as_before(answer: str, owned: Owned, keeper: Keeper) -> Checked | None:
    """The children, if they and what is desired are as at the last call; else None.

    All was as desired then. So most calls look at no child but the one that changed.
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
        same = _as_known(known, body, keeper)
        if same is None or (names_its_owner(body) and not keeper.is_held):
            return None
        found[key] = same
    return found


def _twins(planned: Iterable[Planned]) -> dict[str, str]:
    """Why children are not made that are one object, by their labels.

    One may name the namespace that is the other one's by default.
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


def _unplanned(children: Iterable[Child], told: _Told, owned: Owned) -> set[Key]:
    """The children that exist and are desired, though nothing can be done for them."""
    names = {
        (each.manifest["kind"], each.manifest["metadata"]["name"])
        for each in (children if told.failing else ())
        if each.label in told.failing
    }
    if not names:
        return set()
    kinds = {each.key: each.kind for each in owned.kinds.values()}
    return {key for key in owned.bodies if (kinds[key.resource], key.name) in names}


# ------------------------------------------------------------------------ applying


def _settled(
    planned: Planned, owned: Owned, keeper: Keeper, told: _Told
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
    same = None if live is None else _still_as_desired(planned, live, owned, keeper)
    if same is not None:
        told.checked[planned.key] = same
        return
    is_child = planned.key in owned.bodies
    lost = _drift(planned, live, owned, keeper) if is_child else []
    if live is not None and lost is None:
        told.checked[planned.key] = _as_desired(planned, live, keeper)
        return
    lost = lost or []
    # Whoever applies another manifest from now on undoes this one.
    told.checked[planned.key] = AsDesired("", planned.applied, "")
    try:
        try:
            yield from _applied(planned, live, lost, keeper, told)
            yield from _change_noted(planned, live, lost, owned, told)
        except Refused as problem:
            lists = _lists(manifest_for(planned, keeper), lost)
            if live is None or not lists or problem.status != 422:
                raise
            yield from _rewritten(planned, live, lists, keeper, told)
    except (Refused, TemporaryError) as problem:
        yield from _refused(planned, live, problem, told)


def _may_be_made(
    planned: Planned, live: Body | None, owned: Owned, keeper: Keeper, told: _Told
) -> Conversation[bool]:
    """Whether what is no child may become one, or be made; else why not is noted."""
    label = planned.label
    if live is None:
        if planned.key in owned.checked and not (
            yield from _is_owner_there(keeper, told)
        ):
            told.pending[label] = "is gone, and its owner is going, too"
            return False
        return True
    problem = _foreign(live, planned, keeper)
    if problem:
        told.failing[label] = problem
    if problem == _ANEW and not live.is_deleting:
        yield from _deleted(planned.key, live, told, label)
    return not problem


def _is_owner_there(keeper: Keeper, told: _Told) -> Conversation[bool]:
    """Whether the owner is there still, by a live read.

    A child that was there is gone: somebody has deleted it, or the garbage collector
    has, since the owner was deleted, and the watch is yet to show that.
    """
    if told.is_owner_there is None:
        place = keeper.key.namespace or None
        found = yield Get(Target.existing(keeper.key.resource, keeper.key.name, place))
        meta = {} if found is None else found["metadata"]
        is_same = meta.get("uid") == keeper.owner.uid
        told.is_owner_there = is_same and not meta.get("deletionTimestamp")
    return told.is_owner_there


def _still_as_desired(
    planned: Planned, live: Body, owned: Owned, keeper: Keeper
) -> AsDesired | None:
    """The child as it is now, if the last call has found it as is desired now."""
    known = owned.checked.get(planned.key)
    if known is None or known.applied != planned.applied:
        return None
    return _as_known(known, live, keeper)


def _as_known(known: AsDesired, live: Body, keeper: Keeper) -> AsDesired | None:
    """The child as it is now, if nobody has changed what was applied."""
    if not known.version:
        return None
    if known.version == live.version:
        return known
    if applied_mark(live) != known.applied:
        return None
    fields = fields_digest(live.data, keeper.manager)
    return known._replace(version=live.version) if fields == known.fields else None


def _as_desired(planned: Planned, live: Body, keeper: Keeper) -> AsDesired:
    fields = fields_digest(live.data, keeper.manager)
    return AsDesired(live.version, planned.applied, fields)


_ANEW = "is being deleted, and is made anew when it is gone"


def _foreign(live: Body, planned: Planned, keeper: Keeper) -> str:
    """Why an object of the child's name may not be taken over; "" if it may.

    One that was made by this handler for this owner, and names none any more, is its
    own. What a former owner of this name has left against its will is not taken over:
    it may hold what is no business of this one.
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


def _drift(
    planned: Planned, live: Body | None, owned: Owned, keeper: Keeper
) -> list[str] | None:
    """The fields that others have changed; None where nothing is to be applied."""
    if live is None:
        return []
    if applied_mark(live) != planned.applied:
        known = owned.checked.get(planned.key)
        is_undone = known is not None and known.applied == planned.applied
        return ["metadata.annotations"] if is_undone else []
    if _folded(live, keeper) is not None:
        return []
    manifest = manifest_for(planned, keeper)
    return lost_fields(manifest, live.data, keeper.manager) or None


def _applied(
    planned: Planned, live: Body | None, lost: list[str], keeper: Keeper, told: _Told
) -> Conversation[None]:
    manifest = manifest_for(planned, keeper)
    fields = _folded(live, keeper)
    if live is not None and fields is not None:
        change = {"op": "replace", "path": "/metadata/managedFields", "value": fields}
        yield Patch(_target(planned.key, live), None, (change,))
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
    yield from _repaired(planned, text)


def _unkept(
    planned: Planned,
    manifest: Mapping[str, Any],
    after: Mapping[str, Any],
    keeper: Keeper,
    told: _Told,
) -> list[str]:
    """The fields that are not there though they have been applied just now.

    The child is as desired then: to apply it again would change nothing.
    """
    fields = lost_fields(manifest, after, keeper.manager)
    if fields:
        found = _as_desired(planned, Body(thaw_json(after)), keeper)
        told.checked[planned.key] = found
        told.unkept.append(Unkept(planned.label, planned.applied, tuple(fields)))
    return fields


def _change_noted(
    planned: Planned, live: Body | None, lost: list[str], owned: Owned, told: _Told
) -> Conversation[None]:
    """Note that a child was applied: for this handler, or for what others have done."""
    known = owned.checked.get(planned.key)
    if lost:
        return  # it was repaired
    if live is not None:
        fields = differing(planned.child.manifest, live.data)
        told.changed.append(f"{planned.label} {', '.join(fields[:3])}".rstrip())
    elif known is not None and known.applied == planned.applied:
        told.repaired.append(f"{planned.label} (deleted)")
        yield from _repaired(planned, f"{planned.label}, which was deleted")
    else:
        told.changed.append(planned.label)


def _repaired(planned: Planned, text: str) -> Conversation[None]:
    """Tell in the log and in an Event what others have done to a child."""
    yield Log("info", f"repaired {text}", {"repaired": planned.label})
    yield Event("Repaired", text[:1000])


def _folded(live: Body | None, keeper: Keeper) -> list[dict[str, Any]] | None:
    """The managed fields, where those of a former name of the operator are ours."""
    if live is None:
        return None
    return folded(live.data, keeper.manager, APPLIED_PATH)


def _lists(manifest: Mapping[str, Any], lost: Iterable[str]) -> dict[str, Any]:
    """The lists of a manifest of which elements are lost, as a merge patch."""
    found: dict[str, Any] = {}
    for path in lost:
        names = names_in(path)
        value: Any = manifest
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        if not isinstance(value, list):
            continue
        for name in reversed(names):
            value = {name: value}
        found = applied(value, found)
    return found


def _rewritten(
    planned: Planned,
    live: Body,
    lists: Mapping[str, Any],
    keeper: Keeper,
    told: _Told,
) -> Conversation[None]:
    """Set lists as a whole, and apply then.

    Somebody has put elements into them beside which ours are not valid, such as another
    port of the same name: an apply adds its elements, and removes those of no other.
    """
    after = yield Patch(_target(planned.key, live), lists)
    yield from _applied(planned, Body(thaw_json(after)), [], keeper, told)
    told.repaired.append(f"{planned.label} {', '.join(sorted(lists))}")
    text = f"{planned.label}: the lists in {', '.join(sorted(lists))} are set anew"
    yield from _repaired(planned, text)


def _refused(
    planned: Planned, live: Body | None, problem: Exception, told: _Told
) -> Conversation[None]:
    """Note why a child was refused; replace it where that is asked for."""
    text = str(problem) or type(problem).__name__
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
        yield from _deleted(planned.key, live, told, planned.label)


# ------------------------------------------------------------------------- pruning


def _from_the_last(owned: Owned) -> Any:
    ranks = {each.key: rank_of(each) for each in owned.kinds.values()}
    return lambda key: (-ranks[key.resource], key)


def _pruned(key: Key, body: Body, keeper: Keeper, told: _Told) -> Conversation[None]:
    """Delete a child that is not desired any more, or let it go."""
    if body.is_deleting or not (keeper.clears or keeper.set.has(key, body)):
        return  # somebody else's; or it goes already
    label = f"{key.resource.partition('.')[0]}/{key.name}"
    if not (keeper.orphans or KEEP_ANNOTATION in body.mapping("annotations")):
        yield Log("info", f"deleting {label}, which is no longer desired")
        yield from _deleted(key, body, told, label)
        return
    names = (OWNER_ANNOTATION, APPLIED_ANNOTATION, KEEP_ANNOTATION)
    marks = {"labels": {SET_LABEL: None}, "annotations": dict.fromkeys(names)}
    why = "which its owner orphans" if keeper.orphans else "which is no longer desired"
    yield Log("info", f"letting go of {label}, {why}")
    try:
        yield Patch(_target(key, body), {"metadata": marks})
    except (Refused, TemporaryError) as problem:
        if not _is_gone(problem):
            told.failing[label] = f"cannot be let go: {problem}"


def _deleted(key: Key, body: Body, told: _Told, label: str) -> Conversation[None]:
    references = body.meta.get("ownerReferences") or ()
    waits = any(isinstance(e, dict) and e.get("blockOwnerDeletion") for e in references)
    try:
        yield Delete(
            _target(key, body),
            uid=body.uid,
            propagation="Foreground" if waits else "Background",
        )
    except (Refused, TemporaryError) as problem:
        if not _is_gone(problem):
            told.failing[label] = f"cannot be deleted: {problem}"
            return
    told.deleted.add(key)


def _is_gone(problem: Exception) -> bool:
    """Whether it was deleted meanwhile, or another has its name (409: the uid)."""
    return isinstance(problem, Refused) and problem.status in (404, 409)


def _target(key: Key, body: Body) -> Target:
    return Target(key.resource, key.name, key.namespace or None, body.uid)


# ------------------------------------------------------------------------- the end


def _ending(
    desired: Desired,
    keeper: Keeper,
    beside: Beside,
    told: _Told,
    own: StatusCondition,
    *,
    holds: bool,
) -> Synchronised:
    conditions, synced = desired.conditions, _of_all(keeper, beside, own)
    if keeper.reports and synced is not None:
        conditions = (*conditions, synced)
    present = keeper.owner.stanza("status")
    if all(_is_told(each, keeper, present) for each in conditions):
        conditions = ()
    status = desired.status
    if status and same_json(applied(status, present), present):
        status = {}
    effects = () if desired.again is None else (Again(desired.again),)
    failure = None
    if told.failing:
        failure = ChildrenFailed(_text(told.failing))
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
        holds,
        told.settled,
    )


def _synced(told: _Told) -> StatusCondition:
    if told.failing:
        return StatusCondition(SYNCED, "False", "Failing", _text(told.failing))
    if told.pending:
        return StatusCondition(SYNCED, "False", "Pending", _text(told.pending))
    return as_desired()


def _text(told: Mapping[str, str]) -> str:
    lines = (f"{label} {why}" for label, why in sorted(told.items()))
    return "; ".join(lines)[:MESSAGE_MAX]
