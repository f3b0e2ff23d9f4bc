"""The decorators that operators are written with: `@fnop.on.create("pods")`.

Each has the options and the handlers of its kind as types, so that editors complete
them and type checkers refuse others; it gives back the function that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never, TypeVar, Unpack, overload

from fnop.core.handlers.declaring import declare, declaring
from fnop.core.handlers.handler import Role
from fnop.core.handlers.options import (
    ActivityOptions,
    CreateOptions,
    DaemonOptions,
    DeleteOptions,
    EventOptions,
    FieldOptions,
    IndexOptions,
    LoginOptions,
    ProbeOptions,
    ResumeOptions,
    SubhandlerOptions,
    TimerOptions,
    UpdateOptions,
    Word,
)
from fnop.core.handlers.signatures import (
    ChangeHandler,
    CleanupHandler,
    DaemonHandler,
    EventHandler,
    IndexHandler,
    LoginHandler,
    ProbeHandler,
    StartupHandler,
    TimerHandler,
)
from fnop.effects import Execute

__all__ = [
    "daemon",
    "execute",
    "index",
    "on",
    "register",
    "subhandler",
    "timer",
]

# pytest shows the author's line, and none of these.
__tracebackhide__ = True

# The function itself: it can be called in tests as it was written.
StartupFn = TypeVar("StartupFn", bound=StartupHandler)
CleanupFn = TypeVar("CleanupFn", bound=CleanupHandler)
LoginFn = TypeVar("LoginFn", bound=LoginHandler)
ProbeFn = TypeVar("ProbeFn", bound=ProbeHandler)
ChangeFn = TypeVar("ChangeFn", bound=ChangeHandler)
EventFn = TypeVar("EventFn", bound=EventHandler)
IndexFn = TypeVar("IndexFn", bound=IndexHandler)
DaemonFn = TypeVar("DaemonFn", bound=DaemonHandler)
TimerFn = TypeVar("TimerFn", bound=TimerHandler)


def index(
    *words: Word, **options: Unpack[IndexOptions]
) -> Callable[[IndexFn], IndexFn]:
    """What the function makes of all objects of a kind, at hand for other handlers."""
    return declare(Role.INDEX, words, options)


def daemon(
    *words: Word, **options: Unpack[DaemonOptions]
) -> Callable[[DaemonFn], DaemonFn]:
    """A conversation that goes on for as long as the object lives."""
    return declare(Role.DAEMON, words, options)


def timer(
    *words: Word, **options: Unpack[TimerOptions]
) -> Callable[[TimerFn], TimerFn]:
    """Called again and again for as long as the object lives."""
    return declare(Role.TIMER, words, options)


class On:
    """The decorators `fnop.on.create(...)`, `fnop.on.update(...)`, …"""

    index = staticmethod(index)
    daemon = staticmethod(daemon)
    timer = staticmethod(timer)

    def startup(
        self, *words: Never, **options: Unpack[ActivityOptions]
    ) -> Callable[[StartupFn], StartupFn]:
        """The operator starts; nothing else is done before it has succeeded."""
        return declare(Role.STARTUP, words, options)

    def cleanup(
        self, *words: Never, **options: Unpack[ActivityOptions]
    ) -> Callable[[CleanupFn], CleanupFn]:
        """The operator ends."""
        return declare(Role.CLEANUP, words, options)

    def login(
        self, *words: Never, **options: Unpack[LoginOptions]
    ) -> Callable[[LoginFn], LoginFn]:
        """Credentials are needed, or were rejected."""
        return declare(Role.LOGIN, words, options)

    def probe(
        self, *words: Never, **options: Unpack[ProbeOptions]
    ) -> Callable[[ProbeFn], ProbeFn]:
        """Somebody asks whether the operator is well."""
        return declare(Role.PROBE, words, options)

    def create(
        self, *words: Word, **options: Unpack[CreateOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """The object is new to this operator."""
        return declare(Role.CREATE, words, options)

    def update(
        self, *words: Word, **options: Unpack[UpdateOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """The object's essence has changed: anything but status and bookkeeping."""
        return declare(Role.UPDATE, words, options)

    def delete(
        self, *words: Word, **options: Unpack[DeleteOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """The object is being deleted; it stays until the handler has succeeded."""
        return declare(Role.DELETE, words, options)

    def resume(
        self, *words: Word, **options: Unpack[ResumeOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """The object was handled by an earlier process, and this one starts."""
        return declare(Role.RESUME, words, options)

    def field(
        self, *words: Word, **options: Unpack[FieldOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """The field has changed, or appears with a new object."""
        return declare(Role.FIELD, words, options)

    def event(
        self, *words: Word, **options: Unpack[EventOptions]
    ) -> Callable[[EventFn], EventFn]:
        """Every watch event; nothing is stored, errors are only logged."""
        return declare(Role.EVENT, words, options)

    if not TYPE_CHECKING:  # a type checker knows that there is no such decorator

        def __getattr__(self, name: str) -> Any:
            known = ", ".join(sorted(role.value for role in Role))
            raise AttributeError(
                f"fnop.on has no decorator {name!r}; there are {known}"
            )


on = On()


def subhandler(
    **options: Unpack[SubhandlerOptions],
) -> Callable[[ChangeFn], ChangeFn]:
    """Declare a part of the running handler that succeeds or fails by itself.

    Each has its own progress, retries and result.  The handler has succeeded when
    all of them have.  Takes the options of the handler's own kind, and `id`.
    """
    collecting = declaring()

    def decorate(fn: ChangeFn) -> ChangeFn:
        collecting.add(fn, options)
        return fn

    return decorate


def register(fn: ChangeFn, **options: Unpack[SubhandlerOptions]) -> ChangeFn:
    """`subhandler` as a plain call."""
    declaring().add(fn, options)
    return fn


@overload
def execute(fns: Mapping[str, ChangeHandler]) -> Execute: ...


@overload
def execute(fns: Iterable[ChangeHandler] = ()) -> Execute: ...


def execute(
    fns: Mapping[str, ChangeHandler] | Iterable[ChangeHandler] = (),
) -> Execute:
    """Run sub-handlers: these, by id or by name, and those declared so far.

    Awaited, it answers when all have ended, and tells how: a mapping from their own
    ids to `{"finished": "success"}`, or "failure" with a `message`.
    """
    collecting = declaring()
    if isinstance(fns, Mapping):
        for name, fn in fns.items():
            collecting.add(fn, {"id": name})
    else:
        for fn in fns:
            collecting.add(fn, {})
    prefix = len(collecting.parent.id) + 1
    return Execute(tuple(each.id[prefix:] for each in collecting.children))
