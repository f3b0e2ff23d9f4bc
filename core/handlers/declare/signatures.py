"""The arguments that handlers take and the results that they return, as types.

Each kind of handler has one protocol. Its parameters are all arguments that a handler
of that kind may take. Type checkers check handlers against them. So does registration,
which reads their names (`names_in`). The protocol of each role is in
`fnop.core.handlers.declare.roles`.

A handler names the arguments that it needs, and `**_` takes the rest:

    def created(spec: fnop.Spec, name: str, **_: Any) -> fnop.Effect: ...

`old`, `new` and `diff` are `Any` or of `Any`: they are about the essence of an object.
With `field=` they are about any JSON value.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from fnop.core.api.cluster_changes import ServedKind, ServerVersion
from fnop.core.api.resources import Resource
from fnop.core.children.owned import Children
from fnop.core.handlers.declare.connection import ConnectionInfo
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.webhook import Operation
from fnop.core.handlers.declare.writers import LogWriter, PatchWriter, Stopped
from fnop.core.values.body import Memo, Meta, View
from fnop.core.values.diff import Diff
from fnop.effects import Effect, Target
from fnop.effects.desired import Desired
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "INDEX",
    "JSON",
    "ActivityName",
    "AdmissionHandler",
    "Annotations",
    "Body",
    "ChangeHandler",
    "CleanupHandler",
    "DaemonHandler",
    "EventHandler",
    "EventType",
    "Index",
    "IndexHandler",
    "KindHandler",
    "Labels",
    "LogHandler",
    "Logger",
    "LoginHandler",
    "MapHandler",
    "ObjectCallback",
    "Patch",
    "ProbeHandler",
    "ReachHandler",
    "Reason",
    "ReconcileHandler",
    "Result",
    "Returned",
    "Spec",
    "StartupHandler",
    "Status",
    "TimerHandler",
    "UpgradeHandler",
    "ValueCallback",
    "Warnings",
    "names_in",
]

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer_co = TypeVar("Answer_co", covariant=True)

# ------------------------------------------------------------ types for annotations

JSON: TypeAlias = (
    bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
)
"""Any JSON value."""
Body: TypeAlias = View
"""The argument `body`: the object, read-only at every depth."""
Logger: TypeAlias = LogWriter
"""The argument `logger`, with the methods of a standard logger."""
Patch: TypeAlias = PatchWriter
"""The argument `patch`, which collects changes of the object."""
Spec: TypeAlias = Mapping[str, Any]
"""The argument `spec`: the object's spec, read-only; empty without one."""
Status: TypeAlias = Mapping[str, Any]
"""The argument `status`: the object's status, read-only; empty without one."""
Labels: TypeAlias = Mapping[str, str]
"""The argument `labels`: the object's labels, read-only."""
Annotations: TypeAlias = Mapping[str, str]
"""The argument `annotations`: the object's annotations, read-only."""
Namespace: TypeAlias = Any
"""The argument `namespace`: a str, and None for a kind without namespaces.

Which of both is known to the author, who names the kind, and to no type checker.
"""
Unnamed: TypeAlias = Any
"""The arguments `name` and `uid` of a review: a str, and None for a new object without.

The API server makes a `generateName` into a name, and gives a uid, after mutations.
"""
Match: TypeAlias = Any
"""The argument `match`: a `re.Match[str]`, and None for a handler without `regex=`."""
Read: TypeAlias = Any
"""The arguments `spec`, `status`, `body` and `obj`: read-only mappings.

A handler that annotates one by a class of its own gets an object of that class. Which
class that is, is known to the author, who names the kind.
"""
Warnings: TypeAlias = list[str]
"""The argument `warnings` of admission handlers: texts that the user is shown.

For example:

    def named_well(name: str, warnings: fnop.Warnings, **_: Any) -> None:
        if "_" in name:
            warnings.append("names with _ are no DNS labels")
"""
Index: TypeAlias = Mapping[Key, tuple[Value, ...]]
"""An index: each key with the values of all objects that have it.

For example:

    def created(pods_by_app: fnop.Index[str, str] = fnop.INDEX, **_: Any) -> None:
        print(pods_by_app.get("web", ()))
"""

Reason = Literal["create", "update", "delete", "resume"]
"""The argument `reason`: the cause for which a change is handled."""
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
"""The argument `type` of a watch event; None stands for a listed object."""
ActivityName = Literal["startup", "cleanup", "login", "probe"]


class _Marker(Enum):
    INDEX = "index"

    def __repr__(self) -> str:
        return f"fnop.{self.name}"


INDEX: Any = _Marker.INDEX
"""The default of an argument that is an index; a mistyped name is refused as such.

For example:

    def created(pods_by_app: fnop.Index[str, str] = fnop.INDEX, **_: Any) -> None: ...
"""

# -------------------------------------------------------------- answers of handlers

Result: TypeAlias = (
    Effect | Sequence[Effect] | bool | int | float | str | Mapping[str, JSON] | None
)
"""The type of a handler's answer: a plan of effects, a result, or None.

A list as a result needs `fnop.result` (R2).

    def created(name: str, **_: Any) -> fnop.Result:
        return [fnop.event("Created", name)]
"""
# The same from a plain function, a coroutine, or a generator of effects.
Returned: TypeAlias = Result | Coroutine[Any, Any, Result] | Iterator[Effect]

# ---------------------------------------------------------------- kinds of handlers


class StartupHandler(Protocol):
    """The type of a handler under `@fnop.on.startup`; it may return changed settings.

    It gets the `settings`, the `memo` that objects' memos begin with, a `logger`,
    `activity` ("startup") and `param`. About the attempt it gets `now`, `started`,
    `runtime` and `retry` (0 for the first one).

        def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
            return settings.replace(conditions=False)
    """

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
    """The type of a handler under `@fnop.on.cleanup`.

    It gets the same arguments as a `StartupHandler`.

        def farewell(logger: fnop.Logger, **_: Any) -> None:
            logger.info("goodbye")
    """

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


class UpgradeHandler(Protocol):
    """The type of a handler under `@fnop.on.cluster.upgraded`.

    It gets the `old` and the `new` version of the API server, the operator's `settings`
    and `memo`, a `logger` and `param`. About the attempt it gets `now`, `started`,
    `runtime` and `retry`.

        def upgraded(new: fnop.ServerVersion, logger: fnop.Logger, **_: Any) -> None:
            if new >= (1, 31):
                logger.info("match conditions may look at authorizations")
    """

    def __call__(
        self,
        *,
        old: ServerVersion,
        new: ServerVersion,
        settings: Settings,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> Returned: ...


class KindHandler(Protocol):
    """The type of a handler of kinds that are added, removed or changed.

    It gets the `resource`, and the description that the API server served of it before
    and now. `old` is None if the kind was added, `new` is None if it was removed. The
    other arguments are as in an `UpgradeHandler`.

        def added(resource: fnop.Resource, logger: fnop.Logger, **_: Any) -> None:
            logger.info(f"{resource.label} can be used")
    """

    def __call__(
        self,
        *,
        resource: Resource,
        old: ServedKind | None,
        new: ServedKind | None,
        settings: Settings,
        logger: Logger,
        memo: Memo,
        now: datetime,
        param: Any,
        retry: int,
        runtime: timedelta,
        started: datetime,
    ) -> Returned: ...


class ReachHandler(Protocol):
    """The type of a handler of times when the API server cannot be reached.

    `downtime` is the time without an answer of the API server. The other arguments are
    as in an `UpgradeHandler`.

        def back(downtime: timedelta, logger: fnop.Logger, **_: Any) -> None:
            logger.warning(f"the API server was away for {downtime}")
    """

    def __call__(
        self,
        *,
        downtime: timedelta,
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
    """The type of a handler under `@fnop.on.login`, which may have side effects.

    It gets the same arguments as a `StartupHandler`, and returns None if it has no
    credentials.

        def login(**_: Any) -> fnop.ConnectionInfo | None:
            return fnop.ConnectionInfo(server="https://10.0.0.1:6443", token="...")
    """

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
    """The type of a handler under `@fnop.on.probe`, which may have side effects.

    It gets the same arguments as a `StartupHandler`. The liveness endpoint shows its
    result.

        def time_of_probe(now: datetime, **_: Any) -> fnop.JSON:
            return now.isoformat()
    """

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
    """The type of a handler of changes, such as one under `@fnop.on.create`.

    Handlers under `update`, `delete`, `resume` and `field`, and sub-handlers, have this
    type, too.

    - The object: `body`, and of it `spec`, `status`, `meta`, `labels`, `annotations`,
      `name`, `namespace`, `uid`, its `owner` and its kind, `resource`.
    - The change: `reason`, `old`, `new` and `diff`.
    - To write to: `patch` and `logger`.
    - The attempt: `now`, `started`, `runtime`, `retry` (0 for the first one).
    - Also `memo` and `param`.

        def resized(old: Any, new: Any, patch: fnop.Patch, **_: Any) -> fnop.Result:
            patch.status["size"] = new
            return fnop.event("Resized", f"from {old} to {new}")
    """

    def __call__(
        self,
        *,
        reason: Reason,
        old: Any,
        new: Any,
        diff: Diff,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
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
    """The type of a handler under `@fnop.on.event`.

    It gets the object's arguments as a `ChangeHandler` does. `type` is the type of the
    watch event, None for an object that was listed. `event` is the watch event itself,
    a mapping of `type` and `object`.

        def seen(type: fnop.EventType | None, name: str, **_: Any) -> None:
            print(type, name)
    """

    def __call__(
        self,
        *,
        type: EventType | None,
        event: ReadOnlyDict,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
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


class LogHandler(Protocol):
    """The type of a handler under `@fnop.on.log`.

    It gets the object's arguments as a `ChangeHandler` does; the object is the pod.
    About the log it gets:

    - `line`, without its end
    - `time`, when the container wrote it
    - `container`, the name
    - `match`, the match of `regex=`; None without that option

        def accuracy(match: Any, labels: fnop.Labels, **_: Any) -> fnop.Effect:
            model = fnop.target("models", name=labels["model"])
            return fnop.patch(model, status={"accuracy": match[1]})
    """

    def __call__(
        self,
        *,
        line: str,
        match: Match,
        time: datetime,
        container: str,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
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
    """The type of a handler under `@fnop.daemon`: a conversation, or impure.

    It gets the object's arguments as a `ChangeHandler` does, and `stopped`, which is
    true once the daemon is to stop.

        async def watch(stopped: fnop.Stopped, name: str, **_: Any) -> None:
            while not await stopped.wait(30):
                await fnop.info("Alive", name)
    """

    def __call__(
        self,
        *,
        stopped: Stopped,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
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
    """The type of a handler under `@fnop.timer`, with a `DaemonHandler`'s arguments.

    For example:

        def count(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> None:
            patch.status["tables"] = len(spec["tables"])
    """


class ReconcileHandler(Protocol):
    """The type of a handler under `@fnop.reconcile`, which receives no cause.

    It gets the object's arguments as a `ChangeHandler` does, but nothing about a
    change. Instead it gets `children`, all objects of the kinds in `owns=` that the
    object owns, by kind and name. `conditions` are the conditions in the object's
    status, by type. `retry` counts failures since the last success.

        def database(spec: fnop.Spec, name: str, **_: Any) -> fnop.Desired:
            return fnop.desired([service(name), stateful_set(name, spec["size"])])
    """

    def __call__(
        self,
        *,
        children: Children,
        conditions: ReadOnlyDict,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
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
    ) -> (
        Returned
        | Desired
        | Sequence[Effect | Desired]
        | Coroutine[Any, Any, Result | Desired | Sequence[Effect | Desired]]
    ): ...


class MapHandler(Protocol):
    """The type of a function under `@fnop.maps`, from an object to names of others.

    It gets an `EventHandler`'s arguments about the object and the watch event. It
    returns the names of objects of the kind in `to=`: a name, `namespace/name`, a
    `fnop.target`, an iterable of these, or None.

        def tenants_of(name: str, tenants: fnop.Index = fnop.INDEX, **_: Any) -> object:
            return tenants.get(name, ())
    """

    def __call__(
        self,
        *,
        type: EventType | None,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
        uid: str,
        owner: Target | None,
        resource: Resource,
        memo: Memo,
        now: datetime,
        param: Any,
    ) -> object: ...


class IndexHandler(Protocol):
    """The type of a function under `@fnop.index`.

    It gets the object's arguments as a `ChangeHandler` does. It returns a mapping of
    keys to values, or one value for the key None.

        def pods_by_app(labels: fnop.Labels, name: str, **_: Any) -> dict[str, str]:
            return {labels["app"]: name}
    """

    def __call__(
        self,
        *,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
        uid: str,
        owner: Target | None,
        resource: Resource,
        memo: Memo,
        now: datetime,
        param: Any,
    ) -> object: ...


class AdmissionHandler(Protocol):
    """The type of a handler under `@fnop.on.validate` and `@fnop.on.mutate`.

    It gets the object's arguments as a `ChangeHandler` does, with `old` and `new` as
    whole objects. `old` is None for a creation, `new` is None for a deletion, and
    `body` is the one that exists.

    - The request: `operation`, `subresource`, `dryrun`, and `userinfo`, which names the
      requesting user.
    - The connection: `headers` and `sslpeer`, empty without a connection.
    - To write to: `patch`, `logger`, and `warnings`, a list of texts that the user
      sees.

        def shrinks_not(
            spec: fnop.Spec, old: Any, warnings: fnop.Warnings, **_: Any
        ) -> None:
            if old and spec["size"] < old["spec"]["size"]:
                raise fnop.Denied("it must not shrink", field="spec.size")
    """

    def __call__(
        self,
        *,
        operation: Operation,
        subresource: str | None,
        dryrun: bool,
        userinfo: ReadOnlyDict,
        headers: ReadOnlyDict,
        sslpeer: ReadOnlyDict,
        warnings: Warnings,
        old: Any,
        new: Any,
        diff: Diff,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: Unnamed,
        namespace: Namespace,
        uid: Unnamed,
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


# -------------------------------------------------------------- functions in options
# Pyright gives a lambda's first names the types of these first parameters, whatever
# their names are. Hence the `Any` in front.


class ObjectCallback(Protocol[Answer_co]):
    """The type of a function of an object, as in the option `when=`.

    It returns a bool for `when=`, and seconds for `initial_delay=` and `interval=`.
    Filters of changes get `reason`. Filters of watch events get `type` and `event`.
    Filters of log lines get `line` and so on. Filters of admission get the facts of a
    request.
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
        operation: Operation,
        subresource: str | None,
        dryrun: bool,
        userinfo: ReadOnlyDict,
        headers: ReadOnlyDict,
        sslpeer: ReadOnlyDict,
        line: str,
        match: Match,
        time: datetime,
        container: str,
        diff: Diff,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
        uid: str,
        owner: Target | None,
        resource: Resource,
        memo: Memo,
        now: datetime,
    ) -> Answer_co: ...


class ValueCallback(Protocol):
    """The type of a function of the value of a label, an annotation or a field.

    It may take arguments of the object, too.
    """

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
        operation: Operation,
        subresource: str | None,
        dryrun: bool,
        userinfo: ReadOnlyDict,
        headers: ReadOnlyDict,
        sslpeer: ReadOnlyDict,
        line: str,
        match: Match,
        time: datetime,
        container: str,
        diff: Diff,
        body: Read,
        obj: Read,
        spec: Read,
        status: Read,
        meta: Meta,
        labels: ReadOnlyDict,
        annotations: ReadOnlyDict,
        name: str,
        namespace: Namespace,
        uid: str,
        owner: Target | None,
        resource: Resource,
        memo: Memo,
        now: datetime,
    ) -> bool: ...


def names_in(protocol: Any) -> frozenset[str]:
    """The names of the arguments that one of these protocols declares.

    >>> sorted(names_in(IndexHandler) - names_in(ChangeHandler))
    []
    """
    parameters = inspect.signature(protocol.__call__).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
