"""The benchmark's pure parts: what it counts, computes and judges."""

import asyncio
import dataclasses
import doctest
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import aiohttp
import pytest

from bench import (
    __main__ as command,
    calls,
    cases,
    floor,
    front,
    instructions,
    metrics,
    process,
    report,
    servers,
    workload,
)
from bench.cases import CASES, CONTENDERS, OF_STREAMS
from bench.client import Json, request
from bench.report import Round, medians, table, verdicts
from bench.trial import Failed, Run, Trial

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


def figures(round_: Round, case: str = "backlog") -> report.Figures:
    return report.figures(CASES[case], round_)


def result(name: str, cpu: float, mb: float = 50.0) -> report.Figures:
    return figures(Round(run(name, 1, 0.5, 0.4, mb), run(name, 1000, 4.0, cpu, mb)))


@pytest.mark.parametrize(
    "module", [calls, cases, command, instructions, process, report, servers, workload]
)
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


async def test_an_object_is_done_at_its_first_right_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter((3.0, 4.0, 7.0))
    monkeypatch.setattr(workload, "now", lambda: next(clock))

    async def stream() -> AsyncIterator[Json]:
        for name, body in (
            ("a", NEW),
            ("a", DONE),
            ("b", DONE),
            ("a", DONE),
            ("c", DONE),
        ):
            yield {**body, "metadata": {"name": name}}

    found = await workload.all_done(stream(), 3, workload.handled)
    assert found == {"a": 3.0, "b": 4.0, "c": 7.0}


def test_the_result_of_an_edit_is_not_that_of_the_creation() -> None:
    assert workload.handled(DONE)
    assert not workload.edited(DONE)
    number = workload.EDITED + 4
    status = {"create": {"doubled": 2 * number}}
    assert workload.edited({**NEW, "spec": {"number": number}, "status": status})
    assert not workload.edited({**DONE, "spec": {"number": number}})
    assert floor.decide({**DONE, "spec": {"number": number}}, finalizing=False) == (
        "/status",
        {"status": status},
    )


def test_delays_are_shown_as_quantiles() -> None:
    delays = [each / 1000 for each in range(1, 201)]
    each = dataclasses.replace(run("fnop", 200, 10.0, 0.5), delays=delays)
    found = figures(Round(run("fnop", 1, 0.5, 0.4), each), "latency")
    assert (found["p50, ms"], found["p99, ms"]) == pytest.approx((100.0, 198.0))
    assert found["CPU per object, ms"] == pytest.approx(2.5)


def test_the_usual_cases_are_those_that_do_not_take_long() -> None:
    usual = command.options([])
    assert "backlog-5000" not in {each.name for each in usual.cases}
    given = command.options(["--case", "all", "--objects", "7"])
    assert [each.name for each in given.cases] == [*CASES]
    assert {each.objects for each in given.cases} == {7}


def test_a_case_without_contenders_is_left_out() -> None:
    given = command.options(["--case", "edits,children", "--only", "floor"])
    assert [each.name for each in given.cases] == ["edits"]


@pytest.mark.parametrize(
    "wrong",
    [
        *("--case=slow", "--only=rust", "--objects=1", "--case=children --only=floor"),
        *(
            "--server=1.36",
            "--server=crd --kubeconfig=k",
            "--server=crd --case=children",
        ),
    ],
)
def test_what_the_bench_does_not_know_is_refused(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.options(wrong.split())
    assert "error: " in capsys.readouterr().err


def test_a_server_has_its_usual_contenders() -> None:
    assert command.options([]).only == CONTENDERS
    given = command.options(["--server", "crd"])
    assert given.only == OF_STREAMS
    assert "children" not in {each.name for each in given.cases}
    assert command.options(["--server", "crd", "--only", "fnop"]).only == ["fnop"]


def test_servers_do_not_share_sections(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    for server in servers.SERVERS:
        command.store(file, [command.Result(CASES["backlog"])], {"cores": 2}, server)
    assert [*json.loads(file.read_text())] == ["backlog", "backlog-crd"]


def test_a_file_of_results_keeps_its_other_cases(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    for name in ("edits", "latency", "edits"):
        command.store(file, [command.Result(CASES[name])], {"cores": 2})
    assert [*json.loads(file.read_text())] == ["edits", "latency"]


class Exited:
    """An operator that has ended already, with status 3."""

    def __init__(self) -> None:
        self.exited = asyncio.ensure_future(asyncio.sleep(0.0, 0.0))
        self.popen = SimpleNamespace(returncode=3)

    def last_words(self) -> str:
        return ""


async def test_an_operator_that_ends_early_has_failed() -> None:
    """The work of the harness ends, too, before its objects are deleted."""
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    trial = Trial(None, "", "", False, Path())  # type: ignore[arg-type]
    with pytest.raises(Failed, match="exited early, with status 3"):
        await trial._finished(Exited(), work())  # type: ignore[arg-type]
    assert ended == ["work"]


def test_without_valgrind_instructions_are_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert instructions.main([]) == 0
    assert "skipped: valgrind is not installed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("contender", "switch"),
    [
        ("kopf-chunked", "BENCH_CHUNKED"),
        ("kopf-streaming", "BENCH_STREAMING"),
        ("fnop-streaming", "BENCH_STREAMING"),
    ],
)
def test_a_variant_is_chosen_by_the_environment(contender: str, switch: str) -> None:
    assert process.environment("k", False, contender)[switch] == "1"
    assert switch not in process.environment("k", False, "kopf")


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


def test_the_table_shows_ranges_ratios_and_verdicts() -> None:
    rounds = {
        "floor": [result("floor", 1.0)],
        "fnop": [result("fnop", cpu) for cpu in (3.0, 2.9, 3.5)],
    }
    judged = verdicts({k: medians(v) for k, v in rounds.items()}, 1000, False)
    assert (
        "| CPU per object, ms | 1.00, 1.0 x | 3.00 (2.90-3.50), 3.0 x "
        "| ≤ 2.5 x floor: MISSED |"
    ) in table(rounds, judged).splitlines()


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


class Behind:
    """A server behind the front: it answers a request in two parts."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.may_begin, self.may_end = asyncio.Event(), asyncio.Event()

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while head := (await reader.read(10_000)).decode():
            self.heads.append(head.partition("\r\n")[0])
            if " HTTP/1.0" in head:
                writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + COUNTERS.encode())
                break
            await self.may_begin.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
            await self.may_end.wait()
            writer.write(b"half")
        writer.close()


@asynccontextmanager
async def fronted(
    writes_most: int = 9,
) -> AsyncIterator[tuple[Behind, aiohttp.ClientSession]]:
    """A server, and a session with the front of it; both without TLS."""
    behind = Behind()
    server = await asyncio.start_server(behind.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    served = front.Front(port, None, writes_most)
    public = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{public.sockets[0].getsockname()[1]}"
    async with server, public:
        async with aiohttp.ClientSession(url) as session:
            yield behind, session
        while len(asyncio.all_tasks()) > 1:  # they end with the client's connections
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)  # sockets are closed one turn of the loop later


async def test_the_front_passes_on_what_has_come() -> None:
    async with fronted() as (behind, session):
        behind.may_begin.set()
        async with session.get("/apis/other/v1/things?watch=1") as response:
            assert await response.content.readexactly(4) == b"half"
            behind.may_end.set()
            assert await response.content.readexactly(4) == b"half"
        assert behind.heads == ["GET /apis/other/v1/things?watch=1 HTTP/1.1"]
        async with session.get(front.RECEIVED) as response:
            assert int(await response.text()) > 8


async def test_writes_that_the_server_would_refuse_wait_in_the_front() -> None:
    async with fronted(writes_most=1) as (behind, session):
        behind.may_end.set()
        writes = [
            asyncio.create_task(request(session, "PATCH", f"/apis/{number}", {}))
            for number in range(3)
        ]
        reads = asyncio.create_task(request(session, "GET", "/apis/read"))
        while len(behind.heads) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        methods = sorted(head.partition(" ")[0] for head in behind.heads)
        assert methods == ["GET", "PATCH"]
        behind.may_begin.set()
        for status, _ in await asyncio.gather(*writes, reads):
            assert status == 200
        assert len(behind.heads) == 4


async def test_the_front_counts_events_and_forgets_them() -> None:
    async with fronted() as (behind, session):
        path = "/api/v1/namespaces/a/events"
        assert await request(session, "POST", path, {"kind": "Event"}) == (
            201,
            {"kind": "Event"},
        )
        await request(session, "PATCH", f"{path}/b", {"count": 2})
        async with session.get(front.METRICS) as response:
            found = metrics.parse(await response.text())
        assert behind.heads == ["GET /metrics HTTP/1.0"]
        assert found == metrics.Writes(objects=9, events=14, seconds=1.75)


async def test_the_front_keeps_namespaces() -> None:
    path, body = "/api/v1/namespaces", {"metadata": {"name": "a"}}
    async with fronted() as (behind, session):
        assert (await request(session, "GET", f"{path}/a"))[0] == 404
        assert [(await request(session, "POST", path, body))[0] for _ in "ab"] == [
            201,
            409,
        ]
        _, listed = await request(session, "GET", path)
        assert [each["metadata"]["name"] for each in listed["items"]] == ["a"]
        query = {"watch": "true", "sendInitialEvents": "true"}
        async with session.get(path, params=query) as response:
            lines = [json.loads(await response.content.readline()) for _ in "ab"]
        assert [each["type"] for each in lines] == ["ADDED", "BOOKMARK"]
        assert (await request(session, "DELETE", f"{path}/a"))[0] == 200
        assert (await request(session, "GET", f"{path}/a"))[0] == 404
        assert behind.heads == []


async def test_the_front_has_the_roots_of_discovery() -> None:
    async with fronted() as (_, session):
        _, groups = await request(session, "GET", "/apis")
        assert workload.GROUP in {each["name"] for each in groups["groups"]}
        _, core = await request(session, "GET", "/api/v1")
        assert {each["name"] for each in core["resources"]} == {"namespaces", "events"}
