"""Figures of reviews, as Prometheus reads them."""

from __future__ import annotations

import os
from typing import Any, cast

import pytest

import fnop
from fnop.adapters.common.loading import resolve
from fnop.adapters.serving.metrics import Metrics
from fnop.adapters.webhooks.answering import answering
from fnop.adapters.webhooks.connections import Refusal
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.operator.health import health
from fnop.interpreters.runtime.clock import EPOCH, VirtualClock
from fnop.interpreters.runtime.flow import Flow
from fnop.interpreters.runtime.meter import Meter, MeteredApi, MeteredReviews
from fnop.interpreters.runtime.protocol import Api
from fnop.interpreters.runtime.run import Runner
from tests.webhook_servers import KIND, review_of

pytest.importorskip("prometheus_client")


async def test_reviews_are_counted_by_webhook_and_handler() -> None:
    registry, clock = Registry(), VirtualClock(EPOCH)

    @fnop.on.mutate(KIND, registry=registry, id="sized")
    def sized(spec: Any, **_: Any) -> None:
        if spec["size"] == 3:
            raise ValueError("a mistake")

    @fnop.on.validate(KIND, registry=registry, id="lenient", ignore_failures=True)
    def lenient(spec: Any, **_: Any) -> None:
        clock.advance_to(clock.now().mono + 0.02)
        if spec["size"] == 2:
            raise ValueError("a mistake, too")

    @fnop.on.validate(KIND, registry=registry, id="small")
    def small(spec: Any, **_: Any) -> None:
        if spec["size"] > 100:
            raise fnop.Denied("too large")

    program, nowhere = Program(tuple(registry.handlers)), cast(Api, None)
    runner = Runner(
        program, nowhere, seed="1", resolve=resolve, random=os.urandom, clock=clock
    )
    reviews = MeteredReviews(runner.review, clock)
    fn = answering(reviews)
    for size in (1, 2, 3, 101):
        await fn(review_of(size=size))
    await fn(review_of(size=1), webhook="lenient")
    await fn(review_of(size=1), webhook="of another version")
    for webhook in ("x", "small"):
        with pytest.raises(Refusal):
            await fn({}, webhook=webhook)

    def look() -> Any:
        return health(program, runner.state, meter.seen, clock.now())

    meter = Meter()
    metrics = Metrics(
        Settings(), look, meter, MeteredApi(nowhere), "host", Flow(), reviews
    )
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }
    requests = "controller_runtime_webhook_requests_total"
    assert {key[1:]: n for key, n in found.items() if key[0] == requests} == {
        ("", "200"): 5,
        ("200", "lenient"): 1,
        ("", "400"): 2,
    }
    answers = "fnop_reviews_total"
    assert {key[1:]: n for key, n in found.items() if key[0] == answers} == {
        ("allowed", "sized"): 4,
        ("error", "sized"): 1,
        ("allowed", "lenient"): 4,
        ("error", "lenient"): 1,
        ("allowed", "small"): 3,
        ("denied", "small"): 1,
    }
    latency = "controller_runtime_webhook_latency_seconds"
    assert found[f"{latency}_count", "lenient"] == 1
    assert found[f"{latency}_sum", "lenient"] == pytest.approx(0.02)
