"""The evidence that properties judge: the benign run, and a finished trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Flag, auto
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.interpreters.check.admission.admitting import Admitting
from fnop.interpreters.check.inputs.input_variation import Heeding
from fnop.interpreters.check.scripts.follow_ups import FollowUp
from fnop.interpreters.check.state.kinds import Trait
from fnop.interpreters.check.state.records import Phase, Write
from fnop.interpreters.check.state.worlds import World, alias_of, world_of
from fnop.interpreters.check.trials.aftermath import Aftermath
from fnop.interpreters.check.trials.differences import Volatile
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.cluster.storage.store import events_after
from fnop.interpreters.simulation.externals import externals_of

__all__ = [
    "Benign",
    "Followed",
    "Judge",
    "Property",
    "Scope",
    "Seen",
    "Violation",
    "handled_kinds",
    "has_struck",
    "made_by",
    "merges",
    "seen_by",
    "skips",
    "tampers",
    "told",
    "value_at",
]


class Violation(NamedTuple):
    """A property that does not hold, and the evidence.

    `details` are lines such as the differences of two worlds. `calls` are sentences on
    the handlers that were called for each edit. `objects` are the aliases of the
    objects that differ, for a remedy that names them.
    """

    property: str
    message: str
    details: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


class Seen(Struct, frozen=True):
    """A finished trial, prepared for the judges.

    `events` are all changes since its beginning; `writes` its operator's writes by the
    versions that they made. `world` is the world after the first restart, `healed` the
    one before it.
    """

    trial: Trial
    events: tuple[StoredEvent, ...]
    writes: Mapping[int, Write]
    world: World
    healed: World

    def alias_of(self, resource: tuple[str, str], found: Mapping[str, Any]) -> str:
        """The name of an object that is the same in each run."""
        return alias_of(resource, found, self.trial.drawn)


# An operator without admission handlers keeps the laws of admission handlers.
NOTHING_ADMITTED = Admitting()


class Followed(Struct, frozen=True):
    """A follow-up of the script, and the trial that it belongs to.

    `waited` are the clusters of `rests` if the user had done nothing instead; they
    exist if the operator has timers or daemons.
    """

    follow_up: FollowUp
    seen: Seen
    waited: tuple[Cluster, ...] = ()

    @property
    def times(self) -> list[float]:
        """The times of `rests`, without the time of the end."""
        rests = self.seen.trial.journal.rests
        return [rests[each].time for each in self._numbers]

    @property
    def rests(self) -> list[Cluster]:
        """The cluster before the follow-up, after each action of it, and at the end."""
        trial = self.seen.trial
        found = [trial.journal.rests[each].cluster for each in self._numbers]
        return [*found, trial.journal.ends[Phase.RESTARTED].cluster]

    @property
    def _numbers(self) -> list[int]:
        """The numbers of actions after which everything rests."""
        trial, length = self.seen.trial, len(self.follow_up.actions)
        since = len(trial.scene.script) - length
        numbers = range(since, since + length + 1)
        return [each for each in numbers if each in trial.journal.rests]


class Benign(Struct, frozen=True):
    """The run without faults, which the others are compared with.

    `handled` are the kinds that the operator has handlers for (`claims.example.com`).
    `created` is the run of a user who directly creates the end state of the script. A
    `straight` script deletes nothing. It ends like `created`, except for objects whose
    names begin like one of `history`.

    `impure` are pure handlers that have asked the world. `unsteady` are numbers in
    status that two benign runs have written differently. `background` is about timers
    and daemons, `aftermath` about the work that continues while the user does nothing,
    `admitting` about the laws of admission handlers. Faults do not strike a script that
    is `calm`. With a `mistake` the user writes a value that the operator does not
    serve, and corrects it.
    """

    seen: Seen
    volatile: Volatile
    handled: frozenset[str]
    background: bool
    created: Seen | None = None
    history: tuple[str, ...] = ()
    impure: tuple[str, ...] = ()
    unsteady: frozenset[tuple[str, str]] = frozenset()
    straight: bool = True
    idle: tuple[str, ...] = ()
    heeding: Heeding = Heeding()
    followed: tuple[Followed, ...] = ()
    aftermath: Aftermath = Aftermath()
    admitting: Admitting = NOTHING_ADMITTED
    calm: bool = False
    mistake: bool = False

    @property
    def fresh(self) -> World | None:
        """The world of a user who directly creates the end state of the script."""
        return None if self.created is None else self.created.world


Judge = Callable[[Benign, Seen], Iterator[Violation]]


class Scope(Flag):
    """The trials that a property is about, if it is not about all of them."""

    EVERYTHING = 0
    # Only runs without faults can violate it.
    FAULTLESS = auto()
    # It is about admission handlers.
    ADMISSION = auto()
    # It looks at the end alone, and not at earlier states.
    END = auto()
    # A user who makes a mistake has to expect violations, until it is corrected.
    MISTAKES = auto()
    # It is about decisions, which can be made again: not about code that acts itself.
    DECISIONS = auto()


class Property(Struct, frozen=True):
    """A property: the function that judges, and its meaning in `words`.

    Properties are judged and reported in the order of their `rank`.
    """

    judge: Judge
    words: str
    rank: int
    scope: Scope = Scope.EVERYTHING

    @property
    def name(self) -> str:
        """The name in options and reports."""
        return self.judge.__name__


def seen_by(trial: Trial) -> Seen:
    """Prepare a finished trial for the judges."""
    end = trial.run.cluster
    events = tuple(events_after(end, trial.journal.beginning.version) or ())
    writes = {
        version: each
        for each in trial.journal.writes
        for version in range(each.before + 1, each.after + 1)
    }
    base, calls = trial.scene.bare, trial.run.calls.models
    before, after = (
        trial.journal.ends[Phase.HEALED].cluster,
        trial.journal.ends[Phase.RESTARTED].cluster,
    )
    drawn = trial.drawn
    world = world_of(after, base, calls, drawn, trial.storage)
    healed = world
    # A restart may act only outside; models by bare names are an empty mapping.
    if before is not after or externals_of(trial.journal.healed.calls):
        models = trial.journal.healed.calls
        healed = world_of(before, base, models, drawn, trial.storage)
    return Seen(trial, events, writes, world, healed)


def handled_kinds(trial: Trial) -> frozenset[str]:
    """The kinds with handlers that are called, as aliases name them."""
    kinds = trial.run.machine.state.survey.kinds
    return frozenset(
        f"{each.resource.plural}.{each.resource.group}".rstrip(".")
        for each in kinds.values()
    )


def made_by(trial: Trial) -> Iterator[str]:
    """The uids of the objects that the operator has created, or adopted."""
    for each in trial.journal.writes:
        if each.site.verb in ("create", "adopt", "apply") and each.body:
            yield str((each.body.get("metadata") or {}).get("uid"))


def has_struck(trial: Trial, traits: Trait) -> bool:
    """Whether a fault with one of these traits has struck."""
    return any(each.kind.has(traits) for each in trial.struck)


def merges(trial: Trial) -> bool:
    """Whether the operator may have seen several changes as one."""
    return has_struck(trial, Trait.MERGES)


def skips(trial: Trial) -> bool:
    """Whether an intermediate state may not have occurred, or not been seen.

    A stuck controller does not act on the operator's requests meanwhile.
    """
    return has_struck(trial, Trait.MERGES | Trait.STOPS_CONTROLLER)


def tampers(trial: Trial) -> bool:
    """Whether another client has changed or deleted the operator's objects."""
    return has_struck(trial, Trait.TAMPERS)


def told(name: str, sentences: Sequence[str]) -> Iterator[Violation]:
    """A violation of a property that lists all of its sentences."""
    if sentences:
        yield Violation(name, sentences[0], tuple(sentences))


def value_at(found: Any, field: tuple[str, ...]) -> Any:
    """The value in nested mappings; None for a missing one.

    >>> value_at({"spec": {"size": 1}}, ("spec", "size"))
    1
    """
    for key in field:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
