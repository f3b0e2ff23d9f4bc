"""Figures from runs: medians with ranges, ratios to the hand-written loop, budgets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.cases import FLOOR, FNOP, Case
from bench.trial import Run

CPU_BUDGET = 2.5  # times the hand-written loop
MEMORY_BUDGETS = ((300, 100.0), (1_000, 120.0), (5_000, 160.0))  # up to objects, MB

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Round:
    """One contender in one round: a run with a single object, and one of the case.

    The time of the first is start-up; the rest of a backlog's is the work itself.
    """

    start: Run
    run: Run


def figures(case: Case, round_: Round) -> Figures:
    """The measures of one round, in the order of the report."""
    found = _work if case.work == "backlog" else _live
    measures = found(round_)
    if case.work == "latency":
        delays = round_.run.delays
        of_delays = {f"p{each}, ms": 1000 * quantile(delays, each) for each in (50, 99)}
        measures = {**of_delays, **measures}
    return measures


def _live(round_: Round) -> dict[str, float]:
    run = round_.run
    return {
        "objects/s": run.objects / run.wall,
        "CPU per object, ms": 1000 * run.cpu / run.objects,
        "peak memory, MB": run.peak_mb,
        "writes per object": run.writes / run.objects,
        "Events per object": run.events / run.objects,
    }


def _work(round_: Round) -> dict[str, float]:
    start, run = round_.start, round_.run
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
        "start-up memory, MB": start.peak_mb,
        "peak memory, MB": run.peak_mb,
        "memory per object, KB": 1024 * (run.peak_mb - start.peak_mb) / more,
        "writes per object": run.writes / run.objects,
        "Events per object": run.events / run.objects,
    }


def quantile(ordered: Sequence[float], percent: int) -> float:
    """The value that this part of the values does not exceed.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 50), quantile([1.0, 2.0, 3.0, 4.0], 99)
    (2.0, 4.0)
    """
    return ordered[-(-len(ordered) * percent // 100) - 1]


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
    """fnop against its budgets for a backlog, as far as these results allow it."""
    ours, floor = results.get(FNOP), results.get(FLOOR)
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


def table(results: Mapping[str, Sequence[Figures]], kept: Iterable[Verdict]) -> str:
    """A Markdown table of rounds: a measure per line, a contender per column."""
    budgets = {verdict.measure: str(verdict) for verdict in kept}
    floor = results.get(FLOOR)
    lines = [["", *results], ["---", *("--:" for _ in results)]]
    if budgets:
        lines = [[*lines[0], "budget of fnop"], [*lines[1], "---"]]
    for measure in next(iter(results.values()))[0]:
        cells = [cell(each, floor, measure) for each in results.values()]
        judged = [budgets.get(measure, "")] if budgets else []
        lines.append([measure, *cells, *judged])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(
    rounds: Sequence[Figures], floor: Sequence[Figures] | None, measure: str
) -> str:
    """The median of a measure with its range, and its ratio to the loop's median.

    >>> cell([{"s": 3.0}, {"s": 2.5}, {"s": 4.0}], [{"s": 2.0}], "s")
    '3.00 (2.50-4.00), 1.5 x'
    >>> cell([{"s": 120.0}], None, "s"), cell([{"s": 0.0}], [{"s": 0.0}], "s")
    ('120', '0.00')
    """
    values = [each[measure] for each in rounds]
    text = figure(median(values))
    if len(values) > 1:
        text += f" ({figure(min(values))}-{figure(max(values))})"
    base = median(each[measure] for each in floor) if floor else 0.0
    return f"{text}, {median(values) / base:.1f} x" if base else text


def figure(value: float) -> str:
    """A figure with at least three digits.

    >>> figure(1234.5), figure(12.34), figure(1.234)
    ('1,234', '12.3', '1.23')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
