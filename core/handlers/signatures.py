"""What handlers are given and may answer, as types.

One protocol for each kind of handler.  Its parameters are all that a handler of that
kind may ask for: type checkers hold handlers to them, and so does registration, which
reads the names off them (`fnop.core.handlers.registry.kwargs_of`).

A handler names what it needs and lets the rest pass by `**_`:

    def created(spec: fnop.Spec, name: str, **_: Any) -> fnop.Effect: ...

`old`, `new` and `diff` are `Any` or of `Any`: they are about the essence of an object,
or with `field=` about any JSON value.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from fnop.core.api.resources import Resource
from fnop.core.handlers.connection import ConnectionInfo
from fnop.core.handlers.settings import Settings
from fnop.core.handlers.writers import LogWriter, PatchWriter, Stopped
from fnop.core.values.body import Memo, Meta, View
from fnop.core.values.diff import Diff
from fnop.effects import Effect, Target
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "INDEX",
    "JSON",
    "ActivityName",
    "Annotations",
    "Body",
    "ChangeHandler",
    "CleanupHandler",
    "DaemonHandler",
    "EventHandler",
    "EventType",
    "Index",
    "IndexHandler",
    "Labels",
    "Logger",
    "LoginHandler",
    "ObjectCallback",
    "Patch",
    "ProbeHandler",
    "Reason",
    "Result",
    "Returned",
    "Spec",
    "StartupHandler",
    "Status",
    "TimerHandler",
    "ValueCallback",
]

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer_co = TypeVar("Answer_co", covariant=True)

# ------------------------------------------------------- what authors annotate with

JSON: TypeAlias = (
    bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
)
Body: TypeAlias = View
Logger: TypeAlias = LogWriter
Patch: TypeAlias = PatchWriter
Spec: TypeAlias = Mapping[str, Any]
Status: TypeAlias = Mapping[str, Any]
Labels: TypeAlias = Mapping[str, str]
Annotations: TypeAlias = Mapping[str, str]
# Each key with the values of all objects that have it.
Index: TypeAlias = Mapping[Key, tuple[Value, ...]]

Reason = Literal["create", "update", "delete", "resume"]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
ActivityName = Literal["startup", "cleanup", "login", "probe"]


class _Marker(Enum):
    INDEX = "index"

    def __repr__(self) -> str:
        return f"fnop.{self.name}"


# The default of an argument that is an index.
INDEX: Any = _Marker.INDEX

# -------------------------------------------------------------- what handlers answer

# A plan, or a result.  A list as a result needs `fnop.result` (R2).
Result: TypeAlias = (
    Effect | Sequence[Effect] | bool | int | float | str | Mapping[str, JSON] | None
)
# The same from a plain function, a coroutine, or a generator of effects.
Returned: TypeAlias = Result | Coroutine[Any, Any, Result] | Iterator[Effect]

# ---------------------------------------------------------------- kinds of handlers


class StartupHandler(Protocol):
    """`@fnop.on.startup`: may also return the settings from now on."""

    def __call__(
        self,
        *,
        activity: ActivityName,
        settings: Settings,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> Returned | Settings | Coroutine[Any, Any, Result | Settings]: ...


class CleanupHandler(Protocol):
    """`@fnop.on.cleanup`."""

    def __call__(
        self,
        *,
        activity: ActivityName,
        settings: Settings,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> Returned: ...


class LoginHandler(Protocol):
    """`@fnop.on.login`: talks to the world itself; None means that it knows nothing."""

    def __call__(
        self,
        *,
        activity: ActivityName,
        settings: Settings,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> ConnectionInfo | Coroutine[Any, Any, ConnectionInfo | None] | None: ...


class ProbeHandler(Protocol):
    """`@fnop.on.probe`: talks to the world itself; what it answers is shown."""

    def __call__(
        self,
        *,
        activity: ActivityName,
        settings: Settings,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> JSON | Coroutine[Any, Any, JSON]: ...


class ChangeHandler(Protocol):
    """`@fnop.on.create`, `update`, `delete`, `resume`, `field`; `@fnop.subhandler`."""

    def __call__(
        self,
        *,
        reason: Reason,
        old: Any,
        new: Any,
        diff: Diff,
        body: Body,
        spec: ReadOnlyDict,
        status: ReadOnlyDict,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: str | None,
        uid: str,
        owner: Target | None,
        resource: Resource,
        patch: Patch,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> Returned: ...


class EventHandler(Protocol):
    """`@fnop.on.event`; `type` is None for an object that was listed."""

    def __call__(
        self,
        *,
        type: EventType | None,
        event: ReadOnlyDict,
        body: Body,
        spec: ReadOnlyDict,
        status: ReadOnlyDict,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: str | None,
        uid: str,
        owner: Target | None,
        resource: Resource,
        patch: Patch,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> Returned: ...


class DaemonHandler(Protocol):
    """`@fnop.daemon`: awaits or yields, unless it is impure."""

    def __call__(
        self,
        *,
        stopped: Stopped,
        body: Body,
        spec: ReadOnlyDict,
        status: ReadOnlyDict,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: str | None,
        uid: str,
        owner: Target | None,
        resource: Resource,
        patch: Patch,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> Returned: ...


class TimerHandler(DaemonHandler, Protocol):
    """`@fnop.timer`: is given what a daemon is."""


class IndexHandler(Protocol):
    """`@fnop.index`: answers a mapping, or one value for the key None."""

    def __call__(
        self,
        *,
        body: Body,
        spec: ReadOnlyDict,
        status: ReadOnlyDict,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: str | None,
        uid: str,
        owner: Target | None,
        resource: Resource,
        memo: Memo,
        now: datetime,
        param: Any,
    ) -> object: ...


# -------------------------------------------------------------- functions in options
# Pyright gives a lambda's first names the types of these first parameters, whatever
# they are called: hence the `Any` in front.


class ObjectCallback(Protocol[Answer_co]):
    """A function of an object: `when=`, which answers a bool, and `initial_delay=` and
    `interval=`, which answer seconds.

    `reason` is there in filters of changes, `type` and `event` in those of watch
    events.
    """

    def __call__(
        self,
        *,
        old: Any,
        new: Any,
        param: Any,
        reason: Reason,
        type: EventType | None,
        event: ReadOnlyDict,
        diff: Diff,
        body: Body,
        spec: ReadOnlyDict,
        status: ReadOnlyDict,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: str | None,
        uid: str,
        owner: Target | None,
        resource: Resource,
        memo: Memo,
        now: datetime,
    ) -> Answer_co: ...


class ValueCallback(Protocol):
    """A function of a label's, an annotation's or a field's value, and its object."""

    def __call__(
        self,
        value: Any,
        /,
        *,
        old: Any,
        new: Any,
        param: Any,
        reason: Reason,
        type: EventType | None,
        event: ReadOnlyDict,
        diff: Diff,
        body: Body,
        spec: ReadOnlyDict,
        status: ReadOnlyDict,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: str | None,
        uid: str,
        owner: Target | None,
        resource: Resource,
        memo: Memo,
        now: datetime,
    ) -> bool: ...
