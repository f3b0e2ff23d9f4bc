"""Commands: requests, streams, alarms and log lines that `step` asks for.

A command is a value. An interpreter executes it. If the command has an `id`, the
interpreter answers with exactly one input of the same id.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

from msgspec import Struct

from fnop.core.api.resources import Resource, Selectors
from fnop.core.seam.traces import Trace
from fnop.core.values.body import Body, Key
from fnop.core.values.log_lines import LogMark
from fnop.effects import Effect
from fnop.effects.structs import beside

__all__ = [
    "Alarm",
    "AttemptEnded",
    "CloseStream",
    "Command",
    "Exit",
    "Fetch",
    "FollowLog",
    "Interrupt",
    "ListPage",
    "MoreLines",
    "Perform",
    "Ready",
    "Refresh",
    "Say",
    "Subject",
    "Watch",
]


class Subject(Struct, frozen=True):
    """The object that a command is about, for logs and recordings."""

    resource: str  # plural.version.group
    namespace: str | None
    name: str
    uid: str | None = None
    kind: str = ""
    api_version: str = ""

    @property
    def label(self) -> str:
        """`namespace/name`, as the prefix of log lines."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def reference(self) -> dict[str, str]:
        """The object as a core/v1 ObjectReference, with the fields that are known.

        >>> Subject("pods.v1.", "shop", "a", kind="Pod").reference
        {'kind': 'Pod', 'name': 'a', 'namespace': 'shop'}
        """
        found = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
        }
        return {key: value for key, value in found.items() if value}

    @property
    def key(self) -> Key:
        """The key of the object in the operator's state."""
        return Key(self.resource, self.namespace or "", self.name)


class Perform(Struct, frozen=True):
    """Execute one effect; its `Answered` input has the outcome.

    `resource`, `namespace` and `name` are the resolved address for effects that are
    requests to the API server. They are None for `Call` and `Random`. The effect must
    not start at `before` (monotonic) or later, because a lease ends then. An `urgent`
    one does not wait for other requests, and its answer is useless from `before` on: it
    renews the right to serve, which all others depend on.
    """

    id: int
    effect: Effect
    resource: Resource | None = None
    namespace: str | None = None
    name: str | None = None
    subject: Subject | None = None
    handler: str | None = None
    before: float | None = None
    urgent: bool = False


class Interrupt(Struct, frozen=True):
    """Ask an impure handler, which runs as the call `id`, to stop.

    With `cancel`, the operator stops waiting for it: a coroutine is cancelled, a thread
    is left running.
    """

    id: int
    reason: str
    cancel: bool = False


class Refresh(Struct, frozen=True):
    """Give an impure daemon, which runs as the call `id`, the new state of its object.

    `wall` is the time when the object was seen (Unix seconds).
    """

    id: int
    body: Body
    wall: float


class Fetch(Struct, frozen=True):
    """GET a path of the API server outside of any resource (discovery).

    `accept` is the request's Accept header. After `seconds` without a whole answer, the
    request is given up.
    """

    id: int
    path: str
    accept: str = "application/json"
    seconds: float | None = None


class ListPage(Struct, frozen=True):
    """Get one page of a collection: `ListItem` for each object, then `ListDone`.

    With `metadata_only`, the operator needs only the objects' metadata.
    """

    stream: int
    resource: Resource
    namespace: str | None
    limit: int
    continue_token: str | None = None
    selectors: Selectors = Selectors()
    metadata_only: bool = False


class Watch(Struct, frozen=True):
    """Watch a collection from a version until the stream ends or is closed.

    From the version "" it begins with the existing objects: `ListItem` for each, then
    `ListDone` (Kubernetes: streaming lists, KEP-3157). With `metadata_only`, the
    operator needs only the objects' metadata.
    """

    stream: int
    resource: Resource
    namespace: str | None
    version: str
    timeout_seconds: int
    silence_seconds: float
    selectors: Selectors = Selectors()
    metadata_only: bool = False


class FollowLog(Struct, frozen=True, kw_only=True):
    """Read the log of a pod's container, for the handlers with these ids.

    `LogLines` answers with the first lines that they want. More follow after each
    `MoreLines`, until the stream ends or is closed. It `follows` a running container.
    With `previous`, it reads the log of the instance before the last restart. It begins
    `after` a mark; or with the last `tail` lines, the last `seconds`, or at a `moment`
    (nanoseconds of Unix time); or else with the first line. Lines are cut after `limit`
    bytes.
    """

    stream: int
    namespace: str
    name: str
    container: str
    handlers: tuple[str, ...]
    follows: bool
    previous: bool
    tail: int | None = None
    seconds: int | None = None
    moment: int | None = None
    after: LogMark | None = None
    silence_seconds: float
    limit: int


class MoreLines(Struct, frozen=True):
    """Continue a log stream, which waits after each `LogLines`."""

    stream: int


class CloseStream(Struct, frozen=True):
    """Stop a listing, a watch or a log; its inputs are ignored from now on."""

    stream: int


class Alarm(Struct, frozen=True):
    """Send `AlarmRang` at this monotonic time (seconds); replaces the last alarm."""

    at: float


class AttemptEnded(Struct, frozen=True):
    """The end of a handler's attempt.

    Results: `requeue` asks for another call (`fnop.again`), which is not an error;
    `timeout` is the handler's deadline, and no attempt follows; `delegated` waits for
    the sub-handlers. With `retried` another attempt follows, unless the deadline comes
    first. A `rejected` attempt has failed because the API server refused an effect of
    its plan.
    """

    result: Literal["success", "error", "requeue", "timeout", "delegated", "cancelled"]
    retried: bool = False
    rejected: bool = False


@beside("exception")
class Say(Struct, frozen=True):
    """Write one line to the log; `level` is debug, info, warning or error.

    `error` is the text of a failure; `exception` is the live exception behind it, for a
    traceback. It is not part of the value and is never recorded. A line about an
    attempt has the seconds that it `took` so far. At its end it has `ended`, which is
    not recorded, because a replay decides it again. `act` is not recorded either: the
    side effect that the logged error refuses (`fnop.core.values.errors.NotPure`).
    """

    level: str
    message: str
    subject: Subject | None = None
    handler: str | None = None
    fields: tuple[tuple[str, Any], ...] = ()
    error: str | None = None
    exception: BaseException | None = None
    took: float | None = None
    ended: AttemptEnded | None = None
    act: Hashable = None


class Ready(Struct, frozen=True):
    """Report that the operator is ready: every served kind has been listed once."""


class Exit(Struct, frozen=True):
    """Report that the operator has ended, with the exit status of the process."""

    status: int
    reason: str


Command = (
    Perform
    | Interrupt
    | Refresh
    | Fetch
    | ListPage
    | Watch
    | FollowLog
    | MoreLines
    | CloseStream
    | Alarm
    | Say
    | Ready
    | Exit
    | Trace
)
