"""A write of the handled object: its contents, and the request that is due."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from fnop.core.memory.conditions import Condition
from fnop.core.memory.stored_state import Stored
from fnop.core.state.splitting import Changes
from fnop.core.values.body import Body
from fnop.core.values.finalizers import Duty
from fnop.core.values.table import NOTHING
from fnop.effects import Patch
from fnop.effects.structs import replace

__all__ = ["Contents", "Sent", "Step", "Writing"]


class Contents(Struct, frozen=True):
    """The changes of the handled object that one write makes.

    `after` is the state that is stored once the write is done (None: it stores none).
    `finalizer` is set if the write adds or removes it, and changes nothing else but the
    state. `memory` is the state that this process remembers then, and `ends` means that
    the change is done. `restores` means that the object has lost the state that was
    stored on it.
    """

    patches: Changes = ()
    results: Mapping[str, Any] = NOTHING
    after: Stored | None = None
    memory: Stored | None = None
    ends: bool = False
    finalizer: Duty | None = None
    condition: Condition | None = None
    restores: bool = False

    @property
    def authors(self) -> tuple[str, ...]:
        """The handlers whose changes these are."""
        return tuple(
            dict.fromkeys((*(name for name, _ in self.patches), *self.results))
        )


class Step(Enum):
    """The next request of a write."""

    SEND = "send"
    # The object is read after a conflict, and the write is computed again.
    READ = "read"
    # The object is read to find out whether a request without an answer succeeded.
    VERIFY = "verify"


class Sent(Struct, frozen=True):
    """The last patch that was sent, and the body that it was computed from.

    The `endpoint` is "" or "status". With `more`, another request follows.
    """

    endpoint: str
    patch: Patch
    base: Body
    more: bool


class Writing(Struct, frozen=True):
    """A write of the handled object, under way.

    `then` are the contents of the writes that follow it. `taken` are the endpoints that
    have taken their part; the contents no longer have the patches of those parts. `id`
    is the awaited request. Without one, the next request is due at the monotonic time
    `due`. `moved` means that a request with the state in the status was refused before.
    `unsaid` means the same for the operator's own conditions.
    """

    contents: Contents
    then: tuple[Contents, ...] = ()
    step: Step = Step.SEND
    id: int | None = None
    due: float | None = None
    tries: int = 0
    taken: frozenset[str] = frozenset()
    sent: Sent | None = None
    moved: bool = False
    unsaid: bool = False

    @property
    def parts(self) -> tuple[Contents, ...]:
        """The contents of this write, and of those that follow it."""
        return (self.contents, *self.then)

    @property
    def is_doubtful(self) -> bool:
        """Whether a request may have succeeded, as far as is known."""
        is_sending = self.id is not None and self.step is Step.SEND
        return is_sending or self.step is Step.VERIFY

    def carrying(self, **changes: Any) -> Writing:
        """The write with changed contents."""
        return replace(self, contents=replace(self.contents, **changes))
