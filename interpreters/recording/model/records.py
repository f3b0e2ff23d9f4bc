"""The records of a recording as values: inputs, commands, and steps that are missing.

Each record is decoded once. The classes have the names of the inputs and commands that
were recorded (`fnop.core.seam`), and the fields that questions need. Kinds and objects
are texts, as they are written. Effects, outcomes and objects stay JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_type_hints

from msgspec import Struct

from fnop.core.seam.traces import Version
from fnop.core.values.body import Key

__all__ = [
    "Command",
    "Gap",
    "Input",
    "Other",
    "Stream",
    "Trace",
    "command_of",
    "input_of",
]

Json = Mapping[str, Any]


class Gap(Struct, frozen=True):
    """Steps that could not be recorded: the first, and the last of them."""

    first: int
    last: int

    @property
    def steps(self) -> int:
        """The number of the missing steps."""
        return self.last - self.first + 1


class Other(Struct, frozen=True):
    """An input or a command that no question is about, by its name."""

    name: str


# --------------------------------------------------------------------------- inputs


class Started(Struct, frozen=True):
    """A process of the operator starts."""

    seed: Any = ""


class Answered(Struct, frozen=True):
    """The outcome of the request or the fetch with this id."""

    id: int
    outcome: dict[str, Any]


class ListItem(Struct, frozen=True):
    """One object of a listing."""

    stream: int
    body: Any


class ListDone(Struct, frozen=True):
    """The end of a page of a listing; with a token there are more pages."""

    stream: int
    version: str
    continue_token: Any = None


class WatchEvent(Struct, frozen=True):
    """One event of a watch; `type` is ADDED, MODIFIED or DELETED."""

    stream: int
    type: str
    body: Any


class Bookmark(Struct, frozen=True):
    """The watch has sent all events up to this version."""

    stream: int
    version: str


class LogLines(Struct, frozen=True):
    """Lines of a container's log."""

    stream: int
    lines: list[Any]


class StreamEnded(Struct, frozen=True):
    """A listing, a watch or a log has ended, with an HTTP status if there is one."""

    stream: int
    reason: str
    status: Any = None
    message: Any = ""


class AlarmRang(Struct, frozen=True):
    """The time of the last alarm has come."""

    name: str = "AlarmRang"


class StopRequested(Struct, frozen=True):
    """The operator is to stop."""

    reason: str


class WriteDenied(Struct, frozen=True):
    """An admission handler has denied a write."""

    handler: str


class EventPosted(Struct, frozen=True):
    """Code outside of the steps has posted a Kubernetes Event."""

    handler: str


Input = (
    Started
    | Answered
    | ListItem
    | ListDone
    | WatchEvent
    | Bookmark
    | LogLines
    | StreamEnded
    | AlarmRang
    | StopRequested
    | WriteDenied
    | EventPosted
    | Other
)


# ------------------------------------------------------------------------- commands


class Perform(Struct, frozen=True):
    """An effect is executed; without a kind it is a call outside of the cluster.

    `subject` is the handled object as `namespace/name`, and `handler` has the names of
    the handlers behind the request, with commas between them.
    """

    id: int
    effect: dict[str, Any]
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subject: str = ""
    handler: str = ""


class Fetch(Struct, frozen=True):
    """A path of the API server is read, for discovery."""

    id: int
    path: str


class ListPage(Struct, frozen=True):
    """A page of a collection is listed; the first one has no token."""

    stream: int
    resource: str
    namespace: str = ""
    continue_token: Any = None
    selectors: Any = None

    @property
    def begins_list(self) -> bool:
        """Whether all objects follow, and not only the rest of them."""
        return not self.continue_token


class Watch(Struct, frozen=True):
    """A collection is watched from a version on; from "" it is listed first."""

    stream: int
    resource: str
    namespace: str = ""
    version: str = ""
    selectors: Any = None

    @property
    def begins_list(self) -> bool:
        """Whether all objects follow before the events."""
        return not self.version


class FollowLog(Struct, frozen=True):
    """The log of a pod's container is read."""

    stream: int
    namespace: str
    name: str
    container: str


class CloseStream(Struct, frozen=True):
    """A listing, a watch or a log is stopped."""

    stream: int


class Alarm(Struct, frozen=True):
    """The operator is to be woken at this monotonic time (seconds)."""

    at: float


class Interrupt(Struct, frozen=True):
    """An impure handler is asked to stop."""

    reason: str


class Refresh(Struct, frozen=True):
    """An impure daemon is given the new state of its object."""

    id: int


class Say(Struct, frozen=True):
    """A log line."""

    level: str
    message: str
    subject: str = ""
    handler: str = ""
    fields: Sequence[Any] = ()

    @property
    def is_trouble(self) -> bool:
        """Whether it is a warning or an error."""
        return self.level in ("warning", "error")


class Ready(Struct, frozen=True):
    """All served kinds have been listed once."""

    name: str = "Ready"


class Exit(Struct, frozen=True):
    """The operator has ended."""

    reason: str
    status: Any = 0


class Began(Struct, frozen=True):
    """An attempt of a handler begins with these facts.

    `before` are the digests of the former state and its value's digest, and `line` is
    the log line that the attempt is about.
    """

    attempt: int
    handler: str
    object: Version | None = None
    reason: str | None = None
    retry: int = 0
    started: float = 0.0
    before: Any = None
    memo: Any = None
    children: Sequence[Version] = ()
    line: Any = None


class Asked(Struct, frozen=True):
    """An attempt awaits an effect."""

    attempt: int
    effect: dict[str, Any]


class Given(Struct, frozen=True):
    """An attempt is given an answer.

    It is the outcome that came with the input, unless `outcome` is set. With `version`
    it is that version of the attempt's object.
    """

    attempt: int
    outcome: dict[str, Any] | None = None
    version: str | None = None
    stopped: str | None = None


class Desires(Struct, frozen=True):
    """The author's part of a reconciler ends; `decision` is what it has decided."""

    attempt: int
    decision: Json


class Ended(Struct, frozen=True):
    """An attempt ends; `decision` is its plan, or its failure."""

    attempt: int
    decision: Json

    @property
    def is_nothing(self) -> bool:
        """Whether the attempt changes nothing by its end."""
        patches = any(self.decision.get("patches") or ())
        return not (patches or any(map(self.decision.get, _ACTS)))


_ACTS = ("plan", "failure", "parts")


class Wrote(Struct, frozen=True):
    """The handlers whose changes a request has, and the fields of each."""

    id: int
    fields: Sequence[Any]


class Indexed(Struct, frozen=True):
    """An index has these values of an object, or values that are not JSON."""

    name: str
    object: Key
    values: Sequence[Any] = ()
    unknown: bool = False


Stream = ListPage | Watch | FollowLog
Trace = Asked | Given | Desires | Ended
Command = (
    Perform
    | Fetch
    | Stream
    | CloseStream
    | Alarm
    | Interrupt
    | Refresh
    | Say
    | Ready
    | Exit
    | Began
    | Trace
    | Wrote
    | Indexed
    | Other
)

# ------------------------------------------------------------------------- decoding

_INPUTS: Mapping[str, type[Struct]] = {
    each.__name__: each for each in Input.__args__ if each is not Other
}
_COMMANDS: Mapping[str, type[Struct]] = {
    each.__name__: each for each in Command.__args__ if each is not Other
}
# The types that are checked: a wrong one would be noticed far from here, or never.
_CHECKED = (int, str, dict[str, Any])


def input_of(wire: Json) -> Any:
    """The input of a step from its JSON form.

    Raises `ValueError` if a field is missing or has another type.

    >>> input_of({"in": "Bookmark", "stream": 1, "version": "7"})
    Bookmark(stream=1, version='7')
    """
    return _decoded(_INPUTS, wire["in"], wire)


def command_of(wire: Json) -> Any:
    """A command of a step from its JSON form; raises as `input_of`.

    >>> command_of({"do": "Fetch", "id": 1, "path": "/apis"})
    Fetch(id=1, path='/apis')
    """
    name = wire["do"]
    match name:
        case "Desires" | "Ended":
            decision = {k: v for k, v in wire.items() if k not in ("do", "attempt")}
            wire = {**wire, "decision": decision}
        case "Indexed":
            names = Key(*_texts(wire["object"]))
            wire = {**wire, "name": wire["index"], "object": names}
        case "Began":
            about, children = wire.get("object"), wire.get("children", ())
            wire = {
                **wire,
                "object": None if about is None else Version(*_texts(about)),
                "children": [Version(*_texts(each)) for each in children],
            }
        case _:
            pass
    return _decoded(_COMMANDS, name, wire)


def _texts(names: Sequence[Any]) -> Sequence[str]:
    """The names of an object; raise `TypeError` for other values."""
    if not all(isinstance(each, str) for each in names):
        raise TypeError("a name is not a text")
    return names


def _decoded(classes: Mapping[str, type[Struct]], name: Any, wire: Json) -> Any:
    cls: Any = classes.get(name)
    if cls is None:
        return Other(str(name))
    given = {}
    for field, kind in _fields(cls):
        value = wire.get(field)
        if value is None:
            continue
        if kind is not None and not isinstance(value, kind):
            raise ValueError(f"{name}: its {field} is no {kind.__name__}")
        given[field] = value
    try:
        return cls(**given)
    except TypeError as problem:
        lacks = [field for field in cls.__struct_fields__ if field not in given]
        raise ValueError(f"{name}: it has no {lacks[0]}") from problem


@cache
def _fields(cls: Any) -> tuple[tuple[str, type | None], ...]:
    """The fields of a class, each with the type that its values must have."""
    hints = get_type_hints(cls)
    return tuple((name, _checked_type(hints[name])) for name in cls.__struct_fields__)


def _checked_type(hint: Any) -> type | None:
    if hint not in _CHECKED:
        return None
    kind: type = dict if hint == dict[str, Any] else hint
    return kind
