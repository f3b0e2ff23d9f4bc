"""The page on performance shows the committed figures, in tables and a picture."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bench import calls
from bench.cases import CASES
from bench.instructions import SECTION
from bench.page import (
    LOADS,
    PAGE,
    PICTURE,
    README,
    RESULTS,
    SHOWN,
    STREAMS,
    TIMES,
    instructions,
    loads,
    page,
    parts,
    picture,
    readme,
    setting,
    streams,
    table,
)

SETTING = {"python": "3.11.7", "server": "v1.20.2", "kopf": "1.45.2", "cores": 2}


def results(**cases: dict[str, list[float]]) -> dict[str, Any]:
    """Results in which each measure of a contender has these values."""
    measures = {each for shown in SHOWN.values() for each in shown}
    return {
        case.replace("_", "-"): {
            "objects": 1000,
            "size": 1300,
            "setting": SETTING,
            "rounds": {
                name: [dict.fromkeys(measures, value) for value in values]
                for name, values in contenders.items()
            },
        }
        for case, contenders in cases.items()
    }


def test_the_page_shows_the_committed_figures() -> None:
    """If it fails: make bench-page."""
    committed = json.loads(RESULTS.read_text())
    text = PAGE.read_text()
    assert page(text, committed) == text
    assert loads(LOADS.read_text(), committed) == LOADS.read_text()
    assert picture(committed).svg() == PICTURE.read_text()
    assert readme(README.read_text(), committed) == README.read_text()


def test_all_cases_are_shown() -> None:
    assert [*SHOWN] == [*CASES]


def test_a_cell_has_its_range_and_its_ratio() -> None:
    found = results(backlog={"floor": [1.0, 2.0, 3.0], "fnop": [3.0, 2.9, 3.5]})
    lines = [*table(found)]
    assert lines[0] == ("| | hand-written loop | fnop | Kopf | Kopf, lists in chunks |")
    assert "| CPU per object, ms | 2.00 (1.00 to 3.00) | " in lines[5]
    assert f"| 3.00 (2.90 to 3.50), 1.5 {TIMES} | - | - |" in lines[5]


def test_who_has_not_run_has_no_figure() -> None:
    lines = [*table(results(children={"fnop": [3.0], "kopf": [5.0]}))]
    assert "| objects/s | - | 3.00 | 5.00 | - |" in lines


def test_streaming_lists_have_a_contender_per_line() -> None:
    found = results(backlog_crd={"floor": [1.0], "kopf-streaming": [5.0, 6.0, 7.0]})
    assert [*found] == [STREAMS]
    head, _, *lines = streams(found)
    assert head.startswith(
        "| a backlog of new objects: 1,000 of 1.3 KB | start-up, s |"
    )
    shown = f"6.00 (5.00 to 7.00), 6.0 {TIMES}"
    assert f"| Kopf, streaming lists |{f' {shown} |' * 6}" in lines
    assert f"| Kopf's operator on fnop |{' - |' * 6}" in lines
    assert "in 3 rounds" in lines[-1]
    assert "an API server of custom kinds v1.20.2" in lines[-1]


def test_streaming_lists_with_few_objects_are_preliminary() -> None:
    found = results(backlog_crd={"fnop": [1.0]})
    assert "preliminary" not in " ".join(streams(found))
    found[STREAMS]["objects"] = 30
    assert "preliminary" in " ".join(streams(found))


def test_streaming_lists_do_not_change_the_other_page() -> None:
    one = results(backlog={"fnop": [1.0]})
    both = results(backlog={"fnop": [1.0]}, backlog_crd={"fnop": [9.0]})
    assert [*table(both)] == [*table(one)]
    assert [*setting(both)] == [*setting(one)]


def test_instructions_are_shown_in_millions() -> None:
    counts = {
        "start": {"floor": 1_000_000_000, "fnop": 2_000_000_000},
        "per object": {"floor": 1_000_000.0, "fnop": 2_500_000.0},
    }
    lines = [*instructions({SECTION: counts})]
    assert f"| start | 1,000 | 2,000, 2.0 {TIMES} |" in lines
    assert f"| per object | 1.00 | 2.50, 2.5 {TIMES} |" in lines


def test_cases_of_other_settings_are_named() -> None:
    both = results(edits={"fnop": [1.0]}, latency={"fnop": [1.0]})
    (one,) = setting(both)
    assert "`edits`" not in one
    both["edits"]["setting"] = {**SETTING, "cores": 64}
    (one,) = setting(both)
    assert one.count("(`") == 2


def test_figures_of_few_objects_are_preliminary() -> None:
    found = results(backlog={"fnop": [1.0]})
    assert "preliminary" not in " ".join(setting(found))
    found["backlog"]["objects"] = 30
    assert "preliminary" in " ".join(setting(found))


def test_the_readme_has_the_ratios_of_a_full_measurement() -> None:
    found = results(backlog={"floor": [1.0], "fnop": [1.5], "kopf": [7.0]})
    row = next(each for each in README.read_text().splitlines() if "CPU time" in each)
    shown = readme(row, found)
    assert [*re.findall(r"([\d.]+) \S", shown)] == ["1.5", "7.0"]
    assert "](docs/explanation/performance.md)" in shown
    found["backlog"]["objects"] = 30
    assert readme(row, found) == row


def test_calls_are_shares_of_all() -> None:
    counts = {"start": {"core": 100, "HTTP": 300}, "per object": {"core": 9, "HTTP": 1}}
    lines = [*parts({calls.SECTION: counts})]
    assert "| core | 100 (25%) | 9 (90%) |" in lines
    assert lines[-1] == "| all | 400 | 10 |"


def test_a_built_in_function_counts_for_its_caller() -> None:
    core = ("/fnop/core/step.py", 1, "step")
    stats = {
        core: (7, 7, 0.0, 0.0, {}),
        ("~", 0, "<built-in len>"): (3, 3, 0.0, 0.0, {core: (3, 3, 0.0, 0.0)}),
    }
    found = calls.calls_in(stats)
    assert {name: count for name, count in found.items() if count} == {
        "core: decisions": 10
    }


def test_a_longer_bar_costs_more() -> None:
    found = picture(results(backlog={"floor": [1.0], "fnop": [2.0], "kopf": [4.0]}))
    widths = [float(each) for each in re.findall(r'"bar".*?width="(.*?)"', found.svg())]
    cpu, memory = widths[:3], widths[3:]
    assert cpu == pytest.approx([max(cpu) / 4, max(cpu) / 2, max(cpu)], abs=0.1)
    assert memory == cpu


def test_a_page_without_the_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="no part"):
        page("# Performance\n", results(backlog={"fnop": [1.0]}))
