"""The options of each decorator, as types.

Type checkers check calls of the decorators against them. So does registration, which
reads their names (`options_of`). Durations are in seconds; None has the same meaning as
an omitted option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Required, TypeAlias, TypedDict

from fnop.core.api.resources import Everything, Resource
from fnop.core.handlers.declare.filters import Presence
from fnop.core.handlers.declare.log_selection import Begin
from fnop.core.handlers.declare.signatures import JSON, ObjectCallback, ValueCallback
from fnop.core.handlers.declare.webhook import MatchPolicy, Operation
from fnop.core.values.backoff import Backoff
from fnop.core.values.errors import ErrorsMode

__all__ = [
    "ActivityOptions",
    "AdmissionOptions",
    "Collector",
    "CreateOptions",
    "DaemonOptions",
    "DeleteOptions",
    "EventOptions",
    "FieldOptions",
    "IndexOptions",
    "KindOptions",
    "LogOptions",
    "LoginOptions",
    "MapOptions",
    "ProbeOptions",
    "ReachOptions",
    "ReconcileOptions",
    "ResumeOptions",
    "SubhandlerOptions",
    "TimerOptions",
    "UpdateOptions",
    "Word",
    "options_of",
]

# A word of up to three that name a kind, or EVERYTHING. Or a class that
# `fnop.definition` has made a kind, or a function of each kind.
Word: TypeAlias = str | Everything | type[Any] | Callable[[Resource], bool]
# The values that filters compare with. A function of the value may take the object's
# arguments, too; then it ends with `**_`.
ValueFunction: TypeAlias = Callable[[Any], bool] | ValueCallback
# A function from an object to the index keys that hold its entries.
KeyFunction: TypeAlias = ObjectCallback[Any]
Metadata: TypeAlias = Mapping[str, str | Presence | ValueFunction]
Wanted: TypeAlias = JSON | Presence | ValueFunction


class Collector(Protocol):
    """The collector of declared handlers: a `fnop.Registry`."""

    @property
    def indices(self) -> tuple[str, ...]:
        """The names of the indices declared so far."""
        ...

    def add(self, handler: Any) -> None:
        """Register a handler; raise `RegistrationError` for one that cannot work."""
        ...


class _General(TypedDict, total=False):
    id: str | None
    param: Any
    registry: Collector | None


class _Outside(TypedDict, total=False):
    impure: bool


class _Retrying(TypedDict, total=False):
    errors: ErrorsMode | None
    timeout: float | None
    retries: int | None
    backoff: float | Backoff | None


class KindOptions(TypedDict, total=False):
    group: str | None
    version: str | None
    kind: str | None
    plural: str | None
    singular: str | None
    shortcut: str | None
    category: str | None


class _Matching(TypedDict, total=False):
    labels: Metadata | None
    annotations: Metadata | None
    when: ObjectCallback[bool] | None
    value: Wanted


class _OfField(TypedDict, total=False):
    field: str | Sequence[str] | None


class _Sides(TypedDict, total=False):
    old: Wanted
    new: Wanted


class _Owned(TypedDict, total=False):
    owner: Word | tuple[Word, ...] | None


class _Selecting(TypedDict, total=False):
    fields: Metadata | None


class _Object(_General, KindOptions, _Matching, _Selecting, _Owned, total=False):
    pass


class _Stopping(TypedDict, total=False):
    initial_delay: float | ObjectCallback[float] | None
    finalizer: bool
    cancellation_backoff: float | None
    cancellation_timeout: float | None


class ActivityOptions(_General, _Outside, _Retrying, total=False):
    pass


class ReachOptions(ActivityOptions, total=False):
    after: float | None


class LoginOptions(_General, _Retrying, total=False):
    pass


class ProbeOptions(_General, total=False):
    timeout: float | None


class CreateOptions(_Object, _Outside, _Retrying, _OfField, total=False):
    pass


class _Marking(TypedDict, total=False):
    write_ahead: bool


class _Requeued(TypedDict, total=False):
    requeue_on: str | Callable[..., Any] | Mapping[Any, KeyFunction] | None


class UpdateOptions(CreateOptions, _Sides, _Marking, _Requeued, total=False):
    pass


class FieldOptions(
    _Object, _Outside, _Retrying, _Sides, _Marking, _Requeued, total=False
):
    field: Required[str | Sequence[str]]


class DeleteOptions(CreateOptions, total=False):
    optional: bool


class ResumeOptions(CreateOptions, total=False):
    deleted: bool


class SubhandlerOptions(_Outside, _Retrying, _Matching, _OfField, _Sides, total=False):
    id: str | None
    param: Any


class EventOptions(_Object, _Outside, _OfField, total=False):
    pass


class LogOptions(_Object, _Outside, _OfField, total=False):
    container: str | Sequence[str] | None
    regex: str | re.Pattern[str] | None
    since: Begin | ObjectCallback[Begin | None] | None
    rate: float | None
    multiline: bool | str | re.Pattern[str] | None


class IndexOptions(_Object, _OfField, total=False):
    errors: ErrorsMode | None


class ReconcileOptions(_Object, _Retrying, _OfField, total=False):
    owns: Word | Sequence[Word]
    resync: float | None


class MapOptions(_Object, _OfField, total=False):
    to: Required[Word]


class AdmissionOptions(
    _General, KindOptions, _Matching, _OfField, _Outside, total=False
):
    operations: Sequence[Operation] | None
    operation: Operation | None
    subresource: str | None
    persistent: bool | None
    side_effects: bool | None
    ignore_failures: bool | None
    timeout: float | None
    match_policy: MatchPolicy | None
    match_conditions: str | Sequence[str] | Mapping[str, str] | None
    namespace_selector: Mapping[str, Any] | None
    object_selector: Mapping[str, Any] | None
    reinvocation: bool
    deleted: bool
    own_writes: bool
    ratcheting: bool


class DaemonOptions(CreateOptions, _Stopping, total=False):
    pass


class TimerOptions(DaemonOptions, total=False):
    interval: float | ObjectCallback[float] | None
    sharp: bool
    idle: float | None
    cron: str | None


def options_of(declared: Any) -> frozenset[str]:
    """The names of a decorator's options.

    >>> sorted(options_of(ActivityOptions))[:4]
    ['backoff', 'errors', 'id', 'impure']
    """
    found: frozenset[str] = declared.__optional_keys__ | declared.__required_keys__
    return found
