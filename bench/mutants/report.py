"""The report on mutants, in tables and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.mutants.judging import Outcome
from bench.mutants.mutators import OPERATORS

__all__ = ["lines_of", "score_of"]

# The difference of a survivor from its original operator.
_SURVIVES = {
    "end": "only an expectation can tell: another operator, and a consistent one, "
    "whose benign run has another end",
    "writes": "the end is the same; the writes on the way to it are others",
    "faults": "the benign run is the same; the end after a fault is another one",
}


def score_of(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """The numbers of killed mutants, and of all that are not equivalent."""
    counted = [each for each in outcomes if each.differs != "loads"]
    killed = [each for each in counted if each.by]
    return len(killed), len([each for each in counted if each.by or each.differs])


def lines_of(
    outcomes: Sequence[Outcome],
    alarms: Sequence[tuple[str, str]],
    purposes: Sequence[tuple[str, str]] = (),
) -> Iterator[str]:
    """The report, line by line."""
    yield from _by_operator(outcomes)
    yield ""
    yield from _by_property(outcomes)
    yield ""
    yield from _survivors(outcomes)
    yield f"alarms on operators without a mistake: {len(alarms)}"
    for name, alarm in alarms:
        yield f"    {name}: {alarm[:300]}"
    of = ", ".join(sorted({name for name, _ in purposes})) or "none"
    yield f"alarms on operators that fail on purpose ({of}): {len(purposes)}"
    yield from _scores(outcomes)


def _scores(outcomes: Sequence[Outcome]) -> Iterator[str]:
    known = [each for each in outcomes if each.differs != "end"]
    told = [e for e in outcomes if e.differs == "end" and not e.by]
    killed, counted = score_of(outcomes)
    more = _share(killed + len(told), counted)
    yield f"with an expectation of the benign end: {more}"
    rest = _share(killed, counted - len(told))
    yield f"of those that can be told without an expectation: {rest}"
    yield f"of those with the same benign end: {_share(*score_of(known))}"
    yield f"killed by properties alone: {_share(killed, counted)}"


def _share(some: int, several: int) -> str:
    return f"{some} of {several} ({100 * some / max(several, 1):.0f} %)"


_HEAD = (
    f"{'mutation':14} {'mutants':>7} {'killed':>7} {'end':>5} {'writes':>6} "
    f"{'faults':>6} {'equal':>6} {'unloadable':>10}"
)


def _by_operator(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield _HEAD
    for name in (*OPERATORS, "all"):
        found = [each for each in outcomes if name in ("all", each.mutant.operator)]
        killed = [each for each in found if each.by]
        left = Counter(each.differs for each in found if not each.by)
        yield (
            f"{name:14} {len(found):7} {len(killed):7} {left['end']:5} "
            f"{left['writes']:6} {left['faults']:6} {left['']:6} {left['loads']:10}"
        )


def _by_property(outcomes: Sequence[Outcome]) -> Iterator[str]:
    first = Counter(each.by[0] for each in outcomes if each.by)
    kills = Counter(name for each in outcomes for name in each.by)
    only = Counter(each.by[0] for each in outcomes if len(each.by) == 1)
    yield f"{'property':18} {'kills':>6} {'as the first':>13} {'it alone':>9}"
    for name in _names(kills):
        yield f"{name:18} {kills[name]:6} {first[name]:13} {only[name]:9}"


def _names(kills: Counter[str]) -> list[str]:
    from fnop.interpreters.check.properties import PROPERTIES

    known = [each for each in PROPERTIES if each != "matches"]
    return [*known, *sorted(kills.keys() - set(known))]


def _survivors(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for differs, words in _SURVIVES.items():
        found = [e for e in outcomes if not e.by and e.differs == differs]
        yield f"{len(found)} survive: {words}"
        for each in found:
            mutant = each.mutant
            yield (
                f"    {each.subject}:{mutant.line} {mutant.operator}: {mutant.words} "
                f"({each.schedules} schedules)"
            )
