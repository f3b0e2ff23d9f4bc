"""The benchmark's pure parts: what it counts, computes and judges."""

import asyncio
import doctest
from collections.abc import AsyncIterator
from types import ModuleType

import pytest

from bench import __main__ as command, floor, metrics, process, report, workload
from bench.client import Json
from bench.report import Round, figures, medians, table, verdicts
from bench.trial import Run

COUNTERS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="benchobjects",verb="PATCH"} 7
apiserver_request_total{code="409",resource="benchobjects",verb="PUT"} 2
apiserver_request_total{code="200",resource="benchobjects",verb="WATCH"} 50
apiserver_request_total{code="201",resource="events",verb="POST"} 1.2e+01
apiserver_request_total{code="200",resource="leases",verb="PUT"} 99
apiserver_request_duration_seconds_count{resource="benchobjects",verb="PATCH"} 9
apiserver_request_duration_seconds_sum{resource="benchobjects",verb="PATCH"} 1.5
apiserver_request_duration_seconds_sum{resource="benchobjects",verb="PUT"} 0.25
apiserver_request_duration_seconds_sum{resource="benchobjects",verb="WATCH"} 290
apiserver_request_duration_seconds_sum{resource="events",verb="POST"} 3
"""


def run(name: str, objects: int, wall: float, cpu: float, mb: float = 50.0) -> Run:
    """A run in which each write takes the server 100 ms; with start-up of 500 ms."""
    return Run(
        name,
        objects,
        wall,
        span=wall - 0.5,
        cpu=cpu,
        peak_mb=mb,
        writes=objects,
        events=0,
        write_seconds=0.1 * objects,
    )


def result(name: str, cpu: float, mb: float = 50.0) -> report.Figures:
    return figures(Round(run(name, 1, 0.5, 0.4, mb), run(name, 1000, 4.0, cpu, mb)))


@pytest.mark.parametrize("module", [command, process, report, workload])
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_only_writes_count_and_refused_ones_too() -> None:
    assert metrics.parse(COUNTERS) == metrics.Writes(objects=9, events=12, seconds=1.75)


def test_start_up_is_what_a_single_object_takes() -> None:
    found = figures(Round(run("fnop", 1, 0.5, 0.4), run("fnop", 1001, 4.5, 2.4)))
    assert found["CPU per object without start-up, ms"] == pytest.approx(2.0)
    assert found["objects/s without start-up"] == pytest.approx(250.0)
    assert found["start-up, s"] == 0.5
    assert found["writes per object"] == 1.0


def test_who_keeps_the_server_as_busy_waits_for_the_server() -> None:
    """As many writes under way (Little's law): the rest is the server's time."""
    found = figures(Round(run("fnop", 1, 0.5, 0.4), run("fnop", 1001, 10.4, 2.4)))
    assert found["objects/s from the first result"] == pytest.approx(1000 / 9.9)
    assert found["API server's time per write, ms"] == pytest.approx(100.0)
    assert found["writes under way"] == pytest.approx(100.1 / 10.0)


async def test_the_span_is_from_the_first_result_to_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter((3.0, 4.0, 7.0))
    monkeypatch.setattr(workload, "now", lambda: next(clock))
    monkeypatch.setattr(workload, "QUIET", 0.0)

    async def stream() -> AsyncIterator[Json]:
        for name, body in (
            ("a", NEW),
            ("a", DONE),
            ("b", DONE),
            ("a", DONE),
            ("c", DONE),
        ):
            yield {**body, "metadata": {"name": name}}
        await asyncio.Event().wait()

    assert await workload.all_handled(stream(), 3) == workload.Results(3.0, 7.0)


def test_medians_are_taken_measure_by_measure() -> None:
    rounds = [{"a": 1.0, "b": 30.0}, {"a": 2.0, "b": 10.0}, {"a": 9.0, "b": 20.0}]
    assert medians(rounds) == {"a": 2.0, "b": 20.0}


@pytest.mark.parametrize(("cpu", "kept"), [(2.5, True), (2.6, False)])
def test_cpu_is_judged_by_the_hand_written_loop(cpu: float, kept: bool) -> None:
    results = {"floor": result("floor", 1.0), "fnop": result("fnop", cpu)}
    judged = {v.measure: v.kept for v in verdicts(results, 1000, False)}
    assert judged["CPU per object, ms"] is kept
    assert judged["peak memory, MB"]
    assert judged["writes per object"]


def test_the_memory_budget_depends_on_the_backlog() -> None:
    results = {"fnop": result("fnop", 1.0, mb=130.0)}

    def memory(objects: int) -> list[bool]:
        found = verdicts(results, objects, False)
        return [v.kept for v in found if v.measure == "peak memory, MB"]

    assert memory(1000) == [False]
    assert memory(5000) == [True]
    assert memory(9000) == []  # nothing was promised


def test_a_deletion_handler_allows_one_more_write() -> None:
    twice = {**result("fnop", 1.0), "writes per object": 2.0}
    assert not _writes_kept(twice, delete_handler=False)
    assert _writes_kept(twice, delete_handler=True)


def _writes_kept(found: report.Figures, delete_handler: bool) -> bool:
    judged = verdicts({"fnop": found}, 1000, delete_handler)
    return {v.measure: v.kept for v in judged}["writes per object"]


def test_without_fnop_or_floor_there_is_less_to_judge() -> None:
    assert verdicts({"floor": result("floor", 1.0)}, 1000, False) == []
    alone = verdicts({"fnop": result("fnop", 1.0)}, 1000, False)
    assert "CPU per object, ms" not in {v.measure for v in alone}


def test_the_table_shows_ratios_and_verdicts() -> None:
    results = {"floor": result("floor", 1.0), "fnop": result("fnop", 3.0)}
    text = table(results, verdicts(results, 1000, False))
    assert (
        "| CPU per object, ms | 1.00 (1.0) | 3.00 (3.0) | ≤ 2.5 x floor: MISSED |"
    ) in text.splitlines()


NEW: Json = {"metadata": {"resourceVersion": "7"}, "spec": {"number": 4}}
DONE: Json = {**NEW, "status": {"create": {"doubled": 8}}}
MINE = {"resourceVersion": "7", "finalizers": [floor.FINALIZER, "other"]}
DELETED = {**MINE, "deletionTimestamp": "2030-01-01T00:00:00Z"}


def test_the_loop_stores_the_result_once() -> None:
    assert floor.decide(NEW, finalizing=False) == (
        "/status",
        {"status": {"create": {"doubled": 8}}},
    )
    assert workload.handled(DONE)
    assert floor.decide(DONE, finalizing=False) is None


def test_the_loop_adds_its_finalizer_before_the_result() -> None:
    path, change = floor.decide(NEW, finalizing=True) or ("", {})
    assert path == ""
    assert change["metadata"]["finalizers"] == [floor.FINALIZER]
    held: Json = {**NEW, "metadata": MINE}
    path, _ = floor.decide(held, finalizing=True) or ("", {})
    assert path == "/status"


def test_the_loop_lets_go_of_what_is_deleted_and_of_nothing_else() -> None:
    _, change = floor.decide({**DONE, "metadata": DELETED}, True) or ("", {})
    assert change["metadata"] == {"finalizers": ["other"], "resourceVersion": "7"}
    foreign = {**DELETED, "finalizers": ["other"]}
    assert floor.decide({**NEW, "metadata": foreign}, True) is None
