"""Spans as OpenTelemetry gets them: in a simulation, embedded, and by OTLP."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import fnop
from fnop.adapters.common.logs import configure
from fnop.adapters.running import otel as module
from fnop.adapters.running.embedding import ConfigurationProblem
from fnop.adapters.running.otel import Otel, Tracing, provider_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from tests.collectors import Collector, collecting
from tests.live import COLLECTION, LiveCluster
from tests.patience import soon
from tests.simulations import ROOT, Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="made")
    def made(logger: Any, spec: fnop.Spec, **_: Any) -> Any:
        logger.info("hello")
        if "size" in spec:
            raise fnop.PermanentError("no sizes")
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        return [fnop.create(child)]

    return registry


class Exported:
    """A provider, and all that it exports."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def one(self, name: str) -> ReadableSpan:
        (found,) = (each for each in self.spans if each.name == name)
        return found


@pytest.fixture
def exported() -> Exported:
    return Exported()


def simulated(
    registry: Registry, exported: Exported, recording: str = "", **spec: Any
) -> Tracing:
    """The tracing of a run that has settled."""
    tracing = Tracing(Otel(exported.provider, recording))
    settings = Settings(traces=True)
    run = Scenario(registry, [example(**spec)], settings=settings, observers=[tracing])
    tracing.follow(lambda: run.machine.state, "https://cluster.example:6443")
    run.settle()
    return tracing


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


# ------------------------------------------------------------------- a simulation


def test_a_request_is_a_client_span_by_the_conventions(
    registry: Registry, exported: Exported
) -> None:
    simulated(registry, exported)
    post = exported.one("POST /api/v1/namespaces/{namespace}/configmaps")
    assert post.kind is trace.SpanKind.CLIENT
    found = attributes(post)
    uid = found.pop("k8s.object.uid")
    assert uid
    step = found.pop("fnop.step")
    assert found == {
        "fnop.handler": "made",
        "fnop.result": "Applied",
        "http.request.method": "POST",
        "http.response.status_code": 201,
        "k8s.namespace.name": "default",
        "k8s.object.api_version": "fnop.dev/v1",
        "k8s.object.kind": "FnopExample",
        "k8s.object.name": "example-1",
        "server.address": "cluster.example",
        "server.port": 6443,
        "url.path": "/api/v1/namespaces/default/configmaps",
        "url.template": "/api/v1/namespaces/{namespace}/configmaps",
    }
    attempt, reconcile = exported.one("made"), exported.one("reconcile FnopExample")
    assert post.parent == attempt.context
    assert attempt.parent == reconcile.context
    assert reconcile.parent is None
    assert attributes(attempt)["fnop.step"] == step
    assert attributes(attempt)["fnop.retry"] == 0
    assert attributes(attempt)["fnop.reason"] == "create"


def test_a_failure_is_the_status_of_the_attempt_and_the_reconcile(
    registry: Registry, exported: Exported
) -> None:
    simulated(registry, exported, size=1)
    attempt, reconcile = exported.one("made"), exported.one("reconcile FnopExample")
    for span, text in (
        (attempt, "PermanentError: no sizes"),
        (reconcile, "made: PermanentError: no sizes"),
    ):
        assert span.status.status_code is trace.StatusCode.ERROR
        assert span.status.description == text
        assert attributes(span)["fnop.result"] == "error"
        assert attributes(span)["error.type"] == "error"


def test_times_are_those_of_the_run(registry: Registry, exported: Exported) -> None:
    simulated(registry, exported)
    assert exported.spans
    for span in exported.spans:
        assert span.start_time is not None
        assert span.end_time is not None
        # 2026-01-01: the beginning of simulated time.
        assert 1_767_225_600 * 10**9 <= span.start_time <= span.end_time


def test_each_span_names_the_recording(registry: Registry, exported: Exported) -> None:
    simulated(registry, exported, recording="runs/a.fnop")
    found = {attributes(each).get("fnop.recording") for each in exported.spans}
    assert found == {"runs/a.fnop"}


def test_the_end_of_the_run_ends_the_open_spans(exported: Exported) -> None:
    registry = Registry()

    @fnop.daemon(KIND, registry=registry, id="watching")
    async def watching(**_: Any) -> None:
        await fnop.sleep(1_000_000)

    tracing = Tracing(Otel(exported.provider))
    settings = Settings(traces=True)
    run = Scenario(registry, [example()], settings=settings, observers=[tracing])
    tracing.follow(lambda: run.machine.state)
    run.settle(seconds=60)
    assert "watching" not in [each.name for each in exported.spans]
    tracing.close()
    assert attributes(exported.one("watching"))["fnop.result"] == "cancelled"
    assert not tracing._open


# ---------------------------------------------------------------------- embedded


async def test_an_embedded_operator_reports_to_its_provider(
    registry: Registry, exported: Exported
) -> None:
    api, log = LiveCluster(), StringIO()
    api.define()
    console = configure(level="info", format="json", prefix=None, stream=log)
    try:
        with exported.provider.get_tracer("program").start_as_current_span("around"):
            async with fnop.operator(
                registry=registry, api=api, otel=exported.provider
            ) as running:
                await running.ready()
                api.post(COLLECTION, example())
                await soon(lambda: "succeeded" in log.getvalue(), every=0.002)
    finally:
        console.close()
    attempt, reconcile = exported.one("made"), exported.one("reconcile FnopExample")
    assert reconcile.parent is None, "a program's span is not around an operator's"
    lines = [json.loads(each) for each in log.getvalue().splitlines()]
    by_text = {each["message"]: each for each in lines}
    for text in ("hello", "create handler made succeeded"):
        assert attempt.context is not None
        assert by_text[text]["trace_id"] == f"{attempt.context.trace_id:032x}"
        assert by_text[text]["span_id"] == f"{attempt.context.span_id:016x}"
    assert not any("trace_id" in each for each in lines if "object" not in each)


async def test_lines_are_within_the_span_for_other_log_handlers(
    registry: Registry, exported: Exported
) -> None:
    """Such as the one of OpenTelemetry, which asks for the current span."""
    current: dict[str, str] = {}

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            span = trace.get_current_span()
            name = span.name if isinstance(span, ReadableSpan) else ""
            current[record.getMessage()] = name

    api, handler = LiveCluster(), Noting(logging.INFO)
    api.define()
    logger = logging.getLogger("fnop")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        async with fnop.operator(
            registry=registry, api=api, otel=exported.provider
        ) as running:
            await running.ready()
            api.post(COLLECTION, example())
            await soon(lambda: "[default/example-1] hello" in current, every=0.002)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert current["[default/example-1] hello"] == "made"


async def test_true_is_the_global_provider(
    registry: Registry, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", exported.provider)
    api = LiveCluster()
    api.define()
    async with fnop.operator(registry=registry, api=api, otel=True) as running:
        await running.ready()
    assert {each.name for each in exported.spans} >= {"GET /apis"}


async def test_without_the_argument_nothing_is_traced(registry: Registry) -> None:
    api = LiveCluster()
    api.define()
    async with fnop.operator(registry=registry, api=api) as running:
        await running.ready()
        machine = running._runner._machine
        assert not machine.settings.traces
        assert not any(isinstance(each, Tracing) for each in machine._observers)


def test_another_argument_is_refused(registry: Registry) -> None:
    text = r"otel= takes a tracer provider, or True, not 'http://x'"
    with pytest.raises(TypeError, match=text):
        fnop.operator(registry=registry, otel="http://x")  # type: ignore[arg-type]


# ------------------------------------------------------------------------- OTLP


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.mark.parametrize(
    ("variables", "service"), [({}, "billing"), ({"OTEL_SERVICE_NAME": "own"}, "own")]
)
def test_the_variables_say_where_spans_go(
    registry: Registry,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    service: str,
) -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    provider = provider_of("billing", given)
    tracing = Tracing(Otel(provider))
    settings = Settings(traces=True)
    run = Scenario(registry, [example()], settings=settings, observers=[tracing])
    tracing.follow(lambda: run.machine.state)
    run.settle()
    provider.shutdown()
    assert {each.name for each in collector.spans} >= {"made", "reconcile FnopExample"}
    assert collector.services == {service}


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "'zipkin'"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "'otlp_proto_grpc'"),
    ],
)
def test_an_exporter_that_is_not_installed_is_one_sentence(
    variables: dict[str, str], missing: str
) -> None:
    text = f"there is no exporter {missing} for traces; install its package"
    with pytest.raises(ConfigurationProblem, match=text):
        provider_of("x", variables)


def test_none_exports_nothing() -> None:
    provider = provider_of("x", {"OTEL_TRACES_EXPORTER": "none"})
    assert provider._active_span_processor._span_processors == ()


# --------------------------------------------------------------- the library


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry", "opentelemetry.sdk.resources"):
        monkeypatch.setitem(sys.modules, name, None)
    for each in (lambda: Tracing(Otel()), lambda: provider_of("x", {})):
        with pytest.raises(ConfigurationProblem) as caught:
            each()
        assert str(caught.value) == module._MISSING


def test_nothing_imports_opentelemetry_unless_it_is_asked_for() -> None:
    text = (
        "import sys, fnop, fnop.testing, fnop.adapters.cli.run\n"
        "import fnop.adapters.running.embedding, fnop.adapters.running.otel\n"
        "print([each for each in sys.modules if each.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
