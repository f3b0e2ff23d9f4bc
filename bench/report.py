"""Figures from runs: medians, ratios to the hand-written loop, budgets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from bench.trial import Run

FLOOR = "floor"
HELD_TO_BUDGETS = "fnop"
CPU_BUDGET = 2.5  # times the hand-written loop
MEMORY_BUDGETS = ((300, 100.0), (1_000, 120.0), (5_000, 160.0))  # up to objects, MB

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Round:
    """One contender in one round: a run with a single object, one with the backlog.

    The time of the first is start-up; the rest of the second is the work itself.
    """

    start: Run
    backlog: Run


def figures(round_: Round) -> Figures:
    """The measures of one round, in the order of the report."""
    start, run = round_.start, round_.backlog
    more = run.objects - start.objects
    longer = run.wall - start.wall
    per_write = run.write_seconds / run.writes if run.writes else float("nan")
    # The first result was being written before it appeared.
    at_work = run.span + per_write
    return {
        "wall, s": run.wall,
        "objects/s": run.objects / run.wall,
        "objects/s without start-up": more / longer if longer > 0 else float("nan"),
        "objects/s from the first result": more / run.span,
        "API server's time per write, ms": 1000 * per_write,
        "writes under way": run.write_seconds / at_work,
        "operator CPU, s": run.cpu,
        "CPU per object, ms": 1000 * run.cpu / run.objects,
        "CPU per object without start-up, ms": 1000 * (run.cpu - start.cpu) / more,
        "start-up, s": start.wall,
        "start-up CPU, s": start.cpu,
        "peak memory, MB": run.peak_mb,
        "writes per object": run.writes / run.objects,
        "Events per object": run.events / run.objects,
    }


def medians(rounds: Iterable[Figures]) -> Figures:
    """The median of each measure.

    >>> medians([{"wall, s": 3.0}, {"wall, s": 9.0}, {"wall, s": 4.0}])
    {'wall, s': 4.0}
    """
    all_rounds = list(rounds)
    return {name: median(r[name] for r in all_rounds) for name in all_rounds[0]}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A budget, the figure measured against it, and whether it was kept."""

    measure: str
    limit: str
    kept: bool

    def __str__(self) -> str:
        return f"{self.limit}: {'ok' if self.kept else 'MISSED'}"


def verdicts(
    results: Mapping[str, Figures], objects: int, delete_handler: bool
) -> list[Verdict]:
    """fnop against its budgets, as far as these results allow a verdict."""
    ours, floor = results.get(HELD_TO_BUDGETS), results.get(FLOOR)
    if ours is None:
        return []
    writes = 2 if delete_handler else 1
    found = [_at_most("writes per object", ours, writes, f"{writes}")]
    if floor is not None:
        cpu = "CPU per object, ms"
        limit = CPU_BUDGET * floor[cpu]
        found.append(_at_most(cpu, ours, limit, f"≤ {CPU_BUDGET} x floor"))
    memory = next((mb for upto, mb in MEMORY_BUDGETS if objects <= upto), None)
    if memory is not None:
        found.append(_at_most("peak memory, MB", ours, memory, f"≤ {memory:.0f}"))
    return found


def _at_most(measure: str, ours: Figures, limit: float, words: str) -> Verdict:
    return Verdict(measure, words, ours[measure] <= limit)


def table(results: Mapping[str, Figures], kept: Iterable[Verdict]) -> str:
    """A Markdown table: a measure per line, and each contender's ratio to the floor."""
    budgets = {verdict.measure: str(verdict) for verdict in kept}
    floor = results.get(FLOOR, {})
    head = ["", *(f"{name} (x floor)" for name in results), "budget of fnop"]
    lines = [head, ["---", *("--:" for _ in results), "---"]]
    for measure in next(iter(results.values())):
        cells = [_cell(r[measure], floor.get(measure)) for r in results.values()]
        lines.append([measure, *cells, budgets.get(measure, "")])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: float, floor: float | None) -> str:
    """A figure with its ratio.

    >>> _cell(3.0, 2.0), _cell(3.0, None), _cell(0.0, 0.0)
    ('3.00 (1.5)', '3.00', '0.00')
    """
    figure = f"{value:.0f}" if value >= 100 else f"{value:.2f}"
    return f"{figure} ({value / floor:.1f})" if floor else figure
