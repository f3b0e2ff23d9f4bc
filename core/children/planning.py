"""The desired children of an object, in order, with their manifests and marks.

`fnop.core.children.marks` are the marks that identify a child later.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.children.marks import (
    APPLIED_ANNOTATION,
    KEEP_ANNOTATION,
    SET_LABEL,
    ChildSet,
)
from fnop.core.children.owned import OWNER_ANNOTATION, Owned, owner_mark
from fnop.core.values.body import Body, Key
from fnop.effects.desired import Child
from fnop.effects.values import digest, thaw_json

__all__ = [
    "Keeper",
    "Planned",
    "manifest_for",
    "near",
    "planned_children",
    "rank_of",
]

# Kinds that others need come first, as with Helm and kubectl apply --prune. Unnamed
# kinds come with the workloads.
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


class Keeper(Struct, frozen=True):
    """The keeper of a set of children: the handled object, and the handler.

    With `is_held` the operator's finalizer is on the object.

    `set` distinguishes the handler's children from others of the same owner. With
    `reports`, the condition `Synced` is written. `wall` is the time of the attempt
    (Unix seconds). With `clears`, the owner is being deleted, and all given children
    are deleted before it. With `orphans`, as `--cascade=orphan` asks for, they are
    released.
    """

    owner: Body
    resource: Resource
    set: ChildSet
    reports: bool
    is_held: bool
    wall: float
    clears: bool = False
    orphans: bool = False

    @property
    def manager(self) -> str:
        """The operator's name in managed fields."""
        return self.set.manager

    @property
    def key(self) -> Key:
        """The key of the owner."""
        place = self.owner.namespace if self.resource.namespaced else ""
        return Key(self.resource.key, place or "", self.owner.name)


class Planned(Struct, frozen=True):
    """A desired child, with the key of its object.

    `applied` is its set and the digest of the desired manifest, as kept on the object.
    A child that is `out_of_reach` cannot name its owner by a reference.
    """

    child: Child
    label: str
    key: Key
    resource: Resource
    applied: str
    out_of_reach: bool

    @property
    def is_outside(self) -> bool:
        """Whether only this operator deletes it with its owner."""
        return self.out_of_reach and not self.child.keep


def planned_children(
    children: Iterable[Child], owned: Owned, keeper: Keeper
) -> tuple[list[Planned], dict[str, str]]:
    """The children in the order of their application.

    The second result is the reason why some cannot be applied, by their labels.
    """
    found: list[Planned] = []
    problems: dict[str, str] = {}
    itself = keeper.key
    for child in children:
        resource = owned.resource_of(child.manifest)
        problem = _reason_of_misplacement(child, resource, owned, keeper)
        if resource is None or problem:
            problems[child.label] = problem
            continue
        planned = _plan_child(child, resource, keeper)
        problem = owned.unseen(planned.key)
        if planned.key == itself:
            problem = "is the object itself, which cannot own itself"
        if problem:
            problems[child.label] = problem
        else:
            found.append(planned)
    found.sort(key=lambda each: rank_of(each.resource))
    if not any(each.child.after for each in found):
        return found, problems
    problems |= _missing_predecessors(found, problems)
    ordered, circle = _order_children([e for e in found if e.label not in problems])
    told = "waits for itself: the after= of these children go in a circle"
    return ordered, problems | dict.fromkeys(circle, told)


def near(label: str) -> str:
    """The label of a child without its namespace, as `after=` may name it.

    >>> near("service/prod/web"), near("service/web")
    ('service/web', 'service/web')
    """
    kind, *_, name = label.split("/")
    return f"{kind}/{name}"


def _missing_predecessors(
    found: Iterable[Planned], problems: Mapping[str, str]
) -> dict[str, str]:
    """The children whose `after=` names children that are not desired."""
    names = {name for each in found for name in (each.label, near(each.label))}
    lacking = {}
    for each in found:
        for name in each.child.after:
            if name not in names and name not in problems:
                lacking[each.label] = f"after= names {name}, which is not desired"
    return lacking


def rank_of(resource: Resource) -> int:
    """The place of a kind in the order: the kinds that others need come first."""
    return _RANKS.get(resource.kind, len(_ORDER))


def _order_children(planned: list[Planned]) -> tuple[list[Planned], list[str]]:
    """Return the children, each after those in its `after=`; else as they are.

    The second result is the labels of children that wait for each other.
    """
    found: list[Planned] = []
    left = list(planned)
    while left:
        waiting = {name for each in left for name in (each.label, near(each.label))}
        ready = [e for e in left if not waiting.intersection(e.child.after)]
        if not ready:
            return found, [each.label for each in left]
        found += ready
        left = [e for e in left if e not in ready]
    return found, []


def _reason_of_unknown_kind(child: Child, owned: Owned) -> str:
    """The reason why a manifest matches no kind in `owns=`."""
    kind, version = child.manifest["kind"], child.manifest["apiVersion"]
    group = version.rpartition("/")[0]
    for each in owned.kinds.values():
        if (each.kind, each.group) == (kind, group):
            other = f"{each.plural}.{version.rpartition('/')[2]}.{group}"
            return (
                f"is of {version}, but {kind} is owned as {each.api_version}; "
                f"owns={other!r} means the former"
            )
    return (
        f"owns= does not name {kind} of {version}, or the API server does not serve it"
    )


def _reason_of_misplacement(
    child: Child, resource: Resource | None, owned: Owned, keeper: Keeper
) -> str:
    """The reason why a child cannot be in its manifest's place; "" if it can."""
    if resource is None:
        return _reason_of_unknown_kind(child, owned)
    place = child.manifest["metadata"].get("namespace")
    if resource.namespaced and not (place or keeper.owner.namespace):
        return "its owner is in no namespace, so its manifest has to name one"
    if place and not resource.namespaced:
        return f"{resource.label} are in no namespace; leave it out of the manifest"
    return ""


def _plan_child(child: Child, resource: Resource, keeper: Keeper) -> Planned:
    meta, place = child.manifest["metadata"], ""
    if resource.namespaced:
        place = str(meta.get("namespace") or keeper.owner.namespace)
    home = keeper.owner.namespace
    # Kubernetes: owners and dependents.
    out_of_reach = bool(home) and (not resource.namespaced or place != home)
    marks = [child.manifest, child.keep, child.foreground]
    key = Key(resource.key, place, meta["name"])
    applied = keeper.set.mark(key, digest(marks))
    return Planned(child, child.label, key, resource, applied, out_of_reach)


def manifest_for(planned: Planned, keeper: Keeper) -> dict[str, Any]:
    """The manifest to apply: with its place, its owner, and fnop's marks."""
    child = planned.child
    manifest = _stored_form(thaw_json(child.manifest))
    meta = manifest["metadata"]
    if planned.resource.namespaced:
        meta["namespace"] = planned.key.namespace
    meta["labels"] = {**(meta.get("labels") or {}), SET_LABEL: keeper.set.label}
    marks = {APPLIED_ANNOTATION: planned.applied}
    if child.keep:
        marks[KEEP_ANNOTATION] = "true"
    if child.keep or planned.out_of_reach:
        marks[OWNER_ANNOTATION] = owner_mark(keeper.resource, keeper.owner)
    else:
        meta["ownerReferences"] = [
            _owner_reference(keeper, foreground=child.foreground)
        ]
    meta["annotations"] = {**(meta.get("annotations") or {}), **marks}
    return manifest


def _without_none(value: Any) -> Any:
    """Return a value without the fields that are None: others may set those."""
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in value]
    return value


def _stored_form(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as the API server keeps it: `stringData` is only for writing."""
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


def _owner_reference(keeper: Keeper, *, foreground: bool) -> dict[str, Any]:
    return {
        "apiVersion": keeper.resource.api_version,
        "kind": keeper.resource.kind,
        "name": keeper.owner.name,
        "uid": keeper.owner.uid,
        "controller": True,
        "blockOwnerDeletion": foreground,
    }
