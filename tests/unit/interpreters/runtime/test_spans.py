"""The spans of simulated runs: their tree, their results, and what is kept of them."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import Command, Say, Subject
from fnop.core.seam.inputs import AlarmRang, Input
from fnop.core.values.now import Now
from fnop.interpreters.runtime import spans as module
from fnop.interpreters.runtime.spans import Closed, Span, Spans
from tests.simulations import Scenario, example

KIND = "fnopexamples"
SUBJECT = Subject("fnopexamples.v1.fnop.dev", "default", "example-1")


@pytest.fixture
def registry() -> Registry:
    return Registry()


class Traced:
    """A scenario whose spans are folded."""

    def __init__(self, registry: Registry, *manifests: dict[str, Any]) -> None:
        self.spans = Spans()
        self.closed: list[Span] = []
        self.lines: dict[str, Span | None] = {}
        settings = Settings(traces=True)
        self.run = Scenario(
            registry, manifests, settings=settings, observers=[self], calls={}
        )
        self.spans.state = lambda: self.run.machine.state

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        changes = self.spans.take(now, input, commands)
        self.closed += [each.span for each in changes if isinstance(each, Closed)]
        for each in commands:
            if isinstance(each, Say):
                span = self.spans.span_of(each.subject, each.handler)
                self.lines[each.message] = span

    def tree(self) -> list[str]:
        """All closed spans of objects, each as `kind what result`, by its parents."""

        def shown(span: Span) -> str:
            what = span.handler or span.function
            if span.request is not None:
                what = f"{span.request.method} {span.status}"
            text = f"{span.kind} {what}".rstrip() + f": {span.result}"
            return text if span.parent is None else f"{shown(span.parent)} > {text}"

        return [shown(each) for each in self.closed if each.about is not None]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is kept of objects about which nothing happens."""
        spans = self.spans
        return not (spans._busy or spans._attempts or spans._asked or spans._due)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_a_request_is_within_its_attempt_and_that_within_the_reconcile(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="made")
    def made(**_: Any) -> Any:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        return [fnop.create(child)]

    traced = Traced(registry, example())
    traced.run.settle()
    assert traced.tree() == [
        "reconcile: success > attempt made: success > request POST 201: Applied",
        "reconcile: success > attempt made: success",
        "reconcile: success > request PATCH 200: Applied",
        "reconcile: success",
    ]
    post = next(each for each in traced.closed if each.status == 201)
    assert post.template == "/api/v1/namespaces/{namespace}/configmaps"
    assert post.parent is not None
    assert post.parent.reason == "create"
    assert traced.is_idle


def test_a_retry_is_another_reconcile(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="tried")
    def tried(retry: int, **_: Any) -> None:
        if retry == 0:
            raise fnop.TemporaryError("not yet", delay=7)

    traced = Traced(registry, example())
    traced.run.settle()
    first, second = (each for each in traced.closed if each.kind == "reconcile")
    assert (first.result, first.error) == ("error", "tried: TemporaryError: not yet")
    assert (second.result, second.error) == ("success", "")
    assert second.begin - first.begin == pytest.approx(7)
    retries = [each.retry for each in traced.closed if each.kind == "attempt"]
    assert retries == [0, 1]


def test_a_deletion_that_is_overtaken_ends_the_spans(registry: Registry) -> None:
    """The handler waits while the object vanishes without a finalizer."""

    @fnop.on.event(KIND, registry=registry, id="waiting")
    async def waiting(type: str | None, **_: Any) -> None:
        if type == "ADDED":
            await fnop.sleep(1000)

    traced = Traced(registry)
    traced.run.settle()
    traced.run.apply(example())
    traced.run.settle(seconds=10)
    assert not traced.is_idle
    traced.run.delete(KIND)
    traced.run.settle()
    assert traced.is_idle
    assert traced.tree()[-1].startswith("reconcile: ")


def test_a_daemon_has_no_reconcile_around_it(registry: Registry) -> None:
    @fnop.daemon(KIND, registry=registry, id="watching")
    async def watching(name: str, **_: Any) -> None:
        while True:
            await fnop.sleep(5)
            await fnop.get("configmaps", name=name)

    traced = Traced(registry, example())
    traced.run.settle(seconds=60)
    reads = [
        each for each in traced.closed if each.request and each.request.method == "GET"
    ]
    (daemon,) = {each.parent for each in reads if each.handler == "watching"}
    assert daemon is not None
    assert (daemon.kind, daemon.parent, daemon.end) == ("attempt", None, None)
    assert not any(each.kind == "reconcile" and each.inside for each in traced.closed)
    traced.run.delete(KIND)
    traced.run.settle()
    assert daemon.end is not None
    assert traced.is_idle


def test_a_line_belongs_to_its_attempt_also_in_the_last_step(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry, id="made")
    def made(logger: Any, **_: Any) -> None:
        logger.info("hello")

    traced = Traced(registry, example())
    traced.run.settle()
    (attempt,) = (each for each in traced.closed if each.kind == "attempt")
    assert traced.lines["hello"] is attempt
    assert traced.lines["create handler made succeeded"] is attempt
    assert traced.spans.span_of(None, None) is None
    assert traced.spans.span_of(SUBJECT, "made") is None, "it has ended"


def test_the_end_of_the_process_closes_all(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="waiting")
    async def waiting(**_: Any) -> None:
        await fnop.sleep(1000)

    traced = Traced(registry, example())
    traced.run.settle(seconds=10)
    ended = [each.span for each in traced.spans.end()]
    assert [each.kind for each in ended] == ["attempt", "reconcile"]
    assert {each.result for each in ended} == {"cancelled"}
    assert traced.is_idle


def test_a_jump_of_the_wall_clock_moves_no_span() -> None:
    spans = Spans()
    spans.take(Now(5000.0, 10.0), AlarmRang(), ())
    spans.take(Now(100.0, 12.0), AlarmRang(), ())
    assert spans._time == 5002.0
