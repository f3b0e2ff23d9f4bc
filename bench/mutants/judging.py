"""The verdict on a mutant, compared with the verdict on its original operator.

A mutant is killed if it violates a property that the original never violates, in the
benign run or after a single fault, and again under another seed. A mutant that behaves
in all these schedules as the original does is equivalent: no property can kill it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.mutants.mutators import Mutant
from bench.mutants.subjects import WHOLE, Subject, cases_of
from fnop.adapters.common.loading import LoadProblem
from fnop.interpreters.check.campaign.explore import Explorer, Verdict, is_special
from fnop.interpreters.check.properties import judged
from fnop.interpreters.check.properties.evidence import Benign, Seen, Violation, seen_by
from fnop.interpreters.check.state.kinds import Place as At, Schedule, Site, in_words
from fnop.interpreters.check.state.worlds import World

__all__ = ["Outcome", "Subjected", "judge"]

# A mutant that is not found within this number of schedules is missed.
SCHEDULES_MAX = 200
# The number of schedules after the first violation, to see other properties notice.
FURTHER = 15

# Differences of a mutant from the original, the most obvious first.
DIFFERENCES = ("end", "writes", "faults", "")


class Outcome(NamedTuple):
    """The end of a mutant.

    `by` are the properties that kill it, the first one first; `words` describe that.
    `differs` names the difference from the original: "loads" (it does not), "end" (of a
    benign run), "writes" (of a benign run), "faults" (after one), or "" without any.
    """

    subject: str
    mutant: Mutant
    by: tuple[str, ...]
    words: str
    differs: str
    schedules: int


class Place(NamedTuple):
    """A schedule of one of the scripts."""

    script: int
    schedule: Schedule


class Explored:
    """An operator in all scripts, tried schedule by schedule."""

    def __init__(self, subject: Subject, file: Path) -> None:
        self.explorers = [Explorer(each) for each in cases_of(subject, file)]

    def places(self) -> Iterator[Place]:
        """The benign runs, then the single faults of each whole script by turns.

        The special ones are skipped, as they fail no check.
        """
        yield from (Place(number, ()) for number in range(len(self.explorers)))
        of_scripts = [
            [Place(number, e) for e in explorer.singles() if not is_special(e)]
            for number, explorer in enumerate(self.explorers)
            if explorer.case.name in WHOLE
        ]
        for several in itertools.zip_longest(*of_scripts):
            yield from (each for each in several if each is not None)

    def tried(self, place: Place) -> Tried:
        """Run a schedule to its end, and judge it."""
        explorer = self.explorers[place.script]
        benign = explorer.reference.benign
        if not place.schedule:
            seen = benign.seen
        else:
            seen = seen_by(explorer.trial_of(place.schedule).play())
        return Tried(tuple(judged(benign, seen)), seen.world, _works(benign, seen))

    def confirmed(self, place: Place, found: Sequence[Violation]) -> list[Violation]:
        """The violations that another seed shows as well."""
        verdict = Verdict(place.schedule, tuple(found))
        return [*self.explorers[place.script].confirmed(verdict)]


class Tried(NamedTuple):
    """The findings of a schedule.

    `works` counts the writes and the calls of each site. Those of timers, which work as
    often as they are called, count once. Their order is ignored: if it matters, a crash
    between them leads to another end.
    """

    violations: tuple[Violation, ...]
    world: World
    works: Counter[Site]


def _works(benign: Benign, seen: Seen) -> Counter[Site]:
    sites = [each.site for each in seen.trial.journal.writes]
    sites += [
        each.site for each in seen.trial.journal.visits if each.site.place is At.CALL
    ]
    found = [each._replace(nth=0) for each in sites]
    return Counter({*found} if benign.background else found)


class Subjected:
    """A subject, with the behaviour of its operator: the alarms, and the ends.

    An `alarm` is a property that is violated in a script without any mistake: in this
    script it kills no mutant.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.ends: dict[Place, Tried] = {}
        self.alarms: dict[tuple[int, str], str] = {}
        explored = Explored(subject, subject.file)
        unmodelled = [e for each in explored.explorers for e in each.unmodelled]
        if unmodelled:  # no statement about such a run means anything
            raise LookupError(f"{subject.name}: {unmodelled[0]}")
        for place in itertools.islice(explored.places(), SCHEDULES_MAX):
            tried = self.ends[place] = explored.tried(place)
            for each in tried.violations:
                where = (place.script, each.property)
                words = f"{in_words(place.schedule)}: {each.message}"
                self.alarms.setdefault(where, words)

    def news(self, place: Place, tried: Tried) -> list[Violation]:
        """The violations of a mutant's run that are not alarms."""
        return [
            each
            for each in tried.violations
            if (place.script, each.property) not in self.alarms
        ]

    def difference(self, place: Place, tried: Tried) -> str:
        """The difference of a mutant's run from the original's, in one schedule."""
        known = self.ends.get(place)
        if known is None:
            return ""
        if place.schedule:
            return "faults" if known.world != tried.world else ""
        if known.world != tried.world:
            return "end"
        return "writes" if known.works != tried.works else ""


def judge(subjected: Subjected, mutant: Mutant, file: Path) -> Outcome:
    """Try a mutant, which is in a file, until it is killed; then a little more."""
    name = subjected.subject.name
    try:
        explored = Explored(subjected.subject, file)
    except LoadProblem as problem:
        return Outcome(name, mutant, (), str(problem), "loads", 0)
    by: dict[str, str] = {}
    differences, number, until = {""}, 0, SCHEDULES_MAX
    for place in explored.places():
        if number >= until:
            break
        number += 1
        tried = explored.tried(place)
        differences.add(subjected.difference(place, tried))
        news = [e for e in subjected.news(place, tried) if e.property not in by]
        for each in explored.confirmed(place, news) if news else ():
            if not by:
                until = min(until, number + FURTHER)
            words = f"{in_words(place.schedule)}: {each.message}"
            by.setdefault(each.property, words)
    differs = next(each for each in DIFFERENCES if each in differences)
    how = next(iter(by.values()), "")
    return Outcome(name, mutant, tuple(by), how, differs, number)
