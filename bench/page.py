"""The page on performance, from the measured figures: `python -m bench.page`.

It writes the tables of `docs/explanation/performance.md`, the picture on it, the table
of streaming lists in `performance-of-loads.md`, and the ratios in the README. The
figures are those of `bench/results.json`, which the
benchmarks write by `--json bench/results.json`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import calls
from bench.__main__ import section_of
from bench.cases import CASES, CONTENDERS, FLOOR, FNOP, OF_STREAMS, ON_FNOP
from bench.instructions import MILLION, SECTION
from bench.process import ROOT
from bench.report import Figures, figure
from bench.servers import CRD, FULL, server_words
from docs.pictures.diagrams import PICTURES, WIDTH, Drawing, Words

RESULTS = ROOT / "bench" / "results.json"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
LOADS = PAGE.with_name("performance-of-loads.md")
README = ROOT / "README.md"
PICTURE = PICTURES / "performance.svg"
NOTHING = "-"
TIMES = "\N{MULTIPLICATION SIGN}"

Result = Mapping[str, Any]  # of a case, or of another measurement
Results = Mapping[str, Any]

NAMES = {
    FLOOR: "hand-written loop",
    FNOP: "fnop",
    "kopf": "Kopf",
    "kopf-chunked": "Kopf, lists in chunks",
    "fnop-streaming": "fnop, streaming lists",
    "kopf-streaming": "Kopf, streaming lists",
    ON_FNOP: "Kopf's operator on fnop",
}
_CPU, _MEMORY = "CPU per object, ms", "peak memory, MB"
_AT_WORK = "CPU per object without start-up, ms"
_USUAL = ("objects/s", _CPU, _AT_WORK, _MEMORY, "writes per object")
# The measures of each case in the table.
SHOWN: Mapping[str, Sequence[str]] = {
    "backlog": ("start-up, s", *_USUAL),
    "backlog-5000": _USUAL,
    "large": ("objects/s", _CPU, _AT_WORK, _MEMORY),
    "edits": ("objects/s", _CPU, "writes per object"),
    "latency": ("p50, ms", "p99, ms", _CPU),
    "children": _USUAL,
    "index": _USUAL,
    "daemons": _USUAL,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A measure of one contender over the rounds of a case."""

    values: Sequence[float]
    base: float | None  # the median of the hand-written loop

    @property
    def median(self) -> float:
        return median(self.values)

    def __str__(self) -> str:
        text = figure(self.median)
        low, high = figure(min(self.values)), figure(max(self.values))
        if low != high:
            text += f" ({low} to {high})"
        if self.base:
            text += f", {self.median / self.base:.1f} {TIMES}"
        return text


def cell(results: Results, case: str, contender: str, measure: str) -> Cell | None:
    """The figures of a cell; None if the contender has not run."""
    rounds: Mapping[str, Sequence[Figures]] = results.get(case, {}).get("rounds", {})
    found = [each[measure] for each in rounds.get(contender, ())]
    if not found:
        return None
    floor = [each[measure] for each in rounds.get(FLOOR, ())]
    is_other = contender != FLOOR and floor
    return Cell(found, median(floor) if is_other else None)


def words_of(result: Result, case: str) -> str:
    """The work of a case, with the numbers that were measured."""
    objects, size = result["objects"], result["size"] / 1000
    return f"{CASES[case].words}: {objects:,} of {size:g} KB"


def _in(results: Results) -> Iterator[str]:
    return (case for case in SHOWN if case in results)


def table(results: Results) -> Iterator[str]:
    """The lines of the table of all cases."""
    yield f"| | {' | '.join(NAMES[each] for each in CONTENDERS)} |"
    yield f"|---|{'--:|' * len(CONTENDERS)}"
    for case in _in(results):
        words = words_of(results[case], case)
        yield f"| **{words}** |{' |' * len(CONTENDERS)}"
        for measure in SHOWN[case]:
            cells = (cell(results, case, each, measure) for each in CONTENDERS)
            shown = (NOTHING if each is None else str(each) for each in cells)
            yield f"| {measure} | {' | '.join(shown)} |"


# The backlog on a server with streaming lists.
STREAMS = section_of("backlog", CRD)


def streams(results: Results) -> Iterator[str]:
    """The lines of the table of streaming lists: a contender per line."""
    found = results.get(STREAMS)
    if found is None:
        yield "Nothing has been measured yet: `make bench-streaming`."
        return
    measures = SHOWN["backlog"]
    yield f"| {words_of(found, 'backlog')} | {' | '.join(measures)} |"
    yield f"|---|{'--:|' * len(measures)}"
    for name in OF_STREAMS:
        cells = [cell(results, STREAMS, name, each) for each in measures]
        shown = (NOTHING if each is None else str(each) for each in cells)
        yield f"| {NAMES[name]} | {' | '.join(shown)} |"
    yield ""
    if is_preliminary(found, "backlog"):
        yield f"{_PRELIMINARY}: the case had too few objects."
        yield ""
    yield f"Measured in {_rounds_of(found)}, on {_machine_of(found, CRD)}."


def instructions(results: Results) -> Iterator[str]:
    """The lines of the table of instructions, in millions."""
    found = results.get(SECTION)
    if found is None:
        return
    names = [each for each in CONTENDERS if each in found["start"]]
    yield f"| instructions, million | {' | '.join(NAMES[each] for each in names)} |"
    yield f"|---|{'--:|' * len(names)}"
    for measure in ("start", "per object"):
        counts = found[measure]
        cells = (
            Cell(
                [counts[each] / MILLION],
                counts[FLOOR] / MILLION if each != FLOOR and FLOOR in counts else None,
            )
            for each in names
        )
        yield f"| {measure} | {' | '.join(map(str, cells))} |"


def parts(results: Results) -> Iterator[str]:
    """The lines of the table of Python calls, by the parts of the program."""
    found = results.get(calls.SECTION)
    if found is None:
        return
    start, each = found["start"], found["per object"]
    all_starts, all_objects = sum(start.values()), sum(each.values())
    yield "| part | calls of the start | calls of an object |"
    yield "|---|--:|--:|"
    for name in sorted(each, key=lambda name: -each[name]):
        shares = start[name] / all_starts, each[name] / all_objects
        yield (
            f"| {name} | {start[name]:,} ({shares[0]:.0%}) "
            f"| {each[name]:,.0f} ({shares[1]:.0%}) |"
        )
    yield f"| all | {all_starts:,} | {all_objects:,.0f} |"


_PRELIMINARY = "**These figures are preliminary**"


def is_preliminary(result: Result, case: str) -> bool:
    """Whether a case was measured with fewer objects than it has."""
    return bool(result["objects"] < CASES[case].objects)


def setting(results: Results) -> Iterator[str]:
    """Sentences about the machine and the versions of each case."""
    machines: dict[str, list[str]] = {}
    rounds: dict[str, list[str]] = {}
    for case in [*SHOWN, SECTION]:
        if case in results:
            machines.setdefault(_machine_of(results[case]), []).append(f"`{case}`")
    for case in _in(results):
        rounds.setdefault(_rounds_of(results[case]), []).append(f"`{case}`")
    if any(is_preliminary(results[case], case) for case in _in(results)):
        yield f"{_PRELIMINARY}: the cases had too few objects."
        yield ""
    yield f"Measured in {_by_case(rounds)}, on {_by_case(machines)}."


def _by_case(found: Mapping[str, list[str]]) -> str:
    """The words that hold for all cases, or each with the cases that it holds for."""
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{words} ({', '.join(names)})" for words, names in found.items())


def _rounds_of(result: Result) -> str:
    rounds = max(map(len, result.get("rounds", {}).values()), default=1)
    return f"{rounds} rounds" if rounds > 1 else "one round"


def _machine_of(result: Result, server: str = FULL) -> str:
    versions = {k: str(v) for k, v in result["setting"].items()}
    cores, version = versions.pop("cores"), versions.pop("server")
    loop = "uvloop" if "uvloop" in versions else "asyncio"
    known = ", ".join(f"{name} {each}" for name, each in versions.items())
    return (
        f"{cores} cores that the API server shares: the loop of {loop}, "
        f"{server_words(server, version)}, {known}"
    )


def expected(results: Results) -> Iterator[str]:
    """The lines of the table for users: what fnop does on that machine."""
    backlog = "backlog-5000" if "backlog-5000" in results else "backlog"
    rows = (
        ("new objects a second", backlog, "objects/s", ""),
        ("edits a second", "edits", "objects/s", ""),
        ("parents a second, with 4 children each", "children", "objects/s", ""),
        ("CPU time of a new object", backlog, _AT_WORK, " ms"),
        ("CPU time of an edit", "edits", _CPU, " ms"),
        ("from a creation to its result, median", "latency", "p50, ms", " ms"),
        ("from a creation to its result, 99 of 100", "latency", "p99, ms", " ms"),
        ("start, until the first result", backlog, "start-up, s", " s"),
        ("memory with one object", backlog, "start-up memory, MB", " MB"),
        (
            "most memory of a backlog, per object",
            backlog,
            "memory per object, KB",
            " KB",
        ),
    )
    yield "| you can expect of fnop | |"
    yield "|---|--:|"
    for words, case, measure, unit in rows:
        if (found := cell(results, case, FNOP, measure)) is not None:
            yield f"| {words} | {figure(found.median)}{unit} |"


# ------------------------------------------------------------------------ the picture

_LEFT, _RIGHT, _BAR, _PITCH, _GAP = 154, 52, 14, 22, 34


def picture(results: Results) -> Drawing:
    """Bars of CPU time and memory in the backlog, for each contender."""
    case = "backlog"
    found = Drawing("performance", f"Costs: {words_of(results[case], case)}")
    y = 18.0
    for measure in (_CPU, _MEMORY):
        cells = {each: cell(results, case, each, measure) for each in CONTENDERS}
        values = {each: c.median for each, c in cells.items() if c is not None}
        found.text(4, y, Words(measure, "b"), anchor="start")
        for name, value in values.items():
            y += _PITCH
            width = (WIDTH - _LEFT - _RIGHT) * value / max(values.values())
            found.text(_LEFT - 8, y + 4, Words(NAMES[name]), anchor="end")
            found.block(_LEFT, y - _BAR / 2, round(width, 1), _BAR)
            found.text(_LEFT + width + 6, y + 4, Words(figure(value)), anchor="start")
            found.sentences.append(f"{NAMES[name]}, {measure}: {figure(value)}.")
        y += _GAP
    found.height = y - _GAP + 16
    return found


# --------------------------------------------------------------------------- the page

_PARTS = {
    "expected": expected,
    "cases": table,
    "setting": setting,
    "instructions": instructions,
    "calls": parts,
}
_PARTS_OF_LOADS = {"streams": streams}
_END = "<!-- end -->"


def page(text: str, results: Results) -> str:
    """The page with its generated parts replaced; raises `ValueError` without one."""
    return _replaced(text, results, _PARTS)


def loads(text: str, results: Results) -> str:
    """The page of other loads with its generated part replaced, likewise."""
    return _replaced(text, results, _PARTS_OF_LOADS)


def _replaced(
    text: str,
    results: Results,
    parts: Mapping[str, Callable[[Results], Iterator[str]]],
) -> str:
    for name, part in parts.items():
        begin, head, rest = text.partition(f"<!-- {name}: generated -->\n")
        _, end, rest = rest.partition(_END)
        if not end:
            raise ValueError(f"the page has no part {name!r}")
        lines = "\n".join(part(results)).strip()
        text = f"{begin}{head}\n{lines}\n\n{_END}{rest}"
    return text


_ROW = re.compile(r"(\| CPU time of an operator, .*? \| \[)[\d.]+(.*? \| )[\d.]+( .*)")


def readme(text: str, results: Results) -> str:
    """The README with the ratios of CPU time in the backlog, unless preliminary."""
    case = "backlog"
    found = [cell(results, case, each, _CPU) for each in (FNOP, "kopf")]
    ratios = [f"{each.median / each.base:.1f}" for each in found if each and each.base]
    if len(ratios) < len(found) or is_preliminary(results[case], case):
        return text
    ours, others = ratios
    return _ROW.sub(rf"\g<1>{ours}\g<2>{others}\g<3>", text)


def main(file: Path = RESULTS) -> int:
    results = json.loads(file.read_text())
    PAGE.write_text(page(PAGE.read_text(), results))
    LOADS.write_text(loads(LOADS.read_text(), results))
    README.write_text(readme(README.read_text(), results))
    PICTURE.write_text(picture(results).svg())
    return 0


if __name__ == "__main__":
    sys.exit(main())
