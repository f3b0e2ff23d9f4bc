"""The objects of a recorded run at a step, and the changes by others than the operator.

Both are what the operator was shown: a recording does not contain another view.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from fnop.core.children.fields import managers_at
from fnop.core.children.owned import owners_of
from fnop.core.values.body import Body, is_behind
from fnop.effects.values import same_json
from fnop.interpreters.recording.model.fields import changes_of
from fnop.interpreters.recording.model.served import Served
from fnop.interpreters.recording.model.versions import objects_in

__all__ = [
    "CONTROLLERS",
    "Foreign",
    "Own",
    "Place",
    "World",
    "authors_of",
    "change_of",
    "restorable",
]

Json = Mapping[str, Any]

# Managers of the cluster's own controllers: a simulated cluster has them, too.
CONTROLLERS = frozenset(
    (
        *("kube-controller-manager", "kube-scheduler", "kubelet"),
        *("cloud-controller-manager", "k3s", "kube-apiserver"),
    )
)
_WRITES = frozenset(("Apply", "Create", "Adopt", "Patch", "Delete"))
# Answers after which a request has certainly changed nothing.
_DENIALS = frozenset(("Conflict", "Refused", "Missing"))
# Fields that only the API server sets.
_SERVER = frozenset(
    (
        *("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"),
        *("managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"),
    )
)


class Place(NamedTuple):
    """The identity of an object, as it was shown."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, found: Json) -> Place:
        """The place of an object, by its JSON form."""
        meta = found["metadata"]
        where = str(meta.get("namespace") or ""), str(meta.get("name") or "")
        return cls(str(found.get("apiVersion")), str(found.get("kind")), *where)


class Foreign(NamedTuple):
    """A change by another client: `after` is None if the object is gone.

    `before` is None if the object did not exist.
    """

    step: int
    wall: float
    place: Place
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass
class Own:
    """The fold of a recording to the versions that its operator has made.

    A write that changes nothing is answered with another client's version, which was
    shown before the write was sent. If steps are missing, a request without a beginning
    may have been a write. An object counts as `deleted` once its deletion was
    requested, unless the API server refused. The answer need not show it.
    """

    versions: set[tuple[str, str]] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    _served: Served = field(default_factory=Served)
    # The uid of the object in each place, and of the objects that requests delete.
    _uids: dict[Place, str] = field(default_factory=dict)
    _deleting: dict[int, str] = field(default_factory=dict)
    # The effect of each request, and the step in which it was sent.
    _asked: dict[int, tuple[str, int]] = field(default_factory=dict)
    _shown: dict[tuple[str, str], int] = field(default_factory=dict)
    _steps: int = 0
    # The last missing step of this process.
    _missing: int = 0

    def add(self, record: Json) -> None:
        """Take one record in."""
        if "gap" in record:
            self._steps += record["gap"]
            self._missing = self._steps
            return
        input = record["input"]
        self._steps += 1
        if input["in"] == "Started":
            self._asked.clear()
            self._deleting.clear()
            self._missing = 0
        self._served.add(record)
        asked = None
        if input["in"] == "Answered":
            unknown = ("", self._missing) if self._missing else None
            asked = self._asked.pop(input["id"], unknown)
            uid = self._deleting.pop(input["id"], "")
            if input["outcome"]["is"] in _DENIALS:
                self.deleted.discard(uid)
        for each in objects_in(input):
            body = Body(each)
            self._uids[Place.of(each)] = body.uid
            version = body.uid, body.version
            first = self._shown.setdefault(version, self._steps)
            if asked is not None and first > asked[1]:
                self.versions.add(version)
        for command in record["commands"]:
            effect = (command.get("effect") or {}).get("is")
            if command["do"] == "Perform" and effect in _WRITES:
                self._asked[command["id"]] = effect, self._steps
            if command["do"] == "Perform" and effect == "Delete":
                uid = command["effect"].get("uid") or self._uid_of(command)
                self._deleting[command["id"]] = uid
                self.deleted.add(uid)

    def _uid_of(self, command: Json) -> str:
        """The uid of the object that a request is about, as far as it was shown."""
        kinds = self._served.catalogue.resources
        resource = next((e for e in kinds if e.key == command.get("resource")), None)
        if resource is None:
            return ""
        names = command.get("namespace") or "", command.get("name") or ""
        place = Place(resource.api_version, resource.kind, *names)
        return self._uids.get(place, "")


@dataclass
class World:
    """The fold of a recording to the objects that exist.

    `own` are the operator's versions and deletions in the whole recording: an answer
    may come after the watch event of the same write. `manager` is its name in managed
    fields.
    """

    own: Own
    manager: str = ""
    served: Served = field(default_factory=Served)
    objects: dict[Place, dict[str, Any]] = field(default_factory=dict)
    steps: int = 0
    wall: float = 0.0
    # The versions in which objects were removed, as far as they are numbers.
    _dead: dict[str, int] = field(default_factory=dict)

    def add(self, record: Json) -> list[Foreign]:
        """Take one record in; return the changes by others that it shows.

        Raises the same errors as `Attempts.add`.
        """
        self.steps += record.get("gap", 1)
        if "gap" in record:
            return []
        input, self.wall = record["input"], record["wall"]
        self.served.add(record)
        gone = input["in"] == "WatchEvent" and input.get("type") == "DELETED"
        return [
            each
            for found in objects_in(input)
            for each in self._note_object(found, gone)
        ]

    def _note_object(self, found: dict[str, Any], gone: bool) -> Iterator[Foreign]:
        place, body = Place.of(found), Body(found)
        if not body.uid or not body.name or body.uid in self._dead:
            return  # an object that is not kept, or that an answer shows too late
        before = self.objects.get(place)
        was = None if before is None else Body(before)
        if gone or (body.is_deleting and not body.finalizers):
            self._dead[body.uid] = int(body.version) if body.version.isdecimal() else 0
            if was is not None and was.uid == body.uid:
                del self.objects[place]
            if was is not None and was.uid == body.uid and not _is_known(was, self.own):
                yield Foreign(self.steps, self.wall, place, before, None)
            return
        if was is not None and was.uid == body.uid and _is_old(body, was):
            return
        self.objects[place] = found
        is_begun = was is None or not was.is_deleting
        if body.is_deleting and is_begun and body.uid in self.own.deleted:
            return
        known = self.own.versions
        if (body.uid, body.version) in known or self._is_of_controllers(was, body):
            return
        former = before if was is not None and was.uid == body.uid else None
        yield Foreign(self.steps, self.wall, place, former, found)

    def _is_of_controllers(self, was: Body | None, body: Body) -> bool:
        """Whether only the operator and the cluster's controllers made it."""
        authors = set(authors_of(was, body))
        return bool(authors) and authors <= CONTROLLERS | {self.manager}

    def is_collected(self, change: Foreign) -> bool:
        """Whether an object is gone because its owners are, as far as is known now.

        The garbage collector does that. Its deletion may be shown before the end of the
        owner, which comes in another watch.
        """
        if change.after is not None or change.before is None:
            return False
        body = Body(change.before)
        owners = owners_of(body)
        return bool(owners) and all(self._is_gone(e.uid, body.uid) for e in owners)

    def _is_gone(self, owner: str, dependent: str) -> bool:
        """Whether an owner was removed before a dependent, or is being removed."""
        if owner in self._dead:
            return self._dead[owner] <= self._dead.get(dependent, 0)
        present = (Body(each) for each in self.objects.values())
        return not any(each.uid == owner and not each.is_deleting for each in present)

    def restorable(self) -> dict[Place, dict[str, Any]]:
        """The objects at the beginning of a simulated cluster."""
        return restorable(self.objects, self._dead)


def authors_of(was: Body | None, body: Body) -> tuple[str, ...]:
    """The authors of a version of an object, by its managed fields; else empty.

    If a manager gives other values to the same fields, its entry does not change. Then
    the authors are the managers of the changed fields.
    """
    old = [] if was is None else was.meta.get("managedFields") or []
    new = body.meta.get("managedFields") or []
    if not isinstance(new, list) or not isinstance(old, list):
        return ()
    fresh = [
        str(each.get("manager"))
        for each in new
        if isinstance(each, dict) and each not in old
    ]
    if fresh or was is None:
        return tuple(dict.fromkeys(fresh))
    found: dict[str, None] = {}
    for item in changes_of(was.data, body.data):
        of = was if item.new is None else body
        managers = managers_at(of.data, item.field)
        if not managers:
            return ()
        found |= dict.fromkeys(managers)
    return tuple(found)


def restorable(
    objects: Mapping[Place, dict[str, Any]], dead: Container[str]
) -> dict[Place, dict[str, Any]]:
    """The objects, without references to owners that were never shown.

    A garbage collector would take these owners for gone. Objects whose owners are
    `dead`, by their uids, are skipped: the garbage collector is about to remove them.
    Pods lose the volume for the API's token, which a simulated cluster does not add
    (ServiceAccount admission).
    """
    known = {Body(each).uid for each in objects.values()}
    return {
        place: _without_access(_without_foreign_owners(each, known))
        for place, each in objects.items()
        if not _is_garbage(Body(each), dead)
    }


def _is_garbage(body: Body, dead: Container[str]) -> bool:
    owners = owners_of(body)
    return bool(owners) and all(each.uid in dead for each in owners)


def _is_old(body: Body, known: Body) -> bool:
    """Whether a version is known, or older: answers come after watch events."""
    return body.version == known.version or is_behind(body.version, known.version)


def _is_known(was: Body, own: Own) -> bool:
    """Whether the end of an object follows from an earlier deletion."""
    return was.is_deleting or was.uid in own.deleted


def _without_foreign_owners(found: dict[str, Any], known: set[str]) -> dict[str, Any]:
    references = found["metadata"].get("ownerReferences")
    if not references or all(each.uid in known for each in owners_of(Body(found))):
        return found
    left = [
        each
        for each in references
        if isinstance(each, dict) and str(each.get("uid")) in known
    ]
    return {**found, "metadata": {**found["metadata"], "ownerReferences": left}}


# The mount path of the API's token in containers, and the names of its volume (before
# and since Kubernetes 1.21).
_ACCESS = "/var/run/secrets/kubernetes.io/serviceaccount"
_ACCESS_VOLUME = re.compile(r"(.*-token|kube-api-access)-[a-z0-9]{5}")
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def _without_access(found: dict[str, Any]) -> dict[str, Any]:
    """A pod without the token volume that admission has added.

    >>> mounts = [{"name": "kube-api-access-x7k2p", "mountPath": _ACCESS}]
    >>> spec = {"containers": [{"volumeMounts": mounts}], "volumes": mounts}
    >>> _without_access({"kind": "Pod", "spec": spec})
    {'kind': 'Pod', 'spec': {'containers': [{}]}}
    """
    spec = found.get("spec")
    if found.get("kind") != "Pod" or not isinstance(spec, dict):
        return found
    containers = {key: spec[key] for key in _CONTAINERS if spec.get(key)}
    names = {
        mount["name"]
        for each in chain.from_iterable(containers.values())
        for mount in each.get("volumeMounts") or ()
        if mount["mountPath"] == _ACCESS and _ACCESS_VOLUME.fullmatch(mount["name"])
    }
    told = {
        key: [_without_items(one, "volumeMounts", names) for one in each]
        for key, each in containers.items()
    }
    return {**found, "spec": _without_items({**spec, **told}, "volumes", names)}


def _without_items(
    value: dict[str, Any], field: str, names: set[str]
) -> dict[str, Any]:
    """A mapping whose list lacks items of these names; without an empty list."""
    left = [each for each in value.get(field) or () if each["name"] not in names]
    rest = {key: each for key, each in value.items() if key != field}
    return {**rest, field: left} if left else rest


def change_of(before: Json, after: Json) -> tuple[dict[str, Any], Any]:
    """A change as merge patches: for the object, and for its status (None: no change).

    >>> before = {"metadata": {"uid": "u"}, "spec": {"a": 1, "b": 2}}
    >>> change_of(before, {"metadata": {"uid": "v"}, "spec": {"a": 1}})
    ({'spec': {'b': None}}, None)
    """
    main = {key: value for key, value in before.items() if key != "status"}
    other = {key: value for key, value in after.items() if key != "status"}
    status = None
    if not same_json(before.get("status"), after.get("status")):
        status = _patch(before.get("status") or {}, after.get("status") or {})
    return _patch(_without_server_fields(main), _without_server_fields(other)), status


def _without_server_fields(found: dict[str, Any]) -> dict[str, Any]:
    meta = found.get("metadata") or {}
    return {**found, "metadata": {k: v for k, v in meta.items() if k not in _SERVER}}


def _patch(before: Json, after: Json) -> dict[str, Any]:
    found: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        was = before.get(key)
        if key in before and same_json(was, value):
            continue
        both = isinstance(was, Mapping) and isinstance(value, Mapping)
        found[key] = _patch(was, value) if both else value  # type: ignore[arg-type]
    return found
