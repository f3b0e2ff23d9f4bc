"""The turn of a controller, and the desk through which it writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fnop.core.kubernetes.label_selectors import matches
from fnop.interpreters.cluster.admission.questions import allowed
from fnop.interpreters.cluster.api.server import answer
from fnop.interpreters.cluster.apply.managed import Writer, tracked
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.storage.commit import stored
from fnop.interpreters.cluster.storage.selections import labelled
from fnop.interpreters.cluster.storage.store import Cluster, StoredEvent, lookup, shelf
from fnop.interpreters.cluster.values.objects import Key, Object, Resource, same
from fnop.interpreters.runtime.protocol import JSON, MERGE_PATCH, ApiRequest

__all__ = [
    "CONTROLLER",
    "Desk",
    "Turn",
    "condition",
    "controlled_by",
    "controller_of",
    "is_going",
    "is_ready",
    "key_of",
    "moment",
    "owned",
    "owner_reference",
    "phase",
    "with_condition",
]

CONTROLLER = "kube-controller-manager"


class Turn(NamedTuple):
    """The result of a controller's turn; `again` is the time of its next look."""

    cluster: Cluster
    events: tuple[StoredEvent, ...] = ()
    again: float | None = None


class Desk:
    """The writer of one controller's turn: it holds the cluster after each write.

    It lives for one turn. It writes through `answer`, as real controllers write through
    the API, so defaults and managed fields are set.
    """

    def __init__(self, cluster: Cluster, now: float, who: str = CONTROLLER) -> None:
        self.cluster, self.now, self.who = cluster, now, who
        self.events: tuple[StoredEvent, ...] = ()
        self.again: float | None = None

    def turn(self) -> Turn:
        """The result of the turn."""
        return Turn(self.cluster, self.events, self.again)

    def remind(self, at: float) -> None:
        """Ask for another turn at this time, or earlier."""
        self.again = at if self.again is None else min(self.again, at)

    def get(self, resource: Resource, key: Key) -> Object | None:
        """The present state of an object."""
        return lookup(self.cluster, resource, key)

    def dependents(self, resource: Resource, namespace: str, *uids: str) -> set[Key]:
        """The keys of a namespace's objects that name one of these owners."""
        found = (self.cluster.owned.get(uid, ()) for uid in uids)
        there = resource, namespace
        return {key for each in found for of, key in each if (of, key[0]) == there}

    def controlled(self, resource: Resource, owner: Object) -> Iterator[Object]:
        """The objects in the owner's namespace that it controls, by name."""
        found, meta = shelf(self.cluster, resource), owner["metadata"]
        for key in sorted(self.dependents(resource, meta["namespace"], meta["uid"])):
            if controlled_by(found[key], owner):
                yield found[key]

    def selectable(
        self, resource: Resource, namespace: str, selector: Any
    ) -> list[Key]:
        """The keys of the objects that a label selector may match, by name."""
        keys = labelled(self.cluster.selections, resource, namespace, selector)
        if keys is not None:
            return keys
        found = shelf(self.cluster, resource)
        return sorted(key for key in found if key[0] == namespace)

    def selected(
        self, resource: Resource, namespace: str, selector: Any
    ) -> Iterator[Object]:
        """The objects of a namespace that a label selector matches, by name."""
        found = shelf(self.cluster, resource)
        for key in self.selectable(resource, namespace, selector):
            if matches(selector, found[key]["metadata"].get("labels", {})):
                yield found[key]

    def kind(self, obj: Object) -> Kind:
        """The kind of an object."""
        group = obj["apiVersion"].rpartition("/")[0]
        return self.cluster.registry.by_kind[group, obj["kind"]]

    def send(self, method: str, path: str, body: Any = None, type: str = JSON) -> Any:
        """Send a request; return the body of its answer, or None if it was refused."""
        # The warnings are not used, and looking for unknown fields takes time.
        # Controllers write a part directly, so webhooks do not review their requests.
        query = (("fieldValidation", "Ignore"),) if method != "DELETE" else ()
        request = ApiRequest(method, path, query, body, type, agent=f"{self.who}/v1")
        self.cluster, response, events = answer(
            self.cluster, request, self.now, allowed
        )
        self.events += events
        return response.body if response.status < 400 else None

    def create(self, body: Object) -> Object | None:
        """Create an object; None if it was refused."""
        made: Object | None = self.send("POST", self.path(body, named=False), body)
        return made

    def patch(self, obj: Object, change: dict[str, Any]) -> Object | None:
        """Merge a change into an object."""
        new: Object | None = self.send("PATCH", self.path(obj), change, MERGE_PATCH)
        return new

    def delete(self, obj: Object, policy: str = "Background") -> None:
        """Delete an object, by its uid."""
        options = {
            "propagationPolicy": policy,
            "preconditions": {"uid": obj["metadata"]["uid"]},
        }
        self.send("DELETE", self.path(obj), options)

    def path(self, obj: Object, *, named: bool = True) -> str:
        """The path of an object, or of its collection."""
        kind, metadata = self.kind(obj), obj["metadata"]
        base = f"/apis/{kind.group}" if kind.group else "/api"
        inside = f"namespaces/{metadata['namespace']}/" if kind.namespaced else ""
        name = f"/{metadata['name']}" if named else ""
        return f"{base}/{kind.version}/{inside}{kind.plural}{name}"

    def status(self, obj: Object, status: dict[str, Any]) -> None:
        """Write the status of an object, if it differs."""
        present = self.get(self.kind(obj).resource, key_of(obj))
        if present is None or same(present.get("status") or {}, status):
            return
        self.store({**present, "status": status}, present, "status")

    def store(self, new: Object, old: Object, subresource: str = "") -> None:
        """Store a change directly, without the validation of client requests."""
        kind = self.kind(old)
        writer = Writer(self.who, self.now, subresource)
        new = tracked(self.cluster.registry, kind, old, new, writer)
        self.cluster, events = stored(
            self.cluster, kind, key_of(old), new, old, self.now
        )
        self.events += events


def key_of(obj: Object) -> Key:
    """The key under which an object is stored."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def controller_of(obj: Object) -> dict[str, Any] | None:
    """The reference to the one owner that controls an object."""
    for reference in obj["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            found: dict[str, Any] = reference
            return found
    return None


def controlled_by(obj: Object, owner: Object) -> bool:
    """Whether this owner controls the object."""
    reference = controller_of(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def owner_reference(owner: Object) -> dict[str, Any]:
    """The reference to a controlling owner, for the objects that a controller makes."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(desk: Desk, resource: Resource, owner: Object) -> list[Object]:
    """The objects of a resource that an owner controls, after it has claimed them.

    ControllerRefManager: the owner releases objects that it owns but does not select.
    It adopts selected objects without an owner, unless the owner or the object is being
    deleted.
    """
    selector = owner["spec"].get("selector")
    namespace = owner["metadata"]["namespace"]
    uid = owner["metadata"]["uid"]
    found: list[Object] = []
    present = shelf(desk.cluster, resource)
    keys = {
        *desk.dependents(resource, namespace, uid),
        *desk.selectable(resource, namespace, selector),
    }
    for obj in (present[key] for key in sorted(keys)):
        mine = controller_of(obj)
        if mine is not None and mine["uid"] != uid:
            continue
        selected = matches(selector, obj["metadata"].get("labels", {}))
        if mine is not None:
            if selected or is_going(owner):
                found.append(obj)
            elif not is_going(obj):
                others = obj["metadata"]["ownerReferences"]
                kept = [each for each in others if each["uid"] != uid]
                desk.patch(obj, {"metadata": {"ownerReferences": kept or None}})
        elif selected and not is_going(owner) and not is_going(obj):
            references = obj["metadata"].get("ownerReferences", [])
            claimed = [*references, owner_reference(owner)]
            adopted = desk.patch(obj, {"metadata": {"ownerReferences": claimed}})
            if adopted is not None:
                found.append(adopted)
    return found


def is_going(obj: Object) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


def phase(pod: Object) -> str:
    """The phase of a pod."""
    found: str = (pod.get("status") or {}).get("phase", "Pending")
    return found


def condition(obj: Object, type: str) -> dict[str, Any] | None:
    """One of an object's conditions."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] == type:
            found: dict[str, Any] = each
            return found
    return None


def with_condition(
    conditions: list[dict[str, Any]], new: dict[str, Any]
) -> list[dict[str, Any]]:
    """The conditions with a new one in the place of its type, or at the end."""
    if all(each["type"] != new["type"] for each in conditions):
        return [*conditions, new]
    return [new if each["type"] == new["type"] else each for each in conditions]


def is_ready(pod: Object) -> bool:
    """Whether a pod says that it is ready."""
    found = condition(pod, "Ready")
    return found is not None and found["status"] == "True"


def moment(text: str | None) -> float:
    """The Unix seconds of a timestamp.

    >>> moment("1970-01-01T00:01:00Z")
    60.0
    """
    if not text:
        return 0.0
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found.astimezone(UTC).timestamp()
