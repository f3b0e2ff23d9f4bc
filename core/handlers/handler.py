"""Handlers as data: the role, the signature, and the options of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Container
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fnop.core.api.resources import Selector
from fnop.core.handlers.filters import Callback, Filters
from fnop.core.handlers.schedule import Schedule
from fnop.core.handlers.signatures import (
    INDEX,
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
from fnop.core.values.backoff import Backoff
from fnop.core.values.callables import layers, parameters_of
from fnop.core.values.diff import Path
from fnop.core.values.errors import (
    ErrorsMode,
    RegistrationError,
    hint_of,
    listed,
    nearest,
)

__all__ = [
    "ACTIVITIES",
    "BACKGROUND",
    "CHANGES",
    "OUTSIDE",
    "PROTOCOLS",
    "Form",
    "Handler",
    "Role",
    "Signature",
    "declarer_of",
    "form_of",
    "kwargs_of",
    "names_in",
]


class Role(Enum):
    """What a handler is called for."""

    STARTUP = "startup"
    CLEANUP = "cleanup"
    LOGIN = "login"
    PROBE = "probe"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESUME = "resume"
    FIELD = "field"
    EVENT = "event"
    INDEX = "index"
    DAEMON = "daemon"
    TIMER = "timer"


ACTIVITIES = frozenset((Role.STARTUP, Role.CLEANUP))


CHANGES = frozenset((Role.CREATE, Role.UPDATE, Role.DELETE, Role.RESUME, Role.FIELD))


BACKGROUND = frozenset((Role.DAEMON, Role.TIMER))


# They are called by adapters, outside of every step, and answer no effects.
OUTSIDE = frozenset((Role.LOGIN, Role.PROBE))


# What a handler of each role may ask for.
PROTOCOLS: dict[Role, type] = {
    Role.STARTUP: StartupHandler,
    Role.CLEANUP: CleanupHandler,
    Role.LOGIN: LoginHandler,
    Role.PROBE: ProbeHandler,
    Role.CREATE: ChangeHandler,
    Role.UPDATE: ChangeHandler,
    Role.DELETE: ChangeHandler,
    Role.RESUME: ChangeHandler,
    Role.FIELD: ChangeHandler,
    Role.EVENT: EventHandler,
    Role.INDEX: IndexHandler,
    Role.DAEMON: DaemonHandler,
    Role.TIMER: TimerHandler,
}


def names_in(protocol: Any) -> frozenset[str]:
    """The arguments that a protocol of `fnop.core.handlers.signatures` declares."""
    parameters = inspect.signature(protocol.__call__).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


_KWARGS = {role: names_in(protocol) for role, protocol in PROTOCOLS.items()}


def kwargs_of(role: Role) -> frozenset[str]:
    """The arguments that a handler of this role may ask for."""
    return _KWARGS[role]


class Form(Enum):
    """How a handler is written: all three are the same conversation."""

    PLAN = "plan"
    AWAITED = "awaited"
    GENERATOR = "generator"


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments that a handler names.

    `rest` tells that it also takes `**kwargs`.  A name that begins with an
    underscore, as in `**_`, says that it does not look at them.
    """

    form: Form
    wants: tuple[str, ...]
    rest: bool

    def takes(self, name: str) -> bool:
        """Whether it looks at this argument, where its role has it."""
        return self.rest or name in self.wants

    @classmethod
    def of(
        cls,
        fn: Callable[..., Any],
        role: Role,
        label: str,
        indices: Collection[str] = (),
    ) -> Signature:
        own = kwargs_of(role)
        known = own | frozenset(indices)
        wants: list[str] = []
        rest = False
        for each in parameters_of(fn):
            if each.kind is each.VAR_KEYWORD:
                rest = not each.name.startswith("_")
            elif each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL):
                raise RegistrationError(
                    f"{label}: {each.name!r} is positional, but handlers are called "
                    "with keyword arguments; remove it or the / after it"
                )
            elif each.default is INDEX and (each.name in own or each.name not in known):
                raise RegistrationError(_no_index(label, each.name, own, indices))
            elif each.name in known:
                wants.append(each.name)
            elif each.default is each.empty:
                raise RegistrationError(_unknown_kwarg(label, each.name, known))
        return cls(form_of(fn, label), tuple(wants), rest)


def _unknown_kwarg(label: str, name: str, known: Collection[str]) -> str:
    hint = hint_of(name, known) + ", or for an index that is declared above it"
    return f"{label} asks for an unknown argument {name!r}; {hint}"


def _no_index(
    label: str, name: str, own: Collection[str], indices: Collection[str]
) -> str:
    """An argument with the default `fnop.INDEX` that is none."""
    if name in own:
        return (
            f"{label}: {name!r} is no index but an argument of its own; leave the "
            "default fnop.INDEX out"
        )
    near = nearest(name, indices)
    hint = f"there are {listed(indices)}" if indices else "there is none"
    hint = f"did you mean {near!r}?" if near else hint
    return f"{label} asks for an index {name!r} that is not declared above it; {hint}"


def form_of(fn: Callable[..., Any], label: str) -> Form:
    """What calling it makes: told by the outermost layer that is no plain function."""
    for layer in layers(fn):
        if inspect.isasyncgenfunction(layer):
            raise RegistrationError(
                f"{label} both awaits and yields; write `async def` with awaits, or a "
                "plain generator with yields"
            )
        if inspect.iscoroutinefunction(layer):
            return Form.AWAITED
        if inspect.isgeneratorfunction(layer):
            return Form.GENERATOR
    return Form.PLAN


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """One declared handler; durations are in seconds."""

    id: str
    fn: Callable[..., Any]
    role: Role
    signature: Signature
    selector: Selector | None = None
    filters: Filters = Filters()  # noqa: RUF009 (an immutable value)
    errors: ErrorsMode = ErrorsMode.TEMPORARY
    timeout: float | None = None
    retries: int | None = None
    backoff: float | Backoff | None = None
    param: Any = None
    optional: bool = False
    deleted: bool = False
    owner: Selector | None = None
    # The (group, kind) pairs that `owner` means, once the kinds are known.
    owners: frozenset[tuple[str, str]] | None = None
    schedule: Schedule | None = None
    finalizer: bool = False
    # The importable name of an impure handler (R9); others have none.
    function: str = ""
    parent: str = ""
    # It is noted on its object before its first effect on any other.
    write_ahead: bool = False
    cancellation_backoff: float | None = None
    cancellation_timeout: float | None = None

    @property
    def field(self) -> Path:
        return self.filters.field

    @property
    def takes_all(self) -> bool:
        """Whether it is for every object of its kinds."""
        return self.owner is None and self.filters.is_trivial

    def backoff_or(self, default: float | Backoff) -> float | Backoff:
        """The wait after an arbitrary error: its own `backoff=`, or else the default.

        Its own may be 0: then it is tried again at once.
        """
        return default if self.backoff is None else self.backoff

    @property
    def observes_old(self) -> bool:
        """Whether it observes the former state of the object (R1)."""
        return (
            not {"old", "diff"}.isdisjoint(self.signature.wants)
            or self.filters.old is not None
            or (
                self.role in (Role.UPDATE, Role.FIELD)
                and self.filters.value is not None
            )
            or any(
                not {"old", "diff"}.isdisjoint(each.wants)
                for each in (self.filters.when, self.filters.value, self.filters.new)
                if isinstance(each, Callback)
            )
        )


def declarer_of(name: str, known: Container[str]) -> str:
    """The id of a known handler, or of the one that declared such a sub-handler.

    >>> declarer_of("create/part", {"create"}), declarer_of("other", {"create"})
    ('create', '')
    """
    while name and name not in known:
        name = name.rpartition("/")[0]
    return name
