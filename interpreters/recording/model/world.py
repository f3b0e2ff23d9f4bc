"""The objects of a recorded run at a step, and the changes by others than the operator.

Both are what the operator was shown: a recording does not contain another view.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from msgspec import Struct

from fnop.core.children.fields import managers_at
from fnop.core.children.owned import owners_of
from fnop.core.values.body import Body, is_behind
from fnop.effects import Delete
from fnop.effects.values import same_json
from fnop.interpreters.recording.identities.metadata import SERVER
from fnop.interpreters.recording.model.fields import changes_of
from fnop.interpreters.recording.model.history import History, Question, Request, Step
from fnop.interpreters.recording.model.records import Answered
from fnop.interpreters.recording.model.refs import Place

__all__ = [
    "CONTROLLERS",
    "Foreign",
    "Own",
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


class Foreign(Struct, frozen=True):
    """A change by another client: `after` is None if the object is gone.

    `before` is None if the object did not exist.
    """

    step: int
    wall: float
    place: Place
    before: dict[str, Any] | None
    after: dict[str, Any] | None


# The object, and the former and the present version as in `Foreign`.
_Change = tuple[Place, dict[str, Any] | None, dict[str, Any] | None]


@dataclass
class Own(Question):
    """The versions that the operator of a recording has made.

    A write that changes nothing is answered with another client's version, which was
    shown before the write was sent. If steps are missing, a request without a beginning
    may have been a write. An object counts as `deleted` once its deletion was
    requested, unless the API server refused. The answer need not show it.
    """

    history: History = field(default_factory=History)
    versions: set[tuple[str, str]] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    # The uid of the object in each place, and the step that showed each version first.
    _uids: dict[Place, str] = field(default_factory=dict)
    _shown: dict[tuple[str, str], int] = field(default_factory=dict)
    # The uids of the objects that pending requests delete.
    _deleting: dict[Request, str] = field(default_factory=dict)

    def see(self, step: Step) -> None:
        """Take one step in."""
        sent = self._step_of_write(step)
        if step.request is not None:
            uid = self._deleting.pop(step.request, "")
            if step.request.is_denied:
                self.deleted.discard(uid)
        for body in step.shown:
            self._uids[Place.of(body.data)] = body.uid
            version = body.uid, body.version
            first = self._shown.setdefault(version, step.number)
            if sent is not None and first > sent:
                self.versions.add(version)
        for request in step.requests.values():
            if request.verb == Delete.__name__:
                uid = self._deleting[request] = self._uid_deleted(request)
                self.deleted.add(uid)

    def _step_of_write(self, step: Step) -> int | None:
        """The step that sent the write that may be answered, or the last missing step.

        It is None if no write is answered.
        """
        if step.request is not None and step.request.is_write:
            return step.request.step
        missing = self.history.missing if isinstance(step.input, Answered) else 0
        return missing or None

    def _uid_deleted(self, request: Request) -> str:
        """The uid of the object that a request deletes, as far as it was shown."""
        uid = request.effect.get("uid")
        resource = self.history.resource(request.resource)
        if uid or resource is None:
            return uid or ""
        kind = resource.api_version, resource.kind
        place = Place(*kind, request.namespace, request.name)
        return self._uids.get(place, "")


@dataclass
class World(Question):
    """The objects that exist at a step of a recording.

    `own` are the operator's versions and deletions in the whole recording: an answer
    may come after the watch event of the same write. `manager` is its name in managed
    fields.
    """

    own: Own
    manager: str = ""
    history: History = field(default_factory=History)
    objects: dict[Place, dict[str, Any]] = field(default_factory=dict)
    # The versions in which objects were removed, as far as they are numbers.
    _dead: dict[str, int] = field(default_factory=dict)

    def see(self, step: Step) -> list[Foreign]:
        """Take one step in; return the changes by others that it shows."""
        return [
            Foreign(step.number, step.wall, *change)
            for body in step.shown
            for change in self._note_object(body, gone=step.is_gone)
        ]

    def _note_object(self, body: Body, *, gone: bool) -> Iterator[_Change]:
        place = Place.of(body.data)
        if not body.uid or not body.name or body.uid in self._dead:
            return  # an object that is not kept, or that an answer shows too late
        before = self.objects.get(place)
        was = None if before is None else Body(before)
        if was is not None and was.uid != body.uid:
            was = None  # another object of the same name
        if gone or (body.is_deleting and not body.finalizers):
            yield from self._note_end(place, was, body)
        elif was is None or not _is_old(body, was):
            self.objects[place] = body.data
            if not self._is_own_change(was, body):
                yield place, None if was is None else was.data, body.data

    def _note_end(
        self, place: Place, was: Body | None, body: Body
    ) -> Iterator[_Change]:
        self._dead[body.uid] = int(body.version) if body.version.isdecimal() else 0
        if was is not None:
            del self.objects[place]
            # Unless its end follows from an earlier deletion.
            if not (was.is_deleting or was.uid in self.own.deleted):
                yield place, was.data, None

    def _is_own_change(self, was: Body | None, body: Body) -> bool:
        """Whether the operator has made a version, or the cluster's controllers."""
        is_begun = body.is_deleting and (was is None or not was.is_deleting)
        return (
            (is_begun and body.uid in self.own.deleted)
            or (body.uid, body.version) in self.own.versions
            or self._is_of_controllers(was, body)
        )

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
    return {**found, "metadata": {k: v for k, v in meta.items() if k not in SERVER}}


def _patch(before: Json, after: Json) -> dict[str, Any]:
    found: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        was = before.get(key)
        if key in before and same_json(was, value):
            continue
        both = isinstance(was, Mapping) and isinstance(value, Mapping)
        found[key] = _patch(was, value) if both else value  # type: ignore[arg-type]
    return found
