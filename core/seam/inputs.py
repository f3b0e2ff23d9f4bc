"""Inputs: the facts from the world that `step` decides on.

Each comes with the `Now` of the interpreter that saw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fnop.core.values.body import Body
from fnop.core.values.log_lines import LogLine, LogMark, LogPlace
from fnop.effects.outcomes import Outcome

__all__ = [
    "AlarmRang",
    "Answered",
    "Bookmark",
    "EventPosted",
    "Input",
    "ListDone",
    "ListItem",
    "LogLines",
    "Started",
    "StopRequested",
    "StreamEnded",
    "WatchEvent",
    "WriteDenied",
]


class Started(Struct, frozen=True):
    """The operator starts; `seed` is its only source of randomness."""

    seed: str


class Answered(Struct, frozen=True):
    """The outcome of the command with this id."""

    id: int
    outcome: Outcome


class ListItem(Struct, frozen=True):
    """One object of a listing, with its apiVersion and kind."""

    stream: int
    body: Body


class ListDone(Struct, frozen=True):
    """The end of a page of a listing; with a token there are more pages."""

    stream: int
    version: str
    continue_token: str | None = None


class WatchEvent(Struct, frozen=True):
    """One event of a watch: `type` is ADDED, MODIFIED or DELETED."""

    stream: int
    type: str
    body: Body


class Bookmark(Struct, frozen=True):
    """The watch has sent all events up to this version."""

    stream: int
    version: str


class LogLines(Struct, frozen=True):
    """Lines of a log that handlers want, up to a `mark`.

    `dropped` counts the lines beyond the `rate=` of handlers, by their ids; `cut`
    counts the lines that were too long. `remark` is a message from kubelet instead of a
    line.
    """

    stream: int
    lines: tuple[LogLine, ...]
    mark: LogMark | None = None
    dropped: tuple[tuple[str, int], ...] = ()
    cut: int = 0
    remark: str = ""


class StreamEnded(Struct, frozen=True):
    """A listing, a watch or a log has ended.

    `status` is the HTTP status (also of an ERROR event), if there is one; `reason` is
    eof, silent, undecodable, refused or unreachable, or elsewhere for a log that does
    not begin at its mark; `retry_after_seconds` is the server's advice, if it gave one.
    For a log, `place` is its end, and `rest` are lines that would be complete if
    nothing more came.
    """

    stream: int
    reason: str
    status: int | None = None
    message: str = ""
    retry_after_seconds: float | None = None
    place: LogPlace | None = None
    rest: tuple[LogLine, ...] = ()


class AlarmRang(Struct, frozen=True):
    """The time of the last `Alarm` has come."""


class StopRequested(Struct, frozen=True):
    """The operator is to stop gracefully."""

    reason: str


class EventPosted(Struct, frozen=True):
    """Code outside of the steps, such as a thread of a handler, posts an Event.

    `manifest` is a core/v1 Event without a name and without times, which the step adds.
    `handler` is the id of the handler whose code it is.
    """

    handler: str
    manifest: Mapping[str, Any]


class WriteDenied(Struct, frozen=True):
    """An admission handler has denied a write; a Kubernetes Event must report it.

    `resource` is the kind as `plural.version.group`. `namespace` is "" for
    cluster-scoped objects, and `uid` is "" for denied creations.
    """

    handler: str
    resource: str
    namespace: str
    name: str
    uid: str
    message: str


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
)
