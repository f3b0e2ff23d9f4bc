"""The values of a trial: its scene, its limits, and its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.admission.decisions import Decision, Denial
from fnop.core.handlers.declare.roles import BACKGROUND
from fnop.core.handlers.program.program import Program
from fnop.core.operator.step import State
from fnop.core.seam.commands import Say
from fnop.effects import Outcome, Refused
from fnop.effects.values import canonical
from fnop.interpreters.check.state.expectations import Expectation
from fnop.interpreters.check.state.kinds import Site
from fnop.interpreters.cluster import Cluster, empty_cluster
from fnop.interpreters.simulation.actions import Action
from fnop.interpreters.simulation.simulation import CannotFork, SimulatedRun

__all__ = [
    "BOOT_SECONDS",
    "Absence",
    "Asked",
    "Glimpse",
    "Happened",
    "Hold",
    "Kept",
    "Limits",
    "Phase",
    "Refusal",
    "Rejection",
    "Reviewed",
    "Rival",
    "Scene",
    "Unrest",
    "Visit",
    "Write",
    "has_background",
    "line_of",
]

# The virtual seconds that an operator has to become ready.
BOOT_SECONDS = 60.0

Rival = Callable[[dict[str, Any]], Mapping[str, Any] | None]


class Phase(IntEnum):
    """The parts of a trial, in their order."""

    SCRIPT = 0
    HEALED = 1
    RESTARTED = 2
    AGAIN = 3
    LAST = 4  # only if the first restart had a change to handle
    DONE = 5


class Absence(Enum):
    """The reason why the first process does nothing, while the second one may."""

    NONE = "none"
    DEAD = "dead"  # until the faults end
    ASLEEP = "asleep"  # until the other has begun to work


class Limits(Struct, frozen=True):
    """The limits after which a trial is assumed not to settle.

    The trial exceeds them after this number of `turns` within a phase. It also exceeds
    them if only one handler is left that fails with the same error this often in a row:
    unforeseen (`repeats`), or foreseen (`waits`).
    """

    turns: int = 20_000
    repeats: int = 6
    waits: int = 60


class Scene(Struct, frozen=True):
    """The common ground of all trials of a script.

    In `base` the definitions and the given objects exist, and the operator has not
    begun; in `booted` it has, and everything has settled. `rivals` are functions by
    kind (`deployments.apps`). Each is called with every changed object, and returns the
    merge patch of another controller, or None.
    """

    program: Program
    base: SimulatedRun
    booted: SimulatedRun
    script: tuple[Action, ...]
    rivals: Mapping[str, Rival] = {}
    namespace: str = "default"
    expectations: tuple[Expectation, ...] = ()
    former: Program | None = None
    # The cluster before the given objects exist.
    bare: Cluster = empty_cluster()

    def begun(self, *, late: bool) -> SimulatedRun:
        """A run at the beginning of the script; a `late` operator has not begun."""
        if late:
            return self.base.fork()
        try:
            return self.booted.fork()
        except CannotFork:  # it lives in this process: another life begins
            run = self.base.fork()
            run.settle(seconds=BOOT_SECONDS)
            return run


def has_background(program: Program) -> bool:
    """Whether the operator has timers or daemons, which may write at any time."""
    return any(each.role in BACKGROUND for each in program.handlers)


def line_of(say: Say) -> str:
    """A line of the log with its fields, as one text.

    >>> line_of(Say("info", "made", fields=(("size", 3), ("pw", "abc"))))
    'made size=3 pw=abc'
    """
    fields = (
        f"{name}={value if isinstance(value, str) else canonical(value).decode()}"
        for name, value in say.fields
    )
    return " ".join((say.message, *fields))


class Write(Struct, frozen=True):
    """A request of the operator that has changed the cluster.

    The versions of the cluster are those before and after it. `view` is the version of
    the object that the handler has seen last, `uid` is its uid; None if it has not
    looked. `generation` is the generation of the handled object in the handler's view,
    if that object is written.
    """

    site: Site
    before: int
    after: int
    path: str
    view: int | None
    generation: int | None
    subject: str  # the uid of the handled object
    phase: Phase
    body: Any = None
    uid: str | None = None


class Asked(Struct, frozen=True):
    """A request or a call of the operator, sent at a version of the cluster.

    `outcome` is its answer; None if the operator crashed before it.
    """

    site: Site
    version: int
    phase: Phase
    outcome: Outcome | None


class Glimpse(Struct, frozen=True):
    """The time, and the models of external systems, at a version of the cluster."""

    version: int
    wall: float
    calls: Mapping[Any, Any]


class Kept(Struct, frozen=True):
    """The notes of a trial for expectations; without expectations it takes none.

    They are the requests of the operator, and the models at the end of each phase. If
    an expectation holds always, they also have the visible facts of each moment.
    """

    asked: list[Asked]
    models: dict[Phase, Mapping[str, Any]]
    glimpses: list[Glimpse]

    @classmethod
    def nothing(cls) -> Kept:
        """The notes at the beginning."""
        return cls([], {}, [])

    def copy(self) -> Kept:
        """A copy that continues independently."""
        return Kept(self.asked.copy(), self.models.copy(), self.glimpses.copy())


class Reviewed(Struct, frozen=True):
    """A decision of the operator's admission handlers.

    The cluster, the operator's state and the models are from before the write.
    """

    decision: Decision
    cluster: Cluster
    state: State
    calls: Mapping[str, Any]


class Rejection(NamedTuple):
    """A write that the API server itself has refused, while a subject was handled."""

    site: Site
    outcome: Refused
    subject: str


class Refusal(Struct, frozen=True):
    """An action of the user that the cluster has refused, and why.

    `status` is the HTTP status, 0 if it could not become a request; `place` is the
    number of the action. `denials` are the denials of the operator's own handlers.
    `spoilt_by` names its mutations if no handler denies the action, and the cluster
    accepts it without them.
    """

    action: Action
    reason: str
    status: int
    place: int = 0
    denials: tuple[Denial, ...] = ()
    spoilt_by: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the operator's own admission handlers are the reason."""
        return bool(self.denials or self.spoilt_by)

    def __str__(self) -> str:
        remedy = {
            0: "",  # see the reason
            404: "; name what is there by then",
        }.get(self.status, "; let the script do what the cluster takes")
        words = f"the cluster refuses `{self.action}`, without any fault"
        return f"{words}: {self.reason}{remedy}"


class Unrest(Struct, frozen=True):
    """The reason why a phase has not settled; `endless` if something goes on for ever.

    Otherwise only a handler is left that fails again and again, or that `waits` for
    another actor, as its author foresees.
    """

    reason: str
    endless: bool = False
    waits: bool = False


class Visit(Struct, frozen=True):
    """A site that the trial has reached: its turn, and its point in the run.

    `place` is the number of actions that the user has done, `version` the cluster's,
    `step` the operator's by then.
    """

    turn: int
    place: int
    version: int
    site: Site
    step: int = 0


class Happened(Struct, frozen=True):
    """One event in the story of a trial: its time, its lane, and its content.

    `step` is the operator's last one before, `version` the cluster's by then.
    """

    at: float  # virtual seconds since the script's beginning
    lane: str
    what: Any
    step: int = 0
    version: int = 0


class Hold(Struct, frozen=True):
    """A kind whose watch events wait: the end time, and the action that began it."""

    until: str
    since: int
