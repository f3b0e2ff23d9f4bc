"""From what is desired to what is there: one conversation of effects.

`synchronise` is a generator of effects, as a handler may be. It applies what differs,
in an order that Kubernetes likes, deletes what is owned and not desired any more, and
ends with the object's conditions and status. A child that fails stops no other one.

It asks for nothing where all is as desired: the digest of what was last applied is on
each child, and `managedFields` tell whether its fields are still ours.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fnop.core.api.resources import Resource
from fnop.core.children.fields import folded, lost_fields, managers_of
from fnop.core.children.owned import OWNER_ANNOTATION, Owned, owner_mark
from fnop.core.memory.conditions import Condition, conditions_with
from fnop.core.values.body import Body, Key
from fnop.core.values.errors import Refused, TemporaryError
from fnop.core.values.merge import applied
from fnop.core.values.now import wall_seconds
from fnop.effects import (
    Again,
    Apply,
    Delete,
    Effect,
    Event,
    Log,
    Patch,
    Target,
)
from fnop.effects.desired import Child, Desired, StatusCondition
from fnop.effects.values import digest, thaw_json

__all__ = [
    "APPLIED_ANNOTATION",
    "SET_LABEL",
    "SYNCED",
    "ChildrenFailed",
    "Keeper",
    "Synchronised",
    "is_immutable",
    "outside",
    "set_of",
    "synchronise",
]

# On each child: the handler whose set it is of, and the digest of what was applied.
SET_LABEL = "fnop.dev/set"
APPLIED_ANNOTATION = "fnop.dev/applied"
# The child is let go, and not deleted, when it is no longer desired.
KEEP_ANNOTATION = "fnop.dev/keep"
# The condition that tells whether all children are as desired.
SYNCED = "Synced"

# Kinds that others need come first, as with Helm and kubectl apply --prune. Those that
# are not named come with the workloads.
_ORDER = (
    ("Namespace",),
    ("CustomResourceDefinition", "PriorityClass", "StorageClass", "RuntimeClass"),
    ("ResourceQuota", "LimitRange", "NetworkPolicy", "PodDisruptionBudget"),
    ("ServiceAccount", "Secret", "ConfigMap"),
    ("PersistentVolume", "PersistentVolumeClaim"),
    ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    ("Service",),
)
_RANKS = {kind: rank for rank, kinds in enumerate(_ORDER) for kind in kinds}

_IMMUTABLE = re.compile(
    r"immutable|(may not|can ?not) (be )?changed?\b|updates to .* are forbidden"
    r"|Forbidden: updates to",
    re.IGNORECASE,
)


T = TypeVar("T")
# Effects, the answers to them, and a result.
Conversation: TypeAlias = Generator[Effect, Any, T]


class ChildrenFailed(Exception):
    """Some children could not be made as desired; the handler is tried again."""


class Keeper(NamedTuple):
    """Who keeps a set of children: the handled object, and the handler.

    With `is_held` the operator's finalizer is on the object.

    `manager` is the operator's name in managed fields; `set` tells the handler's
    children from others of the same owner. With `reports` the condition `Synced` is
    written. `wall` is the time of the attempt (Unix seconds).
    """

    owner: Body
    resource: Resource
    manager: str
    set: str
    reports: bool
    is_held: bool
    wall: float


class Synchronised(NamedTuple):
    """The end: a change of the status, further effects, and the failure if any.

    With `holds` the object has children that the garbage collector does not delete with
    it: the finalizer has to keep it until they are gone.
    """

    status: Mapping[str, Any]
    conditions: tuple[StatusCondition, ...]
    effects: tuple[Effect, ...] = ()
    failure: ChildrenFailed | None = None
    holds: bool = False

    def change(self, keeper: Keeper, body: dict[str, Any]) -> None:
        """Merge the conditions into an object, by their types; others' stay."""
        found = body.get("status")
        status = found if isinstance(found, dict) else {}
        present = status.get("conditions")
        merged: list[Any] = list(present) if isinstance(present, list) else []
        moment, generation = wall_seconds(keeper.wall), keeper.owner.generation
        for each in self.conditions:
            told = Condition(
                each.status, each.reason, each.message, keeper.wall, generation
            )
            merged = conditions_with(merged, each.type, told, moment)
        if merged:
            body["status"] = {**status, "conditions": merged}


def set_of(marker: str, handler: str) -> str:
    """The label of a handler's set of children: short, and the same at every run.

    >>> set_of("fnop.dev/default", "database")
    '414192e313ab5b36'
    """
    return digest(f"{marker}/{handler}")[:16]


def is_immutable(message: str) -> bool:
    """Whether an API server refuses a write since a field cannot be changed.

    >>> is_immutable('Service "a" is invalid: spec.clusterIP: field is immutable')
    True
    """
    return _IMMUTABLE.search(message) is not None


class _Planned(NamedTuple):
    """A desired child, addressed and owned: as it is applied."""

    child: Child
    label: str
    key: Key
    resource: Resource
    manifest: dict[str, Any]
    # The set and the digest of the manifest, as it is kept on the child.
    applied: str
    # Nobody but this operator deletes it with its owner.
    is_outside: bool


class _Told:
    """What is found out about children on the way."""

    def __init__(self) -> None:
        self.failing: dict[str, str] = {}
        self.pending: dict[str, str] = {}

    def blocks(self, names: Iterable[str]) -> str:
        """The first of these children that is not there yet; else ""."""
        return next((e for e in names if e in self.failing or e in self.pending), "")


def synchronise(
    desired: Desired, owned: Owned, keeper: Keeper
) -> Conversation[Synchronised]:
    """Make the children as desired; returns what is to be told about it.

    Deletions come last, in the reverse order. What is deleted is owned by the object's
    uid, and was applied by the same handler.
    """
    told = _Told()
    planned = _planned(desired.children, owned, keeper, told)
    for each in planned:
        if each.is_outside and not keeper.is_held:
            told.pending[each.label] = "waits for the finalizer of its owner"
        else:
            yield from _settled(each, owned, keeper, told)
    wanted = {each.key for each in planned} | _unplanned(desired.children, told, owned)
    for key in sorted(owned.bodies, key=_from_the_last(owned)):
        if key not in wanted:
            yield from _pruned(key, owned.bodies[key], keeper, told)
    holds = any(each.is_outside for each in planned)
    return _ending(desired, keeper, told, holds=holds)


# ------------------------------------------------------------------------ planning


def _planned(
    children: Iterable[Child], owned: Owned, keeper: Keeper, told: _Told
) -> list[_Planned]:
    """The children in the order in which they are applied."""
    found: list[_Planned] = []
    for child in children:
        resource = owned.resource_of(child.manifest)
        if resource is None:
            kind, version = child.manifest["kind"], child.manifest["apiVersion"]
            told.failing[child.label] = (
                f"owns= does not name {kind} of {version}, or the API server does not "
                "serve it"
            )
            continue
        problem = _misplaced(child, resource, keeper)
        if problem:
            told.failing[child.label] = problem
            continue
        found.append(_addressed(child, resource, keeper))
    ranked = sorted(found, key=lambda each: _rank(each.resource))
    return _after_others(ranked)


def _rank(resource: Resource) -> int:
    return _RANKS.get(resource.kind, len(_ORDER))


def _after_others(planned: list[_Planned]) -> list[_Planned]:
    """The same children, each after those that its `after=` names; else as they are."""
    found: list[_Planned] = []
    left = list(planned)
    while left:
        waiting = {each.label for each in left}
        ready = [e for e in left if not waiting.intersection(e.child.after)]
        found += ready or left  # a cycle is told when its first member is applied
        left = [e for e in left if e not in found] if ready else []
    return found


def _misplaced(child: Child, resource: Resource, keeper: Keeper) -> str:
    """Why a child cannot be where its manifest says; "" if it can."""
    place = child.manifest["metadata"].get("namespace")
    if resource.namespaced and not (place or keeper.owner.namespace):
        return "its owner is in no namespace, so its manifest has to name one"
    if place and not resource.namespaced:
        return f"{resource.label} are in no namespace; leave it out of the manifest"
    return ""


def _addressed(child: Child, resource: Resource, keeper: Keeper) -> _Planned:
    """The child with its place, its owner, and the marks by which it is found again."""
    manifest = _plain(thaw_json(child.manifest))
    meta = manifest["metadata"] = {**manifest["metadata"]}
    place = ""
    if resource.namespaced:
        place = str(meta.setdefault("namespace", keeper.owner.namespace))
    meta["labels"] = {**(meta.get("labels") or {}), SET_LABEL: keeper.set}
    marks: dict[str, str] = {}
    if child.keep:
        marks[KEEP_ANNOTATION] = "true"
    is_out_of_reach = _is_out_of_reach(resource, place, keeper)
    if child.keep or is_out_of_reach:
        marks[OWNER_ANNOTATION] = owner_mark(keeper.resource, keeper.owner)
    else:
        meta["ownerReferences"] = [_reference(keeper, foreground=child.foreground)]
    if marks or meta.get("annotations"):
        meta["annotations"] = {**(meta.get("annotations") or {}), **marks}
    text = f"{keeper.set}.{digest(manifest)}"
    meta["annotations"] = {**(meta.get("annotations") or {}), APPLIED_ANNOTATION: text}
    key = Key(resource.key, place or "", meta["name"])
    is_outside = is_out_of_reach and not child.keep
    return _Planned(child, child.label, key, resource, manifest, text, is_outside)


def _without_none(value: Any) -> Any:
    """A value without the fields that are None: those are left to others."""
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in value]
    return value


def _plain(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as the API server keeps it: `stringData` is for writing alone."""
    manifest = _without_none(manifest)
    texts = manifest.get("stringData")
    if manifest.get("kind") != "Secret" or not isinstance(texts, Mapping):
        return manifest
    rest = {key: value for key, value in manifest.items() if key != "stringData"}
    coded = {
        key: base64.b64encode(str(text).encode()).decode()
        for key, text in texts.items()
    }
    return {**rest, "data": {**(manifest.get("data") or {}), **coded}}


def _is_out_of_reach(resource: Resource, place: str, keeper: Keeper) -> bool:
    """Whether a child cannot have its owner's reference (owners and dependents)."""
    home = keeper.owner.namespace
    return bool(home) and (not resource.namespaced or place != home)


def _reference(keeper: Keeper, *, foreground: bool) -> dict[str, Any]:
    return {
        "apiVersion": keeper.resource.api_version,
        "kind": keeper.resource.kind,
        "name": keeper.owner.name,
        "uid": keeper.owner.uid,
        "controller": True,
        "blockOwnerDeletion": foreground,
    }


def _unplanned(children: Iterable[Child], told: _Told, owned: Owned) -> set[Key]:
    """The children that exist and are desired, though nothing can be done for them."""
    names = {
        (each.manifest["kind"], each.manifest["metadata"]["name"])
        for each in children
        if each.label in told.failing
    }
    kinds = {each.key: each.kind for each in owned.kinds.values()}
    return {key for key in owned.bodies if (kinds[key.resource], key.name) in names}


# ------------------------------------------------------------------------ applying


def _settled(
    planned: _Planned, owned: Owned, keeper: Keeper, told: _Told
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
        problem = _foreign(live, planned, keeper) if live is not None else ""
        if problem:
            told.failing[label] = problem
            if problem == _ANEW and live is not None and not live.is_deleting:
                yield from _deleted(planned.key, live, told, label)
            return
    lost = _drift(planned, live, keeper)
    if lost is None:
        return
    try:
        try:
            yield from _applied(planned, live, lost, keeper)
        except Refused as problem:
            lists = _lists(planned.manifest, lost)
            if live is None or not lists or problem.status != 422:
                raise
            yield from _rewritten(planned, live, lists, keeper)
    except (Refused, TemporaryError) as problem:
        yield from _refused(planned, live, problem, told)


_ANEW = "is being deleted, and is made anew when it is gone"


def _foreign(live: Body, planned: _Planned, keeper: Keeper) -> str:
    """Why an object of the child's name may not be taken over; "" if it may.

    What a former owner of this name has left against its will is not taken over: it may
    hold what is no business of this one.
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
    why = "was kept from a former owner of this name" if mark else "nobody owns it"
    return f"exists, and {why}; adopt=True takes it over"


def _drift(planned: _Planned, live: Body | None, keeper: Keeper) -> list[str] | None:
    """The fields that others have changed; None where nothing is to be applied."""
    if live is None:
        return []
    if live.mapping("annotations").get(APPLIED_ANNOTATION) != planned.applied:
        return []
    if folded(live.data, keeper.manager) is not None:
        return []
    return lost_fields(planned.manifest, live.data, keeper.manager) or None


def _applied(
    planned: _Planned, live: Body | None, lost: list[str], keeper: Keeper
) -> Conversation[None]:
    manifest = planned.manifest
    fields = None if live is None else folded(live.data, keeper.manager)
    if live is not None and fields is not None:
        change = {"op": "replace", "path": "/metadata/managedFields", "value": fields}
        yield Patch(_target(planned.key, live), None, (change,))
    if live is not None:  # for this object alone, and not for another of its name
        manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": live.uid}}
    after = yield Apply(manifest, force=planned.child.force)
    if live is None or not lost:
        return
    if after["metadata"].get("resourceVersion") == live.version:
        text = "which the API server does not keep: its definition has no such field"
        yield Log("warning", f"{planned.label} desires {', '.join(lost)}, {text}")
        return
    who = sorted({name for path in lost for name in managers_of(live.data, path)})
    by = f", changed by {', '.join(who)}" if who else ""
    text = f"{planned.label}: {', '.join(lost[:5])}{by}"
    yield Log("info", f"repaired {text}", {"repaired": planned.label})
    yield Event("Repaired", text[:1000])


def _lists(manifest: Mapping[str, Any], lost: Iterable[str]) -> dict[str, Any]:
    """The lists of a manifest of which elements are lost, as a merge patch."""
    found: dict[str, Any] = {}
    for path in lost:
        names = path.partition("[")[0].split(".")
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
    planned: _Planned, live: Body, lists: Mapping[str, Any], keeper: Keeper
) -> Conversation[None]:
    """Set lists as a whole, and apply then.

    Somebody has put elements into them beside which ours are not valid, such as another
    port of the same name: an apply adds its elements, and removes those of no other.
    """
    after = yield Patch(_target(planned.key, live), lists)
    yield from _applied(planned, Body(thaw_json(after)), [], keeper)
    text = f"{planned.label}: the lists in {', '.join(sorted(lists))} are set anew"
    yield Log("info", f"repaired {text}", {"repaired": planned.label})
    yield Event("Repaired", text[:1000])


def _refused(
    planned: _Planned, live: Body | None, problem: Exception, told: _Told
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
    ranks = {each.key: _rank(each) for each in owned.kinds.values()}
    return lambda key: (-ranks[key.resource], key)


def _pruned(key: Key, body: Body, keeper: Keeper, told: _Told) -> Conversation[None]:
    """Delete a child that is not desired any more, or let it go."""
    if not _is_of(body, keeper.set) or body.is_deleting:
        return  # somebody else's; or it goes already
    label = f"{key.resource.partition('.')[0]}/{key.name}"
    if KEEP_ANNOTATION not in body.mapping("annotations"):
        yield Log("info", f"deleting {label}, which is no longer desired")
        yield from _deleted(key, body, told, label)
        return
    names = (OWNER_ANNOTATION, APPLIED_ANNOTATION, KEEP_ANNOTATION)
    marks = {"labels": {SET_LABEL: None}, "annotations": dict.fromkeys(names)}
    yield Log("info", f"letting go of {label}, which is no longer desired")
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


def _is_of(body: Body, set: str) -> bool:
    """Whether a handler has applied an object; users may take one of the marks away."""
    applied = body.mapping("annotations").get(APPLIED_ANNOTATION)
    is_applied = isinstance(applied, str) and applied.startswith(f"{set}.")
    return is_applied or body.mapping("labels").get(SET_LABEL) == set


def outside(bodies: Mapping[Key, Body], set: str) -> dict[Key, Body]:
    """The children of a set that only its operator deletes with their owner."""
    return {
        key: body
        for key, body in bodies.items()
        if _is_of(body, set)
        and OWNER_ANNOTATION in body.mapping("annotations")
        and KEEP_ANNOTATION not in body.mapping("annotations")
    }


def _is_gone(problem: Exception) -> bool:
    """Whether it was deleted meanwhile, or another has its name (409: the uid)."""
    return isinstance(problem, Refused) and problem.status in (404, 409)


def _target(key: Key, body: Body) -> Target:
    return Target(key.resource, key.name, key.namespace or None, body.uid)


# ------------------------------------------------------------------------- the end


def _ending(
    desired: Desired, keeper: Keeper, told: _Told, *, holds: bool
) -> Synchronised:
    conditions = desired.conditions
    if keeper.reports:
        conditions = (*conditions, _synced(told))
    effects = () if desired.again is None else (Again(desired.again),)
    failure = None
    if told.failing:
        failure = ChildrenFailed(_text(told.failing))
    return Synchronised(desired.status, conditions, effects, failure, holds)


def _synced(told: _Told) -> StatusCondition:
    if told.failing:
        return StatusCondition(SYNCED, "False", "Failing", _text(told.failing))
    if told.pending:
        return StatusCondition(SYNCED, "False", "Pending", _text(told.pending))
    return StatusCondition(SYNCED, "True", "AsDesired", "")


def _text(told: Mapping[str, str]) -> str:
    lines = (f"{label} {why}" for label, why in sorted(told.items()))
    return "; ".join(lines)[:1024]
