"""What the explorer says of a mutant, beside the operator that it was made of.

A mutant is killed where a property is violated that the original never violates, in the
benign run or after a single fault, and again under another seed. One that behaves in
all these schedules as the original does is equivalent: nobody can kill it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.mutants.mutators import Mutant
from bench.mutants.subjects import Subject, cases_of
from fnop.adapters.loading import LoadProblem
from fnop.interpreters.actions import Action
from fnop.interpreters.check.explore import OTHER_START, Explorer, Verdict, prepared
from fnop.interpreters.check.faults import Schedule, in_words
from fnop.interpreters.check.history import no_history
from fnop.interpreters.check.properties import Benign, Seen, Violation, judged, seen_by
from fnop.interpreters.check.trial import Scene
from fnop.interpreters.check.worlds import World
from fnop.interpreters.clock import EPOCH

__all__ = ["Outcome", "Subjected", "judge"]

# What is not found after so many schedules is missed.
SCHEDULES_MAX = 200
# After the first violation so many more are tried: who else notices?
FURTHER = 25


class Outcome(NamedTuple):
    """What has become of a mutant.

    `by` are the properties that kill it, the first one first, `words` how; `differs`
    says where it differs from the original: "loads" (it does not), "end" (of a benign
    run), "writes" (of a benign run), "faults" (after one), or "" where it does not.
    """

    subject: str
    mutant: Mutant
    by: tuple[str, ...]
    words: str
    differs: str
    schedules: int


class Place(NamedTuple):
    """A schedule of one of the scripts.

    With `length` it is the benign run of so many actions of the script, beside that of
    a user who applies the last manifests at once.
    """

    script: int
    schedule: Schedule
    length: int = 0

    def __str__(self) -> str:
        if self.length:
            return f"benign, after {self.length} actions"
        return in_words(self.schedule)


class Explored:
    """An operator in all scripts, tried schedule by schedule."""

    def __init__(self, subject: Subject, file: Path) -> None:
        self.explorers = [Explorer(each) for each in cases_of(subject, file)]

    def places(self) -> Iterator[Place]:
        """The benign runs, then the single faults of each script by turns."""
        yield from (Place(number, ()) for number in range(len(self.explorers)))
        for length in range(2, len(self.explorers[0].case.script) + 1):
            yield Place(0, (), length)
        of_scripts = [
            [Place(number, each) for each in explorer.singles()]
            for number, explorer in enumerate(self.explorers)
        ]
        for several in itertools.zip_longest(*of_scripts):
            yield from (each for each in several if each is not None)

    def tried(self, place: Place) -> Tried:
        """Run a schedule to its end, and judge it."""
        explorer = self.explorers[place.script]
        benign = explorer.reference.benign
        if place.length:
            found = no_history(*_shortened(explorer, place.length))
            return Tried(tuple(found), {}, ())
        if not place.schedule:
            seen = benign.seen
        else:
            seen = seen_by(explorer.trial_of(place.schedule).play())
        return Tried(tuple(judged(benign, seen)), seen.world, _writes(seen))

    def confirmed(self, place: Place, found: Sequence[Violation]) -> list[Violation]:
        """Those of the violations that another seed shows as well."""
        explorer = self.explorers[place.script]
        if place.length:
            again = prepared(explorer.case, seed="2", start=EPOCH + OTHER_START)
            benign, script = _shortened(explorer, place.length)[1:]
            return [*no_history(again, benign, script)]
        return [*explorer.confirmed(Verdict(place.schedule, tuple(found)))]


def _shortened(
    explorer: Explorer, length: int
) -> tuple[Scene, Benign, Sequence[Action]]:
    reference = explorer.reference
    return reference.scene, reference.benign, explorer.case.script[:length]


class Tried(NamedTuple):
    """What a schedule has shown; `writes` are the operator's sites, in their order."""

    violations: tuple[Violation, ...]
    world: World
    writes: tuple[object, ...]


def _writes(seen: Seen) -> tuple[object, ...]:
    return tuple((each.phase, each.site) for each in seen.trial.writes)


class Subjected:
    """A subject, with what its operator does: the alarms, and the ends.

    An `alarm` is a property that is violated in a script though nothing is wrong: in
    this script it kills no mutant.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.ends: dict[Place, Tried] = {}
        self.alarms: dict[tuple[int, int, str], str] = {}
        explored = Explored(subject, subject.file)
        for place in itertools.islice(explored.places(), SCHEDULES_MAX):
            tried = self.ends[place] = explored.tried(place)
            for each in tried.violations:
                where = (place.script, place.length, each.property)
                self.alarms.setdefault(where, f"{place}: {each.message}")

    def news(self, place: Place, tried: Tried) -> list[Violation]:
        """The violations of a mutant's run that are no alarms."""
        return [
            each
            for each in tried.violations
            if (place.script, place.length, each.property) not in self.alarms
        ]

    def difference(self, place: Place, tried: Tried) -> str:
        """Where a mutant's run differs from the original's under the same schedule."""
        known = self.ends.get(place)
        if known is None or place.length:
            return ""
        if place.schedule:
            return "faults" if known.world != tried.world else ""
        if known.world != tried.world:
            return "end"
        return "writes" if known.writes != tried.writes else ""


def judge(subjected: Subjected, mutant: Mutant, file: Path) -> Outcome:
    """Try a mutant, which stands in a file, until it is killed; then a little more."""
    name = subjected.subject.name
    try:
        explored = Explored(subjected.subject, file)
    except LoadProblem as problem:
        return Outcome(name, mutant, (), str(problem), "loads", 0)
    by: dict[str, str] = {}
    differs, number, until = "", 0, SCHEDULES_MAX
    for place in explored.places():
        if number >= until:
            break
        number += 1
        tried = explored.tried(place)
        differs = differs or subjected.difference(place, tried)
        news = [e for e in subjected.news(place, tried) if e.property not in by]
        for each in explored.confirmed(place, news) if news else ():
            if not by:
                until = min(until, number + FURTHER)
            by.setdefault(each.property, f"{place}: {each.message}")
    words = next(iter(by.values()), "")
    return Outcome(name, mutant, tuple(by), words, differs, number)
