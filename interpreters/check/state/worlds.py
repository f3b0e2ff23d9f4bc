"""Worlds compared: everything in a cluster that does not differ between equal runs.

Uids, versions, timestamps and generated names differ between two runs of the same
script, and so do fnop's own notes on objects. All of them are renamed or omitted.
Nothing else is, so an author does not have to set a mask.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson

from fnop.core.memory.storage import AnyStorage, FormattedStorage
from fnop.core.values.body import Body
from fnop.interpreters.check.state.kinds import RIVAL
from fnop.interpreters.check.state.sites import target_of
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.cluster.apply.patch import merge_patched
from fnop.interpreters.recording.identities.metadata import OWN
from fnop.interpreters.recording.identities.volatile import MADE, UID
from fnop.interpreters.simulation.externals import External, externals_of

__all__ = [
    "ASIDE",
    "UID",
    "World",
    "alias_of",
    "digests_of",
    "is_builtin",
    "objects_in",
    "outside_of",
    "records_in",
    "rolling_in",
    "world_of",
]

# Alias of an object -> its normalised JSON text.
World = Mapping[str, bytes]


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


# The end of a name that looks like a hash, but is the time in seconds.
_UNIX = re.compile(r"-(1[5-9]|2\d)\d{8}$")


# Kinds that do not describe the end: reports, leadership, and records of the past by
# the cluster's own controllers.
ASIDE = frozenset(
    (
        *(("", "events"), ("events.k8s.io", "events"), ("", "nodes")),
        *(("coordination.k8s.io", "leases"), ("apps", "controllerrevisions")),
        *(("", "endpoints"), ("discovery.k8s.io", "endpointslices")),
        ("apps", "replicasets"),
    )
)


# Annotations of the cluster's own controllers.
_THEIRS = ("deployment.kubernetes.io/", "pv.kubernetes.io/", "batch.kubernetes.io/")


def objects_in(
    cluster: Cluster, base: Cluster
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """The objects that differ from those in the `base`, by kind and key."""
    for resource, shelf in sorted(cluster.shelves.items()):
        before = base.shelves.get(resource)
        if shelf is before or resource in ASIDE:
            continue
        for key, found in sorted(shelf.items()):
            if before is None or before.get(key) is not found:
                yield resource, found


def rolling_in(cluster: Cluster) -> frozenset[str]:
    """The aliases of objects in sets whose rollout has not ended.

    A set that waits for a pod keeps pods of the version before, in the cluster's own
    way.
    """
    found = [
        (alias_of(resource, each), each["metadata"])
        for resource, shelf in cluster.shelves.items()
        if resource in _OF_ROLLOUTS
        for each in shelf.values()
    ]
    uids = {
        each["metadata"]["uid"]
        for resource in _SETS
        for each in cluster.shelves.get(resource, {}).values()
        if _is_rolling(each)
    }
    aliases: set[str] = set()
    for _ in _OF_ROLLOUTS:  # pods belong to a Deployment through a ReplicaSet
        for alias, meta in found:
            owners = {each["uid"] for each in meta.get("ownerReferences") or ()}
            if owners & uids:
                aliases.add(alias)
                uids.add(meta["uid"])
    return frozenset(aliases)


_SETS = (("apps", "deployments"), ("apps", "statefulsets"), ("apps", "daemonsets"))


_OF_ROLLOUTS = (("apps", "replicasets"), ("", "pods"))


def _is_rolling(found: Mapping[str, Any]) -> bool:
    """Whether a set has pods of several versions, according to its status."""
    status = found.get("status") or {}
    if "updateRevision" in status:
        return bool(status.get("currentRevision") != status["updateRevision"])
    every = status.get("replicas", status.get("desiredNumberScheduled", 0))
    now = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
    return bool(now < every)


def world_of(
    cluster: Cluster,
    base: Cluster,
    calls: Mapping[str, Any] | None = None,
    drawn: Collection[bytes] = (),
    storage: AnyStorage | None = None,
) -> World:
    """The world of a cluster, without the objects that the `base` already has.

    `calls` are the models of external systems, which belong to it. `drawn` are the
    random bytes that names may be made of. The operator's notes are omitted, also in
    the form of another framework that its `storage` gives them.
    """
    found = [*objects_in(cluster, base)]
    names = {
        each["metadata"]["uid"]: alias_of(resource, each, drawn)
        for resource, each in found
    }
    plain = [
        (each["metadata"]["name"], target_of("", each, drawn)[1:]) for _, each in found
    ]
    generated = {name: bare for name, bare in plain if bare != name}
    # A mapping with only models by bare names is empty, but not None.
    systems = externals_of({} if calls is None else calls)
    for system in systems:
        generated |= system.aliases()
    groups: defaultdict[str, list[bytes]] = defaultdict(list)
    for resource, each in found:
        shown = _stripped(_without_notes(each, storage))
        if is_builtin(resource[0]):
            shown.pop("status", None)  # the cluster's own controllers write it
        text = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
        groups[alias_of(resource, each, drawn)].append(
            _masked_text(text, names, generated)
        )
    for number, system in enumerate(systems):
        alias = _system_name(number, system)
        text = orjson.dumps(
            {"": system.at_rest().visible()}, option=orjson.OPT_SORT_KEYS
        )
        groups[alias].append(_masked_text(text, names, generated))
    return {
        f"{alias} ({number + 1})" if number else alias: text
        for alias, texts in groups.items()
        for number, text in enumerate(sorted(texts))
    }


def is_builtin(group: str) -> bool:
    """Whether Kubernetes itself has kinds of that group.

    >>> [is_builtin(each) for each in ("", "apps", "networking.k8s.io", "example.com")]
    [True, True, True, False]
    """
    return "." not in group or group.endswith(".k8s.io")


def digests_of(calls: Mapping[str, Any]) -> dict[str, bytes]:
    """The states of external systems, as JSON texts by their aliases in a world.

    Systems that keep records do not have anything that must be removed.
    """
    return {
        _system_name(number, each): orjson.dumps(
            each.visible(), option=orjson.OPT_SORT_KEYS
        )
        for number, each in enumerate(externals_of(calls))
        if not each.keeps_records
    }


def outside_of(calls: Mapping[str, Any]) -> dict[str, bytes]:
    """The visible part of each external system at rest, by its alias."""
    return {
        _system_name(number, each): orjson.dumps(
            each.at_rest().visible(), option=orjson.OPT_SORT_KEYS
        )
        for number, each in enumerate(externals_of(calls))
    }


def records_in(calls: Mapping[str, Any]) -> list[str]:
    """The aliases of external systems that keep records."""
    return [
        _system_name(number, each)
        for number, each in enumerate(externals_of(calls))
        if each.keeps_records
    ]


def _system_name(number: int, system: External) -> str:
    return f"{type(system).__name__} ({number + 1})"


def alias_of(
    resource: tuple[str, str], found: Mapping[str, Any], drawn: Collection[bytes] = ()
) -> str:
    """The name of an object that is the same in each run; `drawn` as for a world."""
    group, plural = resource
    where = found["metadata"].get("namespace")
    kind = f"{plural}.{group}" if group else plural
    name = target_of(kind, found, drawn)
    if _UNIX.search(str(found["metadata"].get("name"))):  # and otherwise not generated
        name = f"{kind}/{found['metadata']['name']}"
    return name if where in (None, "default") else f"{name} in {where}"


def _masked_text(
    text: bytes, names: Mapping[str, str], generated: Mapping[str, str]
) -> bytes:
    plain = _TIME.sub("<time>", text.decode())
    plain = UID.sub(lambda uid: f"<uid of {names.get(uid[0], 'the dead')}>", plain)
    for name in sorted(generated, key=len, reverse=True):
        alias = orjson.dumps(generated[name])[1:-1].decode()  # it is part of a text
        plain = plain.replace(name, alias)
    return MADE.sub("-*", plain).encode()


def _without_notes(found: dict[str, Any], storage: AnyStorage | None) -> dict[str, Any]:
    """An object without the records of handlers in another framework's form."""
    if not isinstance(storage, FormattedStorage):
        return found
    return dict(merge_patched(found, storage.format.remove(Body(found))))


def _stripped(found: Mapping[str, Any]) -> dict[str, Any]:
    """An object without parts that differ in each run, and without fnop's own notes."""
    meta = found["metadata"]
    kept: dict[str, Any] = {}
    for stanza in ("labels", "annotations"):
        values = {
            key: value
            for key, value in (meta.get(stanza) or {}).items()
            if not key.startswith((OWN, *_THEIRS)) and key != RIVAL
        }
        if values:
            kept[stanza] = values
    for key in ("ownerReferences", "finalizers"):
        if meta.get(key):
            kept[key] = meta[key]
    if "deletionTimestamp" in meta:
        kept["deletionTimestamp"] = True
    rest = {
        key: value
        for key, value in found.items()
        if key not in ("metadata", "apiVersion", "kind")
    }
    status = rest.get("status")
    if isinstance(status, dict):
        rest["status"] = _status(status, meta.get("generation"))
        if not rest["status"]:
            del rest["status"]
    return {"metadata": kept, **rest}


def _status(status: Mapping[str, Any], generation: Any) -> dict[str, Any]:
    kept = {k: v for k, v in status.items() if not k.startswith(OWN)}
    if "observedGeneration" in kept:
        kept["observedGeneration"] = kept["observedGeneration"] == generation
    conditions = kept.get("conditions")
    if isinstance(conditions, list):
        found = [_condition(each, generation) for each in conditions]
        # A list by type (metav1.Condition): its order has no meaning.
        kept["conditions"] = sorted((each for each in found if each), key=_type_of)
        if not kept["conditions"]:
            del kept["conditions"]
    return kept


def _type_of(condition: Any) -> str:
    return str(condition.get("type")) if isinstance(condition, dict) else ""


def _condition(found: Any, generation: Any) -> Any:
    """A condition; for the operator's own, only whether it has failed for good."""
    if not isinstance(found, dict):
        return found
    if str(found.get("type")).startswith(OWN):
        failed = str(found.get("reason")).endswith("Failed")
        return {"type": found["type"], "reason": found["reason"]} if failed else None
    if "observedGeneration" in found:
        current = found["observedGeneration"] == generation
        return {**found, "observedGeneration": current}
    return found
