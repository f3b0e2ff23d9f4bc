"""An operator's answers over HTTP: liveness, readiness, probes, metrics."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

import fnop
from fnop.adapters.running.embedding import ConfigurationProblem
from fnop.adapters.serving import probes
from fnop.adapters.serving.endpoints import Endpoint, endpoint_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.meter import MeteredApi
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, Unreachable
from tests.live import COLLECTION, LiveCluster
from tests.patience import patience, soon
from tests.simulations import DEFINITION, example

KIND = "fnopexamples"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow work on a busy machine gets its time."""
    for name in ("FRESH_SECONDS", "PROBE_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(probes, name, patience(getattr(probes, name)))


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(spec: fnop.Spec, **_: Any) -> None:
        if spec.get("size") == 0:
            raise fnop.PermanentError("no size")

    return registry


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Watched:
    """An operator in a cluster in memory, and who looks at it."""

    def __init__(self, port: int, running: fnop.Running, cluster: LiveCluster) -> None:
        self.running = running
        self.cluster = cluster
        self._base = f"http://127.0.0.1:{port}"

    async def get(self, path: str) -> tuple[int, str]:
        timeout = aiohttp.ClientTimeout(patience(20))
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{self._base}{path}") as response,
        ):
            return response.status, await response.text()

    async def json(self, path: str) -> tuple[int, Any]:
        status, text = await self.get(path)
        return status, json.loads(text)

    async def until(self, path: str, expected: tuple[int, Any]) -> None:
        found: tuple[int, Any] = (0, None)

        async def is_answered() -> bool:
            nonlocal found
            found = await self.json(path)
            return found == expected

        await soon(is_answered, otherwise=lambda: found)

    def create(self, manifest: dict[str, Any]) -> None:
        response = self.cluster.request(ApiRequest("POST", COLLECTION, (), manifest))
        assert response.status == 201, response


def cluster() -> LiveCluster:
    found = LiveCluster()
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert found.request(ApiRequest("POST", definitions, (), DEFINITION)).status == 201
    return found


@asynccontextmanager
async def watched(registry: Registry, **options: Any) -> AsyncIterator[Watched]:
    port, api = free_port(), cluster()
    base = f"http://127.0.0.1:{port}"
    addresses = {"liveness": f"{base}/healthz", "metrics": f"{base}/metrics"}
    async with fnop.operator(
        registry=registry, api=api, **(addresses | options)
    ) as running:
        yield Watched(port, running, api)


# ------------------------------------------------------------------ addresses


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://0.0.0.0:8080/live", Endpoint("0.0.0.0", 8080, "/live")),
        ("http://0.0.0.0:8080", Endpoint("0.0.0.0", 8080, "/healthz")),
        ("http://[::1]:8080/", Endpoint("::1", 8080, "/healthz")),
        ("http://:8080/a/b", Endpoint("localhost", 8080, "/a/b")),
        ("http://here", Endpoint("here", 80, "/healthz")),
    ],
)
def test_an_address_is_read_as_kopf_reads_it(url: str, found: Endpoint) -> None:
    assert endpoint_of(url, "/healthz") == found


@pytest.mark.parametrize("url", ["https://a:1/", "0.0.0.0:8080", "http://a:b/", "8080"])
def test_another_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationProblem, match="address"):
        endpoint_of(url, "/healthz")


async def test_a_port_that_is_taken_is_one_sentence(registry: Registry) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = f"cannot listen at 127.0.0.1:{port}: Address already in use"
        with pytest.raises(ConfigurationProblem, match=text):
            async with watched(registry, liveness=f"http://127.0.0.1:{port}"):
                pytest.fail("it has begun")


async def test_addresses_of_two_ports_are_two_servers(registry: Registry) -> None:
    other = free_port()
    metrics = f"http://127.0.0.1:{other}/metrics"
    async with watched(registry, metrics=metrics) as seen:
        assert (await seen.get("/metrics"))[0] == 404
        assert (await seen.get("/elsewhere"))[0] == 404
        there = Watched(other, seen.running, seen.cluster)
        assert (await there.get("/metrics"))[0] == 200


# --------------------------------------------------------------------- probes


async def test_who_is_well_answers_with_its_probes(registry: Registry) -> None:
    @fnop.on.probe(registry=registry, id="plain")
    def plain(settings: fnop.Settings, activity: str, **_: Any) -> list[str]:
        return [settings.operator, activity]

    @fnop.on.probe(registry=registry, id="awaited", param=5)
    async def awaited(param: int, **_: Any) -> int:
        await asyncio.sleep(0)
        return param

    @fnop.on.probe(registry=registry, id="none")
    def none(**_: Any) -> None: ...

    async with watched(registry) as seen:
        await seen.running.ready()
        values = {"plain": ["default", "probe"], "awaited": 5}
        assert await seen.json("/healthz") == (200, values)
        assert await seen.json("/readyz") == (200, {})
        status, verbose = await seen.json("/healthz?verbose")
        assert (status, verbose["probes"], verbose["problems"]) == (200, values, [])
        assert verbose["operator"]["phase"] == "serving"


async def test_without_probes_the_answer_is_empty(registry: Registry) -> None:
    async with watched(registry) as seen:
        assert await seen.json("/healthz") == (200, {})


async def test_a_probe_sees_what_startup_has_made(registry: Registry) -> None:
    @fnop.on.startup(registry=registry)
    def startup(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(default_backoff=7.0)

    @fnop.on.probe(registry=registry, id="seconds")
    def seconds(settings: fnop.Settings, **_: Any) -> Any:
        return settings.default_backoff

    async with watched(registry) as seen:
        await seen.running.ready()
        assert await seen.json("/healthz") == (200, {"seconds": 7.0})


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (TimeoutError("of its own"), "TimeoutError: of its own"),
        (fnop.PermanentError("for good"), "PermanentError: for good"),
        (SystemExit(3), "RuntimeError: SystemExit: 3"),
        (StopIteration(3), "RuntimeError: StopIteration: 3"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_probe_that_fails_is_not_alive_and_hides_no_other(
    registry: Registry, problem: BaseException, text: str
) -> None:
    @fnop.on.probe(registry=registry, id="bad")
    def bad(**_: Any) -> None:
        raise problem

    @fnop.on.probe(registry=registry, id="good")
    def good(**_: Any) -> int:
        return 1

    async with watched(registry) as seen:
        await seen.running.ready()
        problems = [f"the probe bad failed: {text}"]
        answer = {"problems": problems, "probes": {"good": 1}}
        assert await seen.json("/healthz") == (503, answer)
        assert await seen.json("/readyz") == (200, {}), "it serves"


async def test_what_is_no_json_is_a_failure(registry: Registry) -> None:
    @fnop.on.probe(registry=registry, id="bad")
    def bad(**_: Any) -> Any:
        return object()

    @fnop.on.probe(registry=registry, id="effect")
    async def effect(**_: Any) -> Any:
        return await fnop.get("pods", name="a")

    async with watched(registry) as seen:
        status, answer = await seen.json("/healthz")
    assert status == 503
    first, second = answer["problems"]
    assert first.startswith("the probe bad failed: TypeError: the answer of the probe")
    assert "cannot await effects" in second


# One that is under way may be; one whose time is over has failed.
@pytest.mark.parametrize("timeout", [None, 0.05])
async def test_a_probe_that_hangs_blocks_no_answer(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, timeout: float | None
) -> None:
    monkeypatch.setattr(probes, "PATIENCE_SECONDS", 0.05)
    asked, end = threading.Semaphore(0), threading.Event()

    @fnop.on.probe(registry=registry, id="hangs", timeout=timeout)
    def hangs(**_: Any) -> None:
        asked.release()
        end.wait()

    @fnop.on.probe(registry=registry, id="good")
    def good(**_: Any) -> int:
        return 1

    try:
        async with watched(registry) as seen:
            text = "the probe hangs has not answered within 0.05 s"
            late = {"problems": [text], "probes": {"good": 1}}
            expected = (200, {"good": 1}) if timeout is None else (503, late)
            await seen.until("/healthz", expected)
            assert asked.acquire(blocking=False)
            assert not asked.acquire(blocking=False), "it is asked once at a time"
    finally:
        end.set()


async def test_a_result_is_good_for_a_while(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    @fnop.on.probe(registry=registry, id="count")
    def count(**_: Any) -> int:
        calls.append(1)
        return len(calls)

    async with watched(registry) as seen:
        found = await asyncio.gather(*(seen.json("/healthz") for _ in range(9)))
        assert found == [(200, {"count": 1})] * 9
        monkeypatch.setattr(probes, "FRESH_SECONDS", 0.0)
        assert await seen.json("/healthz") == (200, {"count": 2})


async def test_what_a_probe_logs_is_said(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    @fnop.on.probe(registry=registry)
    def says(logger: fnop.Logger, **_: Any) -> None:
        logger.warning("a %s line", "probe's")

    async with watched(registry) as seen:
        await seen.json("/healthz")
    assert "a probe's line" in caplog.messages


def test_a_probe_has_no_effects_to_yield(registry: Registry) -> None:
    with pytest.raises(RegistrationError, match="has no effects to yield"):

        @fnop.on.probe(registry=registry)
        def yields(**_: Any) -> Any:
            yield fnop.sleep(1)


# ------------------------------------------------------- readiness and liveness

waits: list[threading.Event] = []


def wait_for_go(**_: Any) -> None:
    waits[0].wait(patience(20))


async def test_it_is_alive_but_not_ready_until_it_serves(registry: Registry) -> None:
    go = threading.Event()

    fnop.on.startup(registry=registry, impure=True)(wait_for_go)
    waits.append(go)
    try:
        async with watched(registry) as seen:
            assert await seen.json("/healthz") == (200, {})
            problems = ["the startup handlers are not done"]
            await seen.until("/readyz", (503, {"problems": problems, "probes": {}}))
            go.set()
            await seen.until("/readyz", (200, {}))
    finally:
        go.set()
        waits.clear()


async def test_it_answers_while_it_ends(registry: Registry) -> None:
    go = threading.Event()

    fnop.on.cleanup(registry=registry, impure=True)(wait_for_go)
    waits.append(go)
    try:
        async with watched(registry) as seen:
            await seen.running.ready()
            seen.running.stop()
            text = "the operator is stopping: its cleanup handlers are called"
            await seen.until("/readyz", (503, {"problems": [text], "probes": {}}))
            assert await seen.json("/healthz") == (200, {})
            go.set()
            await seen.running.ended()
            assert (await seen.json("/healthz"))[0] == 503
    finally:
        go.set()
        waits.clear()


# -------------------------------------------------------------------- metrics


def numbers(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (x.rsplit(" ", 1) for x in lines)}


async def test_prometheus_reads_what_is_counted(registry: Registry) -> None:
    async with watched(registry) as seen:
        await seen.running.ready()
        seen.create(example())
        seen.create(example("example-2", size=0))
        kind = f"{KIND}.v1.fnop.dev"
        attempt = f'controller="{kind}",result='
        expected = {
            f'controller_runtime_reconcile_total{{{attempt}"success"}}': 1,
            f'controller_runtime_reconcile_total{{{attempt}"error"}}': 1,
            f'controller_runtime_reconcile_errors_total{{controller="{kind}"}}': 1,
            f'fnop_handler_attempts_total{{handler="created",resource="{kind}",'
            'result="success"}': 1,
            "fnop_handler_failures_total": 1,
            'rest_client_requests_total{code="200",host="",method="PATCH"}': 2,
            f'workqueue_depth{{controller="{kind}",name="default"}}': 0,
            f'workqueue_retries_total{{controller="{kind}",name="default"}}': 0,
            f'workqueue_work_duration_seconds_count{{controller="{kind}",'
            'name="default"}': 2,
            "controller_runtime_reconcile_time_seconds_count"
            f'{{controller="{kind}"}}': 2,
            'fnop_watch_events_total{type="ADDED"}': 2,
            "fnop_objects": 2,
            'fnop_phase{phase="serving"}': 1,
            "fnop_ready": 1,
            "fnop_alive": 1,
            f'fnop_stream_failures{{namespace="",resource="{kind}"}}': 0,
        }
        found: dict[str, float] = {}

        async def is_counted() -> bool:
            nonlocal found
            found = numbers((await seen.get("/metrics"))[1])
            return expected.items() <= found.items()

        await soon(is_counted, otherwise=lambda: found)
    duration = 'rest_client_request_duration_seconds_count{host="",verb="PATCH"}'
    assert found[duration] == 2
    labels = f'{{controller="{kind}",name="default"}}'
    assert found[f"workqueue_adds_total{labels}"] >= 4, "two objects and their writes"
    waits = found[f"workqueue_queue_duration_seconds_count{labels}"]
    assert waits == found[f"workqueue_adds_total{labels}"]
    assert found["process_start_time_seconds"] > 0
    assert "leader_election_master_status" not in str(found)


async def test_two_operators_have_metrics_of_their_own(registry: Registry) -> None:
    idle = Registry()

    @fnop.on.create("pods", registry=idle)
    def create(**_: Any) -> None: ...

    async with watched(registry) as one, watched(idle) as other:
        await one.running.ready()
        await other.running.ready()
        one.create(example())

        async def is_known() -> bool:
            return numbers((await one.get("/metrics"))[1])["fnop_objects"] == 1

        await soon(is_known)
        assert numbers((await other.get("/metrics"))[1])["fnop_objects"] == 0


async def test_without_the_library_it_says_how_to_install_it(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigurationProblem, match=r"pip install fnop\[metrics\]"):
        async with watched(registry):
            pytest.fail("it has begun")


class Failing(LiveCluster):
    clock: Any

    async def send(self, request: ApiRequest) -> ApiResponse:
        self.clock.advance_to(3.0)
        raise Unreachable("away", sent=False)


async def test_a_request_without_an_answer_is_counted_as_in_client_go() -> None:
    api = Failing()
    clock = api.clock = VirtualClock()
    metered = MeteredApi(api, clock)
    with pytest.raises(Unreachable):
        await metered.send(ApiRequest("GET", "/api"))
    assert metered.answers == {("GET", "<error>"): 1}
    assert metered.times["GET"].total == 3.0
