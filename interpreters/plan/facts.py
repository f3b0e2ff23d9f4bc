"""The facts of a plan: the requests of a rehearsal, and the changes made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.handler import Handler, declarer_of
from fnop.core.seam.commands import Subject

__all__ = [
    "Change",
    "Due",
    "Failure",
    "Notice",
    "Place",
    "Plan",
    "Source",
    "Stale",
    "Tried",
    "Unfound",
    "Unmade",
    "Unread",
    "Write",
    "place_of",
    "sources_of",
]

Json = dict[str, Any]


class Place(Struct, frozen=True):
    """The address of an object; `namespace` is "" for cluster-scoped ones.

    `resource` is `plural.group`, as kubectl names kinds.
    """

    api_version: str
    kind: str
    resource: str
    namespace: str
    name: str

    @property
    def label(self) -> str:
        """
        >>> Place("v1", "Pod", "pods", "prod", "web").label
        'pods/web in prod'
        """
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource}/{self.name}{where}"


def place_of(subject: Subject) -> Place:
    """The place of a command's object.

    >>> place_of(Subject("jobs.v1.batch", "a", "b", None, "Job", "batch/v1")).label
    'jobs.batch/b in a'
    """
    plural, _, rest = subject.resource.partition(".")
    group = rest.partition(".")[2]
    return Place(
        subject.api_version,
        subject.kind,
        f"{plural}.{group}" if group else plural,
        subject.namespace or "",
        subject.name,
    )


class Source(Struct, frozen=True):
    """The place of a handler in its author's files."""

    handler: str
    file: str
    line: int


def sources_of(handlers: Iterable[Handler], names: str) -> tuple[Source, ...]:
    """The sources of the handlers that have written something, by their joined ids.

    A sub-handler has the source of the handler that declares it.
    """
    known: Mapping[str, Handler] = {each.id: each for each in handlers}
    found: dict[str, Source] = {}
    for name in filter(None, names.split(", ")):
        handler = known.get(declarer_of(name, known))
        file, line = ("", 0) if handler is None else handler.definition
        found[name] = Source(name, file, line)
    return tuple(found.values())


class Write(Struct, frozen=True):
    """A request that the operator would send, and the change that it made.

    `before` and `after` are the object's states in the rehearsal, None if it does not
    exist. `status` and `message` belong to the simulated answer. `sequence`
    distinguishes equal requests of a handler for an object.
    """

    round: int
    place: Place
    handler: str
    subject: Place | None
    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    body: Any
    content_type: str
    before: Json | None
    after: Json | None
    status: int
    message: str = ""
    sequence: int = 0

    @property
    def is_event(self) -> bool:
        """Whether it reports a Kubernetes Event."""
        return self.place.resource in ("events", "events.events.k8s.io")

    @property
    def is_refused(self) -> bool:
        """Whether the server refuses it, other than because the state has changed."""
        return self.status >= 400 and self.status not in (404, 409)

    @property
    def identity(self) -> tuple[Any, ...]:
        """The same value for this request in another run from the same state."""
        return (
            *(self.round, self.subject, self.handler, self.method),
            *(self.place.resource, self.sequence),
        )


class Unmade(Struct, frozen=True):
    """A call that a plan does not make: of `fnop.call`, or of an impure handler."""

    round: int
    function: str
    is_handler: bool
    handler: str
    sources: tuple[Source, ...]
    subject: Place | None

    @property
    def is_of_handler(self) -> bool:
        """Whether it is the whole call of a handler about an object."""
        return self.is_handler and self.subject is not None


class Unread(Struct, frozen=True):
    """An object that could not be read, so that the effects on it are unknown."""

    round: int
    place: Place
    why: str
    sources: tuple[Source, ...]
    subject: Place | None


class Notice(Struct, frozen=True):
    """A Kubernetes Event that would be reported this number of `times` in all.

    It is reported `again` in these later rounds.
    """

    round: int
    type: str
    reason: str
    message: str
    sources: tuple[Source, ...]
    subject: Place | None
    again: tuple[int, ...] = ()
    times: int = 1


class Failure(Struct, frozen=True):
    """A failing attempt of a handler; with `retried`, another attempt follows.

    It fails `again` in these later rounds.
    """

    round: int
    message: str
    retried: bool
    sources: tuple[Source, ...]
    subject: Place | None
    again: tuple[int, ...] = ()


class Due(Struct, frozen=True):
    """A handler that the operator calls when it starts, with the objects.

    `why` is "again", "retry", "first" or "start" (`due_calls.Why`); `reason` is that of
    the objects' change, "" if each start leads to the call.
    """

    why: str
    reason: str
    source: Source
    places: tuple[Place, ...]


class Unfound(Struct, frozen=True):
    """An object that was handled, and whose state is not where the operator reads it.

    It counts as handled as it is: what has changed since then calls no handler.
    """

    place: Place
    why: str


class Stale(Struct, frozen=True):
    """An object to be changed, and that another client has changed meanwhile."""

    place: Place
    why: str


class Tried(Struct, frozen=True):
    """A request that the API server, in a dry run, refuses or answers differently.

    `refusal` is its message, or "". In the latter case, `fields` are the fields that it
    would store differently, each with the simulated value and the server's value.
    """

    place: Place
    refusal: str
    fields: tuple[Any, ...]


class Change(Struct, frozen=True):
    """The change of one object in one round.

    `actions` are "create", "change" and "delete". `before` and `after` are the whole
    objects, with secrets masked. `unknown` has True at each part of `after` that cannot
    be foreseen, such as a uid. `own` describes the operator's own notes in words; a
    change that `is_own` consists of nothing else.
    """

    round: int
    place: Place
    actions: tuple[str, ...]
    sources: tuple[Source, ...]
    subject: Place | None
    before: Json | None
    after: Json | None
    unknown: Any
    fields: tuple[Any, ...]
    own: tuple[str, ...] = ()
    own_fields: tuple[Any, ...] = ()
    version: str = ""

    @property
    def is_own(self) -> bool:
        """Whether only the operator's own notes change."""
        return self.actions == ("change",) and not self.fields


class Plan(Struct, frozen=True):
    """The changes that an operator would make to a cluster, as far as can be foreseen.

    `reads` counts the requests that were sent for the plan, all of them GET. `due` are
    the handlers that are called when the operator starts. `tried` are the requests of
    `tries` dry runs that the server itself refuses or answers differently. Both are
    None unless the caller asked for them; `unfound` goes with `due`. `notes` are
    sentences; `absent` are those about selected namespaces that do not exist.
    `requests` are not masked. A plan that `is_restless` goes on for ever.
    """

    changes: tuple[Change, ...] = ()
    calls: tuple[Unmade, ...] = ()
    events: tuple[Notice, ...] = ()
    failures: tuple[Failure, ...] = ()
    unread: tuple[Unread, ...] = ()
    stale: tuple[Stale, ...] = ()
    due: tuple[Due, ...] | None = None
    notes: tuple[str, ...] = ()
    rounds: int = 1
    reads: int = 0
    tried: tuple[Tried, ...] | None = None
    tries: int = 0
    requests: tuple[Write, ...] = ()
    is_restless: bool = False
    unfound: tuple[Unfound, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it is known that the operator would do nothing at all."""
        unread = self.unread or self.absent
        unknown = self.calls or unread or self.failures or self.is_restless
        return not (self.changes or self.events or unknown)

    @property
    def again(self) -> tuple[Due, ...]:
        """The handlers that are called again although they have succeeded before."""
        return tuple(each for each in self.due or () if each.why == "again")

    @property
    def unlisted(self) -> tuple[Place, ...]:
        """The collections that the operator serves, and that could not be read."""
        return tuple(each.place for each in self.unread if each.place.name == "*")

    @property
    def failing(self) -> int:
        """The number of handlers that fail, counted separately for each object."""
        return len({(each.sources, each.subject) for each in self.failures})

    @property
    def refused(self) -> int:
        """The number of objects with a request that the server refuses in a dry run."""
        return len({each.place for each in self.tried or () if each.refusal})

    def count(self, action: str) -> int:
        """The number of objects that are created, changed, deleted.

        Objects in which only the operator's own notes change are not counted.
        """
        return len(
            {
                each.place
                for each in self.changes
                if action in each.actions and not each.is_own
            }
        )
