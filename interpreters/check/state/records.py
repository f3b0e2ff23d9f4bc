"""The values of a trial: its scene, its limits, and what it writes down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import Any, NamedTuple

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
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = [
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

Rival = Callable[[dict[str, Any]], Mapping[str, Any] | None]


class Phase(IntEnum):
    """The parts of a trial, in their order."""

    SCRIPT = 0
    HEALED = 1
    RESTARTED = 2
    AGAIN = 3
    LAST = 4  # only where the first restart had a change to handle
    DONE = 5


class Absence(Enum):
    """The reason why the first process does nothing, while the second one may."""

    NONE = "none"
    DEAD = "dead"  # until the faults end
    ASLEEP = "asleep"  # until the other has begun to work


class Limits(NamedTuple):
    """When a trial is not going to come to rest.

    That is after so many `turns` within a phase; or where nothing is left but a handler
    that fails with the same error so many times in a row: unforeseen (`repeats`), or
    foreseen (`waits`).
    """

    turns: int = 20_000
    repeats: int = 6
    waits: int = 60


class Scene(NamedTuple):
    """The common ground of all trials of a script.

    In `base` the definitions and the given objects are there, and the operator has not
    begun; in `booted` it has, and all has come to rest. `rivals` are functions by kind
    (`deployments.apps`): called with each object that has changed, they answer the
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
    # The cluster before the given objects were there.
    bare: Cluster = empty_cluster()


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


class Write(NamedTuple):
    """A request of the operator that has changed the cluster.

    The versions of the cluster are those before and after it. `view` is the version of
    the object that the handler has seen last, `uid` is its uid; None if it has not
    looked. `generation` is that of the handled object in the handler's view, if that is
    what is written.
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


class Asked(NamedTuple):
    """A request or a call of the operator, sent at a version of the cluster.

    `outcome` is its answer; None if the operator crashed before it.
    """

    site: Site
    version: int
    phase: Phase
    outcome: Outcome | None


class Glimpse(NamedTuple):
    """The time, and the models of external systems, at a version of the cluster."""

    version: int
    wall: float
    calls: Mapping[Any, Any]


class Kept(NamedTuple):
    """The notes of a trial for expectations; without expectations it takes none.

    They are the requests of the operator, the models at the end of each phase, and what
    is to be seen of each moment, if an expectation holds always.
    """

    asked: list[Asked]
    models: dict[Phase, Mapping[str, Any]]
    glimpses: list[Glimpse]

    @classmethod
    def nothing(cls) -> Kept:
        """The notes at the beginning."""
        return cls([], {}, [])

    def copy(self) -> Kept:
        """The same, which goes on apart."""
        return Kept(self.asked.copy(), self.models.copy(), self.glimpses.copy())


class Reviewed(NamedTuple):
    """A decision of the operator's admission handlers.

    The cluster, the operator's state and the models are those before the write.
    """

    decision: Decision
    cluster: Cluster
    state: State
    calls: Mapping[str, Any]


class Rejection(NamedTuple):
    """A write that the API server itself has refused, in the handling of a subject."""

    site: Site
    outcome: Refused
    subject: str


class Refusal(NamedTuple):
    """An action of the user that the cluster has refused, and why.

    `status` is the HTTP status, 0 where no request could be made of it; `place` is the
    number of the action. `denials` are those of the operator's own handlers, and
    `spoilt_by` names its mutations if none denies it, and the cluster takes the action
    without them.
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
            0: "",  # the reason has it
            404: "; name what is there by then",
        }.get(self.status, "; let the script do what the cluster takes")
        words = f"the cluster refuses `{self.action}`, without any fault"
        return f"{words}: {self.reason}{remedy}"


class Unrest(NamedTuple):
    """Why a phase has not come to rest; `endless` where something goes on for ever.

    Else nothing is left but a handler that fails again and again, or that `waits` for
    somebody else, as its author foresees.
    """

    reason: str
    endless: bool = False
    waits: bool = False


class Visit(NamedTuple):
    """A site that the trial has come to: in which turn, and at what point.

    `place` is the number of actions that the user has done, `version` the cluster's,
    `step` that of the operator by then.
    """

    turn: int
    place: int
    version: int
    site: Site
    step: int = 0


class Happened(NamedTuple):
    """One thing in the story of a trial: when, on which lane, and what.

    `step` is the operator's last one before, `version` the cluster's by then.
    """

    at: float  # virtual seconds since the script's beginning
    lane: str
    what: Any
    step: int = 0
    version: int = 0


class Hold(NamedTuple):
    """A kind whose watch events wait: until when, and since which action."""

    until: str
    since: int
