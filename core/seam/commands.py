"""What `step` asks the world to do: the other half of the seam.

A command is a value.  An interpreter performs it and, where the command has an
`id`, answers with exactly one input that carries the same id.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

from fnop.core.api.resources import Resource, Selectors
from fnop.core.values.body import Body
from fnop.effects import Effect

__all__ = [
    "Alarm",
    "AttemptEnded",
    "CloseStream",
    "Command",
    "Exit",
    "Fetch",
    "Interrupt",
    "ListPage",
    "Perform",
    "Ready",
    "Refresh",
    "Say",
    "Subject",
    "Watch",
]


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a command is about, for logs and recordings."""

    resource: str  # plural.version.group
    namespace: str | None
    name: str
    uid: str | None = None
    kind: str = ""
    api_version: str = ""

    @property
    def label(self) -> str:
        """`namespace/name`, as log lines prefix it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Perform:
    """Execute one effect; its `Answered` input carries the outcome.

    `resource`, `namespace` and `name` are the resolved address for effects that
    speak to the API server, and absent for `Call` and `Random`.  It must not begin at
    `before` (monotonic) or later: a lease ends then.  An `urgent` one waits behind no
    other, and its answer is of no use from `before` on: with it the right to serve is
    kept, which the others need.
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


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Tell an impure handler, which runs as the call `id`, that it is to stop.

    With `cancel` it is not waited for any longer: a coroutine is cancelled, a thread
    is left to itself.
    """

    id: int
    reason: str
    cancel: bool = False


@dataclass(frozen=True, slots=True)
class Refresh:
    """Show an impure daemon, which runs as the call `id`, its object as it is now.

    `wall` is when that was seen (Unix seconds).
    """

    id: int
    body: Body
    wall: float


@dataclass(frozen=True, slots=True)
class Fetch:
    """GET a path of the API server outside of any resource (discovery).

    `accept` names the forms in which the document is wanted; after `seconds` without a
    whole answer the request is given up.
    """

    id: int
    path: str
    accept: str = "application/json"
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    """Get one page of a collection: `ListItem` for each object, then `ListDone`."""

    stream: int
    resource: Resource
    namespace: str | None
    limit: int
    continue_token: str | None = None
    selectors: Selectors = Selectors()  # noqa: RUF009 (an immutable value)


@dataclass(frozen=True, slots=True)
class Watch:
    """Follow a collection from a version until the stream ends or is closed."""

    stream: int
    resource: Resource
    namespace: str | None
    version: str
    timeout_seconds: int
    silence_seconds: float
    selectors: Selectors = Selectors()  # noqa: RUF009 (an immutable value)


@dataclass(frozen=True, slots=True)
class CloseStream:
    """Stop listing or watching; no input of this stream is wanted any more."""

    stream: int


@dataclass(frozen=True, slots=True)
class Alarm:
    """Ring at this monotonic time (seconds); replaces the alarm before it."""

    at: float


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """How an attempt of a handler has ended.

    `requeue`: it asks to be called again (`fnop.again`), which is no error; `timeout`:
    the handler's deadline has come, so there is no other attempt; `delegated`: the
    sub-handlers are still to end.  With `retried` another attempt follows, unless the
    deadline comes first.  A `rejected` one has failed since the API server refuses an
    effect of its plan.
    """

    result: Literal["success", "error", "requeue", "timeout", "delegated", "cancelled"]
    retried: bool = False
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """One line for the log.  `level` is debug, info, warning or error.

    `error` is the text of a failure; `exception` the live exception behind it,
    for a traceback: it is no part of the value and never recorded.  A line about an
    attempt has the seconds that it `took` until then.  `ended` is given where the line
    tells how an attempt has ended; it is not recorded, for a replay decides it anew.
    Nor is `act`, which was refused by the error that the line is about
    (`fnop.core.values.errors.NotPure`).
    """

    level: str
    message: str
    subject: Subject | None = None
    handler: str | None = None
    fields: tuple[tuple[str, Any], ...] = ()
    error: str | None = None
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    took: float | None = None
    ended: AttemptEnded | None = None
    act: Hashable = None


@dataclass(frozen=True, slots=True)
class Ready:
    """Every served kind has been listed once: the operator is in service."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The operator has ended; `status` is the exit status of the process."""

    status: int
    reason: str


Command = (
    Perform
    | Interrupt
    | Refresh
    | Fetch
    | ListPage
    | Watch
    | CloseStream
    | Alarm
    | Say
    | Ready
    | Exit
)
