"""One attempt of one handler: its phase, what it waits for, and what it has done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fnop.core.children.synchronise import Synchronised
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Journal
from fnop.core.memory.progress import Failure
from fnop.core.state.in_flight import InFlight
from fnop.core.values.body import Key
from fnop.core.values.table import NOTHING
from fnop.effects import Again, Effect, Patch, Return
from fnop.effects.structs import replace

__all__ = ["Conversation", "Done", "Invocation", "Pause", "Performance"]


class Conversation(Struct, frozen=True):
    """The author's code runs: it has asked for an effect, or can be called now.

    `journal` has the answers so far, and `length` is their size in bytes. `asked` is
    the effect without an answer. `gathered` are the sub-handlers that it has awaited
    itself. With `keeps`, the author's part has ended: requests from now on keep the
    children.
    """

    journal: Journal = ()
    length: int = 0
    asked: Effect | None = None
    gathered: frozenset[str] = frozenset()
    keeps: bool = False

    @property
    def has_begun(self) -> bool:
        """Whether the author's code was called: it has an answer, or waits for one."""
        return bool(self.journal) or self.asked is not None


class Performance(Struct, frozen=True):
    """The author's code has ended, and its plan is performed.

    The first effect of the `plan` is the next one. `parts` are the sub-handlers that it
    has declared and not awaited. `synchronised` is the outcome of a reconciler's
    children; None if it did not desire any.
    """

    plan: tuple[Effect, ...] = ()
    patches: tuple[Patch | Transform, ...] = ()
    result: Return | None = None
    again: Again | None = None
    failure: Failure | None = None
    parts: frozenset[str] = frozenset()
    synchronised: Synchronised | None = None


class Pause(Struct, frozen=True):
    """A wait until a monotonic time; without one, for a stop or for sub-handlers."""

    until: float | None = None


class Done(Struct, frozen=True):
    """The effects of an attempt so far.

    `children` is the number of adopted ones. `created` are the objects that it has
    created, by key, with the digests of the requests. `acts` means that it has asked
    for an effect: a failure may leave work half done. It has requeued the object
    `itself`, or `others`.
    """

    children: int = 0
    created: Mapping[Key, str] = NOTHING
    acts: bool = False
    requeues_itself: bool = False
    requeues_others: bool = False


class Invocation(Struct, frozen=True):
    """One attempt of one handler.

    It waits for a request or a time, or can continue now. `stopped` is the reason why a
    daemon was asked to stop, and `patience` the end of its remaining time. `cancelled`
    means that its coroutine was cancelled, and may tidy up until then. `was_asked`
    means that a reconciler had requeued the object before the call.
    """

    serial: int
    situation: Situation
    phase: Conversation | Performance = Conversation()
    awaits: InFlight | Pause | None = None
    done: Done = Done()
    deadline: float | None = None
    stopped: str = ""
    patience: float | None = None
    cancelled: bool = False
    was_asked: bool = False

    @property
    def handler(self) -> Handler:
        return self.situation.handler

    @property
    def in_flight(self) -> InFlight | None:
        """The effect whose answer it waits for."""
        awaits = self.awaits
        return awaits if isinstance(awaits, InFlight) else None

    @property
    def wake(self) -> float | None:
        """The monotonic time when its pause ends."""
        awaits = self.awaits
        return awaits.until if isinstance(awaits, Pause) else None

    @property
    def asked(self) -> Effect | None:
        """The effect whose answer the author's code waits for."""
        phase = self.phase
        return phase.asked if isinstance(phase, Conversation) else None

    @property
    def ready(self) -> bool:
        """Whether it can continue now."""
        return self.awaits is None

    @property
    def waits(self) -> bool:
        """Whether it waits for something that may take long (R14)."""
        awaits = self.awaits
        return awaits.lasts if isinstance(awaits, InFlight) else awaits is not None

    @property
    def due(self) -> float | None:
        """The monotonic time when it continues; None if only an answer continues it."""
        awaits = self.awaits
        pause = awaits.due if isinstance(awaits, InFlight) else self.wake
        moments = (pause, self.deadline, self.patience)
        return min((each for each in moments if each is not None), default=None)

    @property
    def performance(self) -> Performance:
        """The end of its author's code; only an attempt that ends has one."""
        assert isinstance(self.phase, Performance)
        return self.phase

    @property
    def failure(self) -> Failure | None:
        """The failure that it has ended with."""
        phase = self.phase
        return phase.failure if isinstance(phase, Performance) else None

    def acting(self) -> Invocation:
        """The invocation that has asked for an effect."""
        return self if self.done.acts else self.doing(acts=True)

    def doing(self, **changes: Any) -> Invocation:
        """The invocation with more effects done."""
        return replace(self, done=replace(self.done, **changes))
