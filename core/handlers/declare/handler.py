"""Handlers as data: the role, the signature, and the options of each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping
from typing import Any, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from fnop.core.api.resources import Resource, Selector
from fnop.core.handlers.declare.filters import Callback, Filters
from fnop.core.handlers.declare.forms import Signature
from fnop.core.handlers.declare.log_selection import LogSelection
from fnop.core.handlers.declare.roles import ROLES, Finalizer, Role, RoleRule
from fnop.core.handlers.declare.schedule import Schedule
from fnop.core.handlers.declare.typed import Typed, typed
from fnop.core.handlers.declare.webhook import Webhook
from fnop.core.values.backoff import Backoff
from fnop.core.values.callables import definition_of
from fnop.core.values.diff import Path
from fnop.core.values.errors import ErrorsMode, as_unicode
from fnop.core.values.table import Table
from fnop.effects.structs import derived

__all__ = ["Handler", "declarer_of"]


class Handler(Struct, frozen=True, eq=False):
    """One declared handler; durations are in seconds."""

    id: str
    fn: Callable[..., Any]
    role: Role
    signature: Signature
    selector: Selector | None = None
    filters: Filters = Filters()
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
    # The importable name of an impure handler (R9); "" for others.
    function: str = ""
    parent: str = ""
    # It is noted on its object before its first effect on any other object.
    write_ahead: bool = False
    cancellation_backoff: float | None = None
    cancellation_timeout: float | None = None
    # The kinds that a reconciler owns: first by its own words for them, then, once they
    # are known, the served kinds.
    owns: tuple[tuple[str, Selector], ...] = ()
    owned: Mapping[str, Resource] = msgspec.field(default_factory=Table)
    resync: float | None = None
    # The kind whose objects a mapping names; "" for other handlers.
    to: str = ""
    # For handlers of changes of the cluster's kinds: the kinds that they select; None
    # means all.
    about: Selector | None = None
    # For handlers of an unreachable API server: the least seconds that this must last.
    after: float = 0.0
    # For admission handlers only.
    webhook: Webhook | None = None
    # For log handlers only.
    log: LogSelection | None = None
    # The path of the index entries that it observes instead of the object. And the id
    # of the handler that it calls again because of them.
    entries: Path = ()
    repeats: str = ""
    # The other indices that an index function takes: it is called when they are known.
    needs: tuple[str, ...] = ()
    # The author's function if `fn` calls it outside; else it is `declared`.
    author: Callable[..., Any] | None = None
    # Derived from these, since they are read all the time.
    rule: RoleRule = derived()
    """The row of its role in the table."""
    takes_all: bool = derived()
    """Whether it is for every object of its kinds."""
    typed: Typed | None = derived()
    """The arguments that are read as the author's classes, if there are any."""

    def __post_init__(self) -> None:
        force_setattr(self, "rule", ROLES[self.role])
        takes_all = self.owner is None and self.filters.is_trivial
        force_setattr(self, "takes_all", takes_all)
        reads = typed(self.declared) if self.rule.is_about_objects else None
        force_setattr(self, "typed", reads)

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the author's function; raise `Unfit` for an object of another form."""
        if self.typed is not None:
            arguments = self.typed.read(arguments)
        return self.fn(**arguments)

    def reads(self, name: str) -> bool:
        """Whether an argument is an object of one of the author's classes."""
        return self.typed is not None and name in self.typed.readers

    @property
    def label(self) -> str:
        """The handler as log lines name it: its role and its id."""
        return f"{self.role.value} handler {self.id}"

    @property
    def definition(self) -> tuple[str, int]:
        """The file and the line of the author's function; "" and 0 if unknown."""
        return definition_of(self.author or self.declared)

    @property
    def place(self) -> str:
        """The place of the author's code, such as `operator.py:12`; or ""."""
        file, line = self.definition
        name = as_unicode(file.rpartition("/")[2])
        return f"{name}:{line}" if file else ""

    @property
    def declared(self) -> Callable[..., Any]:
        """The author's function, which may be called within one of fnop's functions."""
        if isinstance(self.fn, Within):
            declared: Callable[..., Any] = self.fn.args[0]
            return declared
        return self.fn

    @property
    def holds(self) -> bool:
        """Whether the finalizer keeps its objects until it is done with them."""
        match self.rule.finalizer:
            case Finalizer.NEVER:
                return False
            case Finalizer.UNLESS_OPTIONAL:
                return not self.optional
            case Finalizer.UNLESS_DECLINED | Finalizer.IF_ASKED:
                return self.finalizer
            case never:
                assert_never(never)

    @property
    def field(self) -> Path:
        return self.filters.field

    @property
    def result_id(self) -> str:
        """The name under which its result is kept."""
        return self.repeats or self.id

    @property
    def scope(self) -> Path:
        """The path of the state whose changes lead to its call."""
        return self.entries or self.filters.field

    def backoff_or(self, default: float | Backoff) -> float | Backoff:
        """The wait after an arbitrary error: its own `backoff=`, or else the default.

        Its own may be 0: then fnop retries at once.
        """
        return default if self.backoff is None else self.backoff

    @property
    def observes_old(self) -> bool:
        """Whether it observes the previous state of the object (R1)."""
        return (
            not {"old", "diff"}.isdisjoint(self.signature.wants)
            or self.filters.old is not None
            or (self.rule.compares and self.filters.value is not None)
            or any(
                not {"old", "diff"}.isdisjoint(each.wants)
                for each in (self.filters.when, self.filters.value, self.filters.new)
                if isinstance(each, Callback)
            )
        )


class Within(functools.partial[Any]):
    """A function of fnop that calls the author's function, its first argument."""


def declarer_of(name: str, known: Container[str]) -> str:
    """The id of a known handler, or of the handler that declared this sub-handler.

    >>> declarer_of("create/part", {"create"}), declarer_of("other", {"create"})
    ('create', '')
    """
    while name and name not in known:
        name = name.rpartition("/")[0]
    return name
