"""FollowUps of a script: other objects like the last one, and the end of all.

Objects of a kind share nothing but their operator. So another object, of another name
or in another namespace, comes and goes without a trace in objects of the first. An
object with an owner of its own does not concern the operator, even if its labels look
like a child's. The same holds for a *bystander*, an object without labels, of a kind
that the operator creates. When the user's objects are all deleted, nothing that was
made for them stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.values.merge import applied
from fnop.interpreters.check.state.records import Scene
from fnop.interpreters.check.state.worlds import alias_of, is_builtin
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.recording.identities.metadata import OWN
from fnop.interpreters.simulation.actions import (
    Action,
    ActionRefused,
    Apply,
    Delete,
    Edit,
    address_of,
)
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = [
    "BYSTANDER",
    "ELSEWHERE",
    "FollowUp",
    "Known",
    "follow_ups_of",
    "is_of_given",
    "left_by",
    "owned_in",
    "trespasses",
]

Manifest = Mapping[str, Any]
# Kinds whose objects do nothing, by their plain plurals.
_PASSIVE = frozenset(
    ("", name) for name in ("configmaps", "persistentvolumeclaims", "pods", "secrets")
)
# Fields that the cluster has set in a spec, for this object alone.
_ASSIGNED = ("nodeName", "volumeName")
# The namespace of a namesake.
ELSEWHERE = "elsewhere"
# The name of an object without any connection to the operator.
BYSTANDER = "bystander"
_POD = {"containers": [{"name": "c", "image": "c"}]}
_ASKS = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
_MARK = {"bystander": "yes"}
_SET = {
    "replicas": 0,
    "selector": {"matchLabels": _MARK},
    "template": {"metadata": {"labels": _MARK}, "spec": _POD},
}
_JOB = {"suspend": True, "template": {"spec": {**_POD, "restartPolicy": "Never"}}}
# The manifests of bystanders, which do nothing by themselves, by their kinds.
_BYSTANDERS: Mapping[tuple[str, str], Manifest] = {
    ("", "configmaps"): {"apiVersion": "v1", "kind": "ConfigMap"},
    ("", "persistentvolumeclaims"): {
        **{"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
        "spec": _ASKS,
    },
    ("", "pods"): {"apiVersion": "v1", "kind": "Pod", "spec": _POD},
    ("", "secrets"): {"apiVersion": "v1", "kind": "Secret"},
    ("", "services"): {
        **{"apiVersion": "v1", "kind": "Service"},
        "spec": {"ports": [{"port": 80}]},
    },
    ("apps", "deployments"): {
        **{"apiVersion": "apps/v1", "kind": "Deployment"},
        "spec": _SET,
    },
    ("apps", "statefulsets"): {
        **{"apiVersion": "apps/v1", "kind": "StatefulSet"},
        "spec": {**_SET, "serviceName": BYSTANDER},
    },
    ("batch", "jobs"): {"apiVersion": "batch/v1", "kind": "Job", "spec": _JOB},
}


class Known(Struct, frozen=True):
    """An existing object: its kind, its key, and its uid."""

    resource: tuple[str, str]
    key: tuple[str, str]
    uid: str
    alias: str

    def found_in(self, cluster: Cluster) -> dict[str, Any] | None:
        """The object in a cluster; None if it is gone, or another one has its name."""
        shelf = cluster.shelves.get(self.resource)
        found = shelf.get(self.key) if shelf else None
        return found if found and found["metadata"]["uid"] == self.uid else None


def left_by(scene: Scene, script: Sequence[Action]) -> tuple[Action, ...]:
    """The actions of a user who directly creates the objects that a script leaves.

    An object is created again at its first place in the order: others may build upon
    it. A status, which the user writes in the place of another controller, comes after
    it, because a creation would drop it. Actions on objects that existed before come
    first.
    """
    left: dict[object, Action | None] = {}
    statuses: dict[object, Edit] = {}
    before = [each for each in script if is_of_given(scene, each)]
    others = [each for each in script if not is_of_given(scene, each)]
    for number, each in enumerate(others):
        place = _address(scene, each)
        known = left.get(place)
        if place not in left:
            left[place if isinstance(each, Apply) else number] = each
        elif isinstance(each, Delete) or known is None:
            left[place] = each if isinstance(each, Apply) else None
            statuses.pop(place, None)
        else:
            assert isinstance(known, Apply)
            assert isinstance(each, (Apply, Edit))  # the others are not about an object
            changes = dict(each.manifest if isinstance(each, Apply) else each.changes)
            status = changes.pop("status", None)
            left[place] = Apply(applied(changes, known.manifest))
            if status is not None:
                statuses[place] = _edit_with_status(
                    statuses.get(place), scene, each, status
                )
    made = [each for each in left.values() if each is not None]
    return (*before, *made, *statuses.values())


def is_of_given(scene: Scene, action: Action) -> bool:
    """Whether an action is about an object that existed before the script."""
    place = _address(scene, action)
    if place is None or place[0] is None:
        return False
    resource, name, namespace = place
    assert isinstance(resource, Resource)
    shelf = scene.base.cluster.shelves.get((resource.group, resource.plural))
    key = str(namespace) if resource.namespaced else "", str(name)
    return shelf is not None and shelf.get(key) is not None


def _edit_with_status(
    before: Edit | None, scene: Scene, action: Apply | Edit, status: Any
) -> Edit:
    """The edit of a status, merged into the one before."""
    if isinstance(action, Edit):
        where, namespace = action.where, action.namespace
    else:
        meta = action.manifest.get("metadata") or {}
        resource = catalogue_of(scene.base).of_manifest(action.manifest)
        assert resource is not None  # the object exists
        kind = f"{resource.plural}.{resource.group}".rstrip(".")
        where, namespace = f"{kind}/{meta['name']}", meta.get("namespace")
    known = {} if before is None else before.changes["status"]
    merged = applied(status, known) if isinstance(status, Mapping) else status
    return Edit(where, {"status": merged}, namespace)


def _address(scene: Scene, action: Action) -> tuple[object, ...] | None:
    """The kind, the name and the namespace of an action's object."""
    match action:
        case Apply(manifest):
            meta = manifest.get("metadata") or {}
            resource = catalogue_of(scene.base).of_manifest(manifest)
            return resource, meta.get("name"), meta.get("namespace") or scene.namespace
        case Edit() | Delete():
            with suppress(ActionRefused):  # of a kind that the operator defines
                found, name = address_of(scene.base, action.where)
                return found, name, action.namespace or scene.namespace
        case _:
            pass
    return None


class FollowUp(Struct, frozen=True):
    """Actions after a script, beginning with those that create `strangers`.

    `owners` are the uids of the objects that the script leaves. With `ends` the
    follow-up deletes them.
    """

    actions: tuple[Action, ...]
    strangers: tuple[Manifest, ...]
    owners: tuple[str, ...]
    ends: bool = False

    def __str__(self) -> str:
        return f"the script goes on: {'; '.join(map(str, self.actions))}"


def follow_ups_of(
    scene: Scene,
    handled: frozenset[str],
    end: Cluster,
    made: Collection[str] = (),
    *,
    alone: bool = False,
) -> list[FollowUp]:
    """The follow-ups of a script that has ended in this cluster; `handled` are kinds.

    A script has no follow-ups if nothing is left of a custom kind with handlers. `made`
    are the uids of the objects that the operator has made. For an object that is
    `alone` the only follow-up is its end: no others come and go.
    """
    objects = [*_own_objects(scene, handled, end)]
    if not objects:
        return []
    owners = tuple(uid for _, _, uid in objects)
    strangers = tuple(_strangers(end, owners))
    ends = tuple(
        Delete(f"{kind}/{each['metadata']['name']}", each["metadata"].get("namespace"))
        for kind, each, _ in objects
    )
    # A handler that lists a namespace may count a newcomer. So no stranger comes if
    # handlers look at the children of others.
    several = (*strangers, *_bystanders(scene, end, made))
    begin_end = tuple(Apply(dict(each)) for each in several)
    over = FollowUp((*begin_end, *ends), several, owners, ends=True)
    return (
        [over]
        if alone
        else [*_twin_follow_ups(scene, objects[-1], owners, strangers), over]
    )


def _twin_follow_ups(
    scene: Scene,
    last: tuple[str, Manifest, str],
    owners: tuple[str, ...],
    strangers: tuple[Manifest, ...],
) -> Iterator[FollowUp]:
    """An object of another name comes and goes, and a namesake in another namespace."""
    kind, manifest, _ = last
    begin = tuple(Apply(dict(each)) for each in strangers)
    twin, place = _twin(manifest), manifest["metadata"].get("namespace")
    comes_and_goes = Apply(twin), Delete(f"{kind}/{twin['metadata']['name']}", place)
    yield FollowUp((*begin, *comes_and_goes), strangers, owners)
    resource = catalogue_of(scene.base).of_manifest(manifest)
    if resource is None or not resource.namespaced:
        return
    name = manifest["metadata"]["name"]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}}
    meta = {**manifest["metadata"], "namespace": ELSEWHERE}
    namesake = Apply({**manifest, "metadata": meta})
    actions = (Apply(space), namesake, Delete(f"{kind}/{name}", ELSEWHERE))
    yield FollowUp(actions, (), owners)


def _own_objects(
    scene: Scene, handled: frozenset[str], end: Cluster
) -> Iterator[tuple[str, Manifest, str]]:
    """The objects that the script leaves: their kind, their manifest, their uid."""
    for action in left_by(scene, scene.script):
        if not isinstance(action, Apply) or "name" not in action.manifest["metadata"]:
            continue
        resource = catalogue_of(scene.base).of_manifest(action.manifest)
        if resource is None or is_builtin(resource.group):
            continue
        if action.manifest["metadata"].get("finalizers"):
            continue  # the user holds it, and releases it in another way
        kind = f"{resource.plural}.{resource.group}"
        meta = action.manifest["metadata"]
        place = (
            (meta.get("namespace") or scene.namespace) if resource.namespaced else ""
        )
        shelf = end.shelves.get((resource.group, resource.plural))
        found = shelf.get((place, meta["name"])) if shelf else None
        if kind in handled and found and "deletionTimestamp" not in found["metadata"]:
            yield kind, action.manifest, found["metadata"]["uid"]


def _twin(manifest: Manifest) -> dict[str, Any]:
    meta = manifest["metadata"]
    return {**manifest, "metadata": {**meta, "name": f"{meta['name']}-twin"}}


def owned_in(
    cluster: Cluster,
    owners: Sequence[str],
    drawn: Collection[bytes] = (),
    *,
    passive: bool = False,
) -> list[Known]:
    """The objects with owners, all of them among these uids.

    `drawn` are the random bytes that their names may be made of.
    """
    found = []
    for resource, shelf in sorted(cluster.shelves.items()):
        if passive and resource not in _PASSIVE:
            continue
        for key, each in sorted(shelf.items()):
            uids = {e["uid"] for e in each["metadata"].get("ownerReferences") or ()}
            if uids and uids <= set(owners):
                uid = each["metadata"]["uid"]
                alias = alias_of(resource, each, drawn)
                found.append(Known(resource, key, uid, alias))
    return found


def trespasses(
    follow_up: FollowUp,
    rests: Sequence[Cluster],
    usual: Cluster,
    waited: Sequence[Cluster] = (),
) -> Iterator[tuple[Known, str]]:
    """The objects that a follow-up must not affect, and what happens to them.

    `rests` are the clusters before it, after each of its actions, and after restarts.
    An object that is also gone in the `usual` end went by itself. So did one that is
    also gone after the user has only `waited` as long.
    """
    before, *later = rests
    watched: dict[Known, Manifest | None] = {
        each: each.found_in(before)
        for each in owned_in(before, follow_up.owners)
        if not follow_up.ends and each.found_in(usual)
    }
    for number, cluster in enumerate(later):
        if number < len(follow_up.strangers):
            stranger = _known(follow_up.strangers[number], cluster)
            watched[stranger] = follow_up.strangers[number]
        told = follow_up.actions[number : number + 1]
        when = f"after `{told[0]}`" if told else "when the operator restarts"
        instead = waited[number + 1 : number + 2]
        for each, was in [*watched.items()]:
            now = each.found_in(cluster)
            if now is None:
                if was in follow_up.strangers or not _is_gone(each, instead):
                    yield each, f"is gone {when}"
            elif _owners(now) != _owners(was):
                yield each, f"has another owner {when}"
            else:
                continue
            del watched[each]


def _is_gone(known: Known, clusters: Sequence[Cluster]) -> bool:
    """Whether an object is gone in the cluster, if a cluster is given."""
    return any(known.found_in(each) is None for each in clusters)


def _owners(found: Manifest | None) -> Any:
    return found and found["metadata"].get("ownerReferences")


def _known(manifest: Manifest, cluster: Cluster) -> Known:
    """The object of a stranger's manifest, existing or not."""
    meta = manifest["metadata"]
    key = meta["namespace"], meta["name"]
    group = manifest["apiVersion"].rpartition("/")[0]
    resource = group, f"{manifest['kind'].lower()}s"
    shelf = cluster.shelves.get(resource)
    found = shelf.get(key) if shelf else None
    uid = found["metadata"]["uid"] if found else ""
    return Known(resource, key, uid, alias_of(resource, manifest))


def _strangers(cluster: Cluster, owners: Sequence[str]) -> Iterator[Manifest]:
    """Copies of children, one of each kind, owned by their namespace."""
    spaces = cluster.shelves.get(("", "namespaces"))
    kinds = set()
    for each in owned_in(cluster, owners, passive=True):
        found = each.found_in(cluster)
        space = spaces.get(("", each.key[0])) if spaces else None
        if each.resource in kinds or found is None or space is None:
            continue
        kinds.add(each.resource)
        yield _stranger(found, space)


def _bystanders(
    scene: Scene, cluster: Cluster, made: Collection[str]
) -> Iterator[Manifest]:
    """Objects without a label or an owner, one of each kind that the operator makes.

    There are none of kinds with handlers, nor in a namespace that did not exist before
    the operator: everything within may be its own.
    """
    spaces = scene.base.cluster.shelves.get(("", "namespaces")) or ()
    for (group, plural), manifest in _BYSTANDERS.items():
        kind = catalogue_of(scene.base).lookup(f"{plural}.{group}".rstrip("."))
        if kind is None or any(
            each.selector is not None and each.selector.matches(kind)
            for each in scene.program.handlers
        ):
            continue
        shelf = cluster.shelves.get((group, plural))
        for (space, _), found in sorted(shelf.items()) if shelf else ():
            if found["metadata"]["uid"] in made and ("", space) in spaces:
                yield {**manifest, "metadata": {"name": BYSTANDER, "namespace": space}}
                break


def _stranger(found: Mapping[str, Any], space: Mapping[str, Any]) -> Manifest:
    meta = found["metadata"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": space["metadata"]["name"]}
    kept: dict[str, Any] = {
        "name": f"other-{meta['name']}",
        "namespace": meta["namespace"],
        "ownerReferences": [{**owner, "uid": space["metadata"]["uid"]}],
    }
    for stanza in ("labels", "annotations"):
        values = meta.get(stanza) or {}
        kept[stanza] = {k: v for k, v in values.items() if not k.startswith(OWN)}
    rest = {
        key: each for key, each in found.items() if key not in ("metadata", "status")
    }
    if isinstance(rest.get("spec"), dict):
        spec = rest["spec"]
        rest["spec"] = {key: spec[key] for key in spec if key not in _ASSIGNED}
    return {**rest, "metadata": kept}
