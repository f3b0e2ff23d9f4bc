"""The metrics of an operator, for Prometheus.

The Prometheus library stores nothing: when it collects, it gets the numbers of the
meter and of the state. If client-go or controller-runtime have a name for a metric,
fnop uses it; docs/reference/metrics.md lists all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem
from fnop.adapters.serving.endpoints import Endpoint, HttpAnswer, PageFunction
from fnop.core.handlers.declare.settings import Settings
from fnop.core.operator.health import Health
from fnop.interpreters.runtime.flow import Flow
from fnop.interpreters.runtime.meter import Histogram, Meter, MeteredApi, MeteredReviews

__all__ = ["Metrics", "page_of"]

LabelNames = tuple[str, ...]


class Metrics:
    """A collector of the Prometheus library, for one operator."""

    def __init__(
        self,
        settings: Settings,
        health: Callable[[], Health],
        meter: Meter,
        api: MeteredApi,
        host: str,
        flow: Flow,
        reviews: MeteredReviews | None = None,
    ) -> None:
        self._reviews = reviews
        self._operator = settings.operator
        self._concurrency = settings.request_concurrency
        self._is_candidate = settings.election is not None
        self._health = health
        self._meter = meter
        self._api = api
        self._host = host
        self._flow = flow

    def collect(self) -> Iterator[Any]:
        """All families of metrics at this moment."""
        health = self._health()
        yield from self._api_metrics()
        yield from self._queue_metrics(health)
        yield from self._controller_metrics(health)
        yield from self._handler_metrics(health)
        yield from self._stream_metrics(health)
        yield from self._log_metrics(health)
        yield from self._operator_metrics(health)
        if self._reviews is not None:
            yield from self._review_metrics(self._reviews)

    def _api_metrics(self) -> Iterator[Any]:
        host, api = self._host, self._api
        yield _counters(
            "rest_client_requests",
            "Requests to the API server, watches excepted.",
            ("code", "host", "method"),
            {(code, host, verb): count for (verb, code), count in api.answers.items()},
        )
        yield _histograms(
            "rest_client_request_duration_seconds",
            "How long requests to the API server took, waiting for a turn included.",
            ("host", "verb"),
            {(host, verb): times for verb, times in api.times.items()},
        )

    def _queue_metrics(self, health: Health) -> Iterator[Any]:
        name = {(self._operator,): 0.0}
        ages = [*health.requests, *(age for _, age in health.calls)]
        labels = ("name",)
        yield from self._flow_metrics(health)
        yield _gauges(
            "workqueue_unfinished_work_seconds",
            "The ages of all requests and calls under way, together.",
            labels,
            {key: sum(ages) for key in name},
        )
        yield _gauges(
            "workqueue_longest_running_processor_seconds",
            "The age of the oldest request or call under way.",
            labels,
            {key: max(ages, default=0.0) for key in name},
        )
        yield _gauges(
            "fnop_queue_oldest_seconds",
            "How long the first of the objects that are due has been so.",
            labels,
            {key: health.oldest or 0.0 for key in name},
        )

    def _flow_metrics(self, health: Health) -> Iterator[Any]:
        """One queue for all kinds, labelled by kind: there are no other controllers."""
        flow, name, labels = self._flow, self._operator, ("name", "controller")
        kinds = [kind for kind, _ in health.queues]
        yield _gauges(
            "workqueue_depth",
            "Objects that are due now.",
            labels,
            {(name, kind): float(count) for kind, count in health.queues},
        )
        yield _counters(
            "workqueue_adds",
            "How often an object became due.",
            labels,
            {(name, kind): flow.adds[kind] for kind in kinds},
        )
        yield _counters(
            "workqueue_retries",
            "Attempts of handlers that are followed by another one.",
            labels,
            {(name, kind): flow.retries[kind] for kind in kinds},
        )
        yield _histograms(
            "workqueue_queue_duration_seconds",
            "How long objects were due before they were served.",
            labels,
            {(name, kind): times for kind, times in flow.waits.items()},
        )
        yield _histograms(
            "workqueue_work_duration_seconds",
            "How long attempts of handlers took.",
            labels,
            {(name, kind): times for kind, times in flow.works.items()},
        )
        yield _histograms(
            "controller_runtime_reconcile_time_seconds",
            "How long attempts of handlers took.",
            ("controller",),
            {(kind,): times for kind, times in flow.attempts.items()},
        )

    def _controller_metrics(self, health: Health) -> Iterator[Any]:
        """The metrics that controller-runtime has for handlers, by its names."""
        attempts = self._meter.attempts
        by_kind: Counter[LabelNames] = Counter()
        for (resource, _, result), count in attempts.items():
            by_kind[resource, result] += count
        controller = ("controller",)
        yield _counters(
            "controller_runtime_reconcile",
            "Attempts of handlers by the kind of their objects.",
            ("controller", "result"),
            by_kind,
        )
        yield _counters(
            "controller_runtime_reconcile_errors",
            "Attempts of handlers that failed.",
            controller,
            {(kind,): n for (kind, result), n in by_kind.items() if result == "error"},
        )
        yield _gauges(
            "controller_runtime_active_workers",
            "Requests under way.",
            controller,
            {(self._operator,): float(len(health.requests))},
        )
        yield _gauges(
            "controller_runtime_max_concurrent_reconciles",
            "How many requests may be under way at once.",
            controller,
            {(self._operator,): float(self._concurrency)},
        )

    def _handler_metrics(self, health: Health) -> Iterator[Any]:
        yield _counters(
            "fnop_handler_attempts",
            "Attempts of handlers.",
            ("resource", "handler", "result"),
            self._meter.attempts,
        )
        yield _counters(
            "fnop_handler_failures",
            "Handlers that failed for good.",
            (),
            {(): health.failures},
        )
        yield _histograms(
            "fnop_call_duration_seconds",
            "How long calls and impure handlers took.",
            ("handler",),
            {(handler,): times for handler, times in self._meter.calls.items()},
        )

    def _stream_metrics(self, health: Health) -> Iterator[Any]:
        place = ("resource", "namespace")
        streams = {
            (each.resource, each.namespace or ""): each for each in health.streams
        }
        yield _gauges(
            "fnop_stream_silence_seconds",
            "How long nothing has come from a stream that is open.",
            place,
            {key: each.age for key, each in streams.items() if each.age is not None},
        )
        yield _gauges(
            "fnop_stream_failures",
            "Failures of a stream in a row.",
            place,
            {key: float(each.failures) for key, each in streams.items()},
        )
        yield _counters(
            "fnop_streams_ended",
            "Listings and watches that ended, by the reason.",
            ("reason",),
            {(reason,): count for reason, count in self._meter.ends.items()},
        )
        yield _counters(
            "fnop_watch_events",
            "Watch events by their type.",
            ("type",),
            {(type,): count for type, count in self._meter.events.items()},
        )

    def _log_metrics(self, health: Health) -> Iterator[Any]:
        if not (health.logs or self._meter.lines):
            return
        yield _gauges(
            "fnop_log_streams",
            "Logs of containers, by the state of their streams.",
            ("state",),
            {(state,): float(count) for state, count in health.logs},
        )
        for name, words, counts in (
            ("fnop_log_lines", "Lines of logs for a handler.", self._meter.lines),
            (
                "fnop_log_lines_dropped",
                "Lines of logs beyond the rate of a handler.",
                self._meter.dropped,
            ),
        ):
            by_handler: dict[tuple[str, ...], int] = {
                (handler,): count for handler, count in counts.items()
            }
            yield _counters(name, words, ("handler",), by_handler)

    def _operator_metrics(self, health: Health) -> Iterator[Any]:
        yield _gauges("fnop_objects", "Objects known.", (), {(): float(health.objects)})
        yield _gauges(
            "fnop_phase",
            "The phase of the operator.",
            ("phase",),
            {(health.phase,): 1.0},
        )
        yield _gauges(
            "fnop_alive",
            "Whether progress is made.",
            (),
            {(): float(health.is_alive)},
        )
        yield _gauges(
            "fnop_ready",
            "Whether everything that is followed is at hand.",
            (),
            {(): float(health.is_ready)},
        )
        if self._is_candidate:
            yield _gauges(
                "leader_election_master_status",
                "Whether this replica leads.",
                ("name",),
                {(self._operator,): float(health.phase == "serving")},
            )

    def _review_metrics(self, reviews: MeteredReviews) -> Iterator[Any]:
        yield _counters(
            "controller_runtime_webhook_requests",
            "Reviews that the webhooks were asked for.",
            ("webhook", "code"),
            reviews.answers,
        )
        yield _histograms(
            "controller_runtime_webhook_latency_seconds",
            "How long reviews took.",
            ("webhook",),
            {(webhook,): times for webhook, times in reviews.times.items()},
        )
        yield _counters(
            "fnop_reviews",
            "Answers of admission handlers.",
            ("handler", "result"),
            reviews.results,
        )


def _gauges(
    name: str, help: str, labels: Sequence[str], values: Mapping[LabelNames, float]
) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return _fill_family(GaugeMetricFamily(name, help, labels=labels), values)


def _counters(
    name: str, help: str, labels: Sequence[str], values: Mapping[LabelNames, int]
) -> Any:
    from prometheus_client.core import CounterMetricFamily

    return _fill_family(CounterMetricFamily(name, help, labels=labels), values)


def _fill_family(family: Any, values: Mapping[LabelNames, float]) -> Any:
    for key in sorted(values):
        family.add_metric(key, values[key])
    return family


def _histograms(
    name: str, help: str, labels: Sequence[str], values: Mapping[LabelNames, Histogram]
) -> Any:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(name, help, labels=labels)
    for key in sorted(values):
        times = values[key]
        bounds = [*(f"{bound:g}" for bound in times.bounds), "+Inf"]
        counts = times.cumulated()
        family.add_metric(key, [*zip(bounds, counts, strict=True)], times.total)
    return family


def page_of(endpoint: Endpoint, metrics: Metrics) -> dict[Endpoint, PageFunction]:
    """The metrics in Prometheus' format, with those of the process.

    Raises `ConfigurationProblem` if the library is missing.
    """
    try:
        from prometheus_client import (
            CollectorRegistry,
            PlatformCollector,
            ProcessCollector,
        )
        from prometheus_client.exposition import choose_encoder
    except ImportError:
        raise ConfigurationProblem(
            "metrics need the Prometheus library; install it: pip install fnop[metrics]"
        ) from None
    # A registry of its own: several operators may be in the process.
    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)

    async def page(query: Mapping[str, str], headers: Mapping[str, str]) -> HttpAnswer:
        encode, content_type = choose_encoder(headers.get("Accept", ""))
        return HttpAnswer(200, encode(registry), content_type)

    return {endpoint: page}
