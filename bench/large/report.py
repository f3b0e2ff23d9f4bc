"""Figures from restarts, and their goals."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.report import Figures, Verdict

HELD_TO_GOALS = "fnop"
# The goals apply to this number of objects of this number of bytes.
GOALS_OBJECTS, GOALS_SIZE = 50_000, 2_048
MB = 2**20
GOALS = (
    ("first decision, s", 1.0, "≤ 1 s"),
    ("at rest per object, bytes", 1.6 * 1024, "≤ 1.6 KB"),
    ("peak / at rest", 1.3, "≤ 1.3"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """The measurements of one restart of one contender."""

    contender: str
    objects: int
    first: float  # seconds from the start of the process to a result of a new object
    last: float  # the same for a new object after all others
    cpu: float  # seconds, user and system, until it is at rest
    resident: int  # bytes at rest
    peak: int  # bytes
    received: int | None  # bytes that the server has sent
    others: int  # objects that the operator has written without need


@dataclass(frozen=True, slots=True)
class Handled:
    """The mean sizes of a handled object, in bytes."""

    size: float
    packed: float  # by zlib, each object by itself


@dataclass(frozen=True, slots=True)
class Round:
    """The restart over the whole collection, and the one over a single object."""

    start: Run
    whole: Run
    body: Handled


def figures(found: Round) -> Figures:
    """The measures of a round, in the order of the report.

    >>> one = Run("fnop", 1, 0.5, 0.5, 0.4, 50 * MB, 50 * MB, None, 0)
    >>> all_of_them = Run("fnop", 1001, 0.5, 2.0, 1.4, 51 * MB, 60 * MB, None, 0)
    >>> found = figures(Round(one, all_of_them, Handled(2_048, 900)))
    >>> found["at rest per object, bytes"]
    1048.576
    """
    start, run = found.start, found.whole
    more = run.objects - start.objects
    held = (run.resident - start.resident) / more
    received = {} if run.received is None else {"received, MB": run.received / MB}
    return {
        "first decision, s": run.first,
        "first decision of a single object, s": start.first,
        "last decision, s": run.last,
        "operator CPU, s": run.cpu,
        "CPU per object without start-up, µs": 1e6 * (run.cpu - start.cpu) / more,
        "at rest, MB": run.resident / MB,
        "at rest with a single object, MB": start.resident / MB,
        "at rest per object, bytes": held,
        "at rest per byte of an object": held / found.body.size,
        "peak memory, MB": run.peak / MB,
        "peak per object, bytes": (run.peak - start.resident) / more,
        "peak / at rest": run.peak / run.resident,
        "a handled object, bytes": found.body.size,
        "the same packed by zlib, bytes": found.body.packed,
        **received,
        "needless writes": float(run.others),
    }


def verdicts(results: Mapping[str, Figures]) -> list[Verdict]:
    """fnop against its goals, if it has run.

    >>> slow = {"first decision, s": 2.0, "at rest per object, bytes": 900.0}
    >>> found = verdicts({"fnop": {**slow, "peak / at rest": 1.1}})
    >>> [str(each) for each in found]
    ['≤ 1 s: MISSED', '≤ 1.6 KB: ok', '≤ 1.3: ok']
    """
    ours = results.get(HELD_TO_GOALS)
    if ours is None:
        return []
    return [
        Verdict(measure, words, ours[measure] <= limit)
        for measure, limit, words in GOALS
    ]
