"""An object's story, as a value: the facts to report, without any layout.

Times are Unix seconds, None if they are not known. Texts of others are as they were
read; the code that prints them makes them harmless.
"""

from __future__ import annotations

from msgspec import Struct

from fnop.interpreters.explain.facts import HandlerFact, Recorded, Requested

__all__ = [
    "Advice",
    "Child",
    "ConditionTold",
    "Deletion",
    "EventTold",
    "HandlerState",
    "HeldLease",
    "Operator",
    "OwnerTold",
    "Peering",
    "State",
    "Story",
    "Subject",
    "Touch",
    "Writer",
]


class Deletion(Struct, frozen=True):
    """The deletion of an object: its start, and the finalizers that hold it.

    `own` are the operator's finalizers, `fnop` those set by other operators of fnop,
    `foreign` all others.
    """

    since: float | None
    own: tuple[str, ...]
    fnop: tuple[str, ...]
    foreign: tuple[str, ...]


class OwnerTold(Struct, frozen=True):
    """An owner of the object, by its names."""

    kind: str
    group: str
    namespace: str
    name: str


class Subject(Struct, frozen=True):
    """The object: its names, its age, its owners, and its deletion.

    With `is_child`, an operator of fnop has applied the object for its owners.
    """

    resource: str
    kind: str
    name: str
    namespace: str | None
    uid: str
    generation: int | None
    version: str
    created: float | None
    owners: tuple[OwnerTold, ...]
    is_child: bool
    finalizers: tuple[str, ...]
    deletion: Deletion | None


class HeldLease(Struct, frozen=True):
    """A Lease of the operator: its holder (or ""), and whether it is held now."""

    namespace: str | None
    holder: str
    renewed: float | None
    held: bool


class Peering(Struct, frozen=True):
    """A record in a peering object; `until` is when it expires if not renewed."""

    place: str
    identity: str
    priority: int
    seen: float | None
    until: float | None
    alive: bool
    message: str


class Operator(Struct, frozen=True):
    """The operator in question, and signs of its life.

    `life` is "alive", "frozen", "dead" (its Lease has run out), "absent" (the peering
    object has no record), or "unknown" if there is no evidence. `others` are the names
    of other operators of fnop that have left marks on the object. `kopf` are the places
    of the state of operators with Kopf's API. `wrote` is when this operator last wrote
    the object, a child or an Event. With `sees_all`, the API server refused to show no
    lease and no peering object.
    """

    name: str
    life: str
    leases: tuple[HeldLease, ...]
    peers: tuple[Peering, ...]
    places: tuple[str, ...]
    wrote: float | None
    marked: bool
    others: tuple[str, ...]
    kopf: tuple[str, ...]
    sees_all: bool


class HandlerState(Struct, frozen=True):
    """A handler's record in the stored state.

    `stage` is "done", "failed", "waiting" (at its own request), "retrying", "started",
    or "again" (it was done with another version of the object). `due` is the time of
    the next attempt.
    """

    id: str
    stage: str
    reason: str
    attempts: int
    started: float | None
    due: float | None
    message: str


class State(Struct, frozen=True):
    """The operator's state on the object.

    `place` is "status", "annotation", "other", or "" if there is no state. `handled` is
    "yes", "no", "creating" (its creation is under way), or "unknown". `changed` are the
    fields that differ from the last handled change. An empty text among them is a part
    that differs in an unknown field. `signature` is "none", "good", "bad", or
    "unchecked" if no key was given. `indices` are the indices whose values its handlers
    observe, too; only the operator knows them.
    """

    place: str
    problem: str
    signature: str
    handled: str
    changed: tuple[str, ...]
    handlers: tuple[HandlerState, ...]
    indices: tuple[str, ...] = ()


class ConditionTold(Struct, frozen=True):
    """A condition; with `stale` it describes an older generation than the object's."""

    type: str
    status: str
    reason: str
    message: str
    since: float | None
    generation: int | None
    stale: bool
    own: bool


class Touch(Struct, frozen=True):
    """The fields of a child that another manager wrote after fnop's last apply."""

    manager: str
    at: float | None
    fields: tuple[str, ...]


class Child(Struct, frozen=True):
    """An object that this one owns, or that a child of it owns, at a `depth` from 0.

    `applied` is whether fnop has applied it. `lacks` are the marks of fnop that it
    lacks although it has others. `told` summarizes its status in a few words, and
    `behind` is whether it is not ready yet.
    """

    label: str
    depth: int
    namespace: str | None
    created: float | None
    going: float | None
    is_going: bool
    applied: bool
    lacks: tuple[str, ...]
    touched: tuple[Touch, ...]
    told: str
    behind: bool


class EventTold(Struct, frozen=True):
    """A Kubernetes Event, or several with the same content; `at` is the last time."""

    at: float | None
    count: int
    type: str
    reason: str
    message: str
    about: str
    by: str


class Writer(Struct, frozen=True):
    """A field manager of the object, and the number of its fields."""

    manager: str
    operation: str
    subresource: str
    at: float | None
    fields: int


class Advice(Struct, frozen=True):
    """A sentence of the diagnosis, and the action to take.

    `about` is a word for programs, `details` are lines below the sentence.
    """

    about: str
    text: str
    details: tuple[str, ...] = ()
    remedy: str = ""


class Story(Struct, frozen=True):
    """The whole report about an object, at a time (Unix seconds)."""

    wall: float
    subject: Subject
    operator: Operator
    state: State
    conditions: tuple[ConditionTold, ...]
    children: tuple[Child, ...]
    events: tuple[EventTold, ...]
    writers: tuple[Writer, ...]
    handlers: tuple[HandlerFact, ...] | None
    recorded: tuple[Recorded, ...] | None
    unread: tuple[str, ...]
    advice: tuple[Advice, ...]
    requested: Requested | None
