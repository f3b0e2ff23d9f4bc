"""Traces: the inputs and decisions of handlers, for a recorder.

They are commands that no interpreter executes. A recording with them can show what
another handler would have decided in a handler's place, and which handler has written a
field. Traces refer to what the recording holds anyway: to an object by its uid and its
version, to an answer by the step that it came with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.effects import Effect, Outcome, Patch
from fnop.effects.desired import Desired

__all__ = [
    "Asked",
    "Began",
    "Desires",
    "Ended",
    "Given",
    "Indexed",
    "Seen",
    "Trace",
    "Version",
    "Wrote",
]


class Trace(Struct, frozen=True):
    """Any of the traces: an interpreter has nothing to do."""


class Version(NamedTuple):
    """A version of an object: its kind, its place, and its version."""

    resource: str  # plural.version.group
    namespace: str
    name: str
    uid: str
    version: str

    @property
    def where(self) -> str:
        """`namespace/name`, as in `Subject.label`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Seen(NamedTuple):
    """The state that a handler compares with: digests by scope.

    `old` is a digest of the value itself, in the order of its keys, which a function
    can observe. It is None if the value is unknown now.
    """

    digests: Mapping[str, str]
    old: str | None


class Began(Trace, frozen=True):
    """An attempt of a handler has begun, with these facts.

    `attempt` is its number in the process. `reason` is the reason that the handler
    receives. For a reconciler it is the reason why the author's function is not called.
    `children` are the objects that the handler receives. `line` is a log line: the
    container, the time in nanoseconds, and the text.
    """

    attempt: int
    handler: str
    object: Version | None = None
    reason: str | None = None
    retry: int = 0
    started: float = 0.0
    before: Seen | None = None
    memo: Mapping[str, Any] | None = None
    children: tuple[Version, ...] = ()
    line: tuple[str, int, str] | None = None


class Asked(Trace, frozen=True):
    """An attempt awaits an effect."""

    attempt: int
    effect: Effect


class Given(Trace, frozen=True):
    """An attempt gets the answer to its request.

    It is the outcome that came with this step's input, unless `outcome` is set. With
    `version`, the request is done, and the answer is that version of its object.
    `stopped` is the reason why a daemon is to stop.
    """

    attempt: int
    outcome: Outcome | None = None
    version: str | None = None
    stopped: str | None = None


class Desires(Trace, frozen=True):
    """The author's part of a reconciler has ended: fnop continues for it."""

    attempt: int
    desired: Desired
    plan: tuple[Effect, ...] = ()
    patches: tuple[Patch | None, ...] = ()


class Ended(Trace, frozen=True):
    """The function of an attempt has ended: with a plan, or with a failure.

    `patches` are the changes of its object by the argument `patch`, None for a change
    by a function; `parts` are the sub-handlers that it has declared.
    """

    attempt: int
    plan: tuple[Effect, ...] = ()
    patches: tuple[Patch | None, ...] = ()
    failure: Mapping[str, Any] | None = None
    parts: tuple[str, ...] = ()


class Wrote(Trace, frozen=True):
    """The handlers whose changes are in the request `id`: fields, as JSON pointers.

    Fields that only a function knows are not among them. A later handler has
    overwritten an earlier one's fields. A handler that patches and returns a value
    appears twice.
    """

    id: int
    fields: tuple[tuple[str, tuple[str, ...]], ...]


class Indexed(Trace, frozen=True):
    """An index has these values of an object: pairs of a key and a value.

    `object` is its kind (plural.version.group), its namespace, and its name. In a
    recording, values of an author's own types are `unknown`.
    """

    index: str
    object: tuple[str, str, str]
    values: tuple[tuple[Any, Any], ...] = ()
    unknown: bool = False
