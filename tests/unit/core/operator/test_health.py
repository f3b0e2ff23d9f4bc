"""Liveness and readiness: the rules by which an operator is healthy."""

from __future__ import annotations

import doctest
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare import connection
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.operator.health import LIMITS, UNREADY, Health, Timings, health
from fnop.core.seam.commands import (
    AttemptEnded,
    CloseStream,
    Command,
    Fetch,
    ListPage,
    Perform,
    Say,
    Subject,
    Watch,
)
from fnop.core.seam.inputs import Answered, Bookmark, ListDone, StreamEnded
from fnop.core.state.lifecycle import Lifecycle, Phase
from fnop.core.state.objects import Objects
from fnop.core.state.requests import ForEffect, ForWrite, Requests
from fnop.core.state.turn import NEW, State
from fnop.core.streams import stream as watcher
from fnop.core.streams.stream import Stream, StreamPhase, StreamPurpose
from fnop.core.streams.streams import Streams
from fnop.core.values import backoff
from fnop.core.values.body import Key
from fnop.core.values.now import Now
from fnop.core.values.table import Table
from fnop.effects import Answer, Call, Unknown, Unreachable
from fnop.effects.structs import replace
from fnop.interpreters.runtime import meter
from fnop.interpreters.runtime.flow import Flow
from fnop.interpreters.runtime.meter import Histogram, Meter
from tests.simulations import Scenario, example
from tests.stories import Story

KIND = "fnopexamples"
PODS = Resource("", "v1", "pods", "Pod")
BEGAN = 1000.0


@pytest.mark.parametrize("module", [backoff, connection, meter, watcher])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def serving(*streams: Stream, **changes: Any) -> State:
    followed = Streams(Table({each.key: each for each in streams}))
    life: dict[str, Any] = {"phase": Phase.SERVING, "ready": True}
    life |= {name: changes.pop(name) for name in ("phase", "ready") if name in changes}
    return replace(NEW, streams=followed, lifecycle=Lifecycle(**life), **changes)


def due(*keys: Key) -> Objects:
    """Objects with these parts due since the beginning."""
    queue = Objects().queue
    for key in keys:
        queue = queue.add(key, BEGAN)
    return Objects(queue=queue)


def stream(phase: StreamPhase = StreamPhase.WATCHING, **changes: Any) -> Stream:
    known: dict[str, Any] = {"id": 7, "lists": 1, "opened_at": BEGAN, "phase": phase}
    return Stream(PODS, "default", **(known | changes))


def at(
    seconds: float, state: State, seen: Timings | None = None, *handlers: Any
) -> Health:
    """The operator's state this long after the beginning."""
    program = Program(handlers)
    return health(program, state, seen or Timings(), Now(0.0, BEGAN + seconds))


# ------------------------------------------------------------------- liveness

SILENCE = 330.0 + LIMITS.grace
# What goes on, how long it may, and the reason that is given after that.
BOUNDED: dict[str, tuple[State, Timings, float, str]] = {
    "a watch without a line": (
        serving(stream()),
        Timings(),
        SILENCE,
        "the watching of pods in default has been silent",
    ),
    "a watch that was heard once": (
        serving(stream()),
        Timings(heard={7: BEGAN + 100}),
        SILENCE + 100,
        "the watching of pods in default has been silent",
    ),
    "a listing": (
        serving(stream(StreamPhase.LISTING)),
        Timings(),
        LIMITS.request,
        "the listing of pods in default has been silent",
    ),
    "a stream that nobody opens again": (
        serving(stream(StreamPhase.WAITING, due=BEGAN)),
        Timings(),
        LIMITS.grace,
        "the next watch of pods in default was due",
    ),
    "a request": (
        serving(requests=Requests().sent(1, ForWrite(Key("a", "", "b")))),
        Timings(asked={1: BEGAN}),
        LIMITS.request,
        "a request has had no answer",
    ),
    "a call": (
        serving(
            requests=Requests().sent(
                1, ForEffect(Key("a", "", "b"), 1, "f", outside=True)
            )
        ),
        Timings(asked={1: BEGAN}),
        LIMITS.call,
        "a call of f has taken",
    ),
    "an object that nobody serves": (
        serving(stream(opened_at=BEGAN), objects=due(Key("a", "", "b"))),
        Timings(),
        LIMITS.queue,
        "objects have been due",
    ),
}


@pytest.mark.parametrize("what", BOUNDED)
def test_what_takes_longer_than_it_can_is_not_alive(what: str) -> None:
    state, seen, bound, why = BOUNDED[what]
    before, after = at(bound, state, seen), at(bound + 1, state, seen)
    assert before.is_alive, before
    assert not after.is_alive
    assert not after.is_ready
    assert [problem for problem in after.stuck if problem.startswith(why)]


def test_a_long_queue_is_no_fault_while_it_is_worked_off() -> None:
    state = serving(objects=due(Key("a", "", "b")))
    assert at(5000, state, Timings(answered=BEGAN + 4900)).is_alive
    assert not at(5000, state, Timings(answered=BEGAN + 1000)).is_alive


def test_an_api_server_that_is_away_is_no_reason_to_restart() -> None:
    failing = stream(StreamPhase.WAITING, failures=9, due=BEGAN + 5000)
    state = serving(failing, objects=due(Key("a", "", "b")))
    found = at(4000, state)
    assert found.is_alive
    assert found.problems == (
        "pods in default cannot be followed: 9 failures in a row",
    )


def test_an_api_server_that_is_away_for_long_is_one() -> None:
    failing = stream(StreamPhase.WAITING, failures=9, due=BEGAN + 50_000)
    seen, most = Timings(reached=BEGAN), Settings().unreachable_seconds
    assert at(most, serving(failing), seen).is_alive
    found = at(most + 1, serving(failing), seen)
    assert found.stuck == ("the API server has not been reached for 1801 s",)
    for phase in (Phase.STARTING, Phase.DISCOVERING, Phase.STANDBY):
        assert not at(most + 1, serving(phase=phase), seen).is_alive


def handler_of(declare: Any, **options: Any) -> Any:
    registry = Registry()

    async def f(**_: Any) -> None:
        await fnop.sleep(1)

    declare(registry=registry, **options)(f)
    return registry.handlers[0]


@pytest.mark.parametrize(
    ("handler", "seconds", "is_alive"),
    [
        (handler_of(fnop.on.startup, id="f", timeout=9000), 9000, True),
        (handler_of(fnop.on.startup, id="f", timeout=9000), 9100, False),
        (handler_of(fnop.on.startup, id="f", timeout=10), 100, False),
        (handler_of(lambda **o: fnop.daemon("pods", **o), id="f"), 1e6, True),
    ],
    ids=["within its timeout", "beyond it", "beyond a short one", "a daemon's"],
)
def test_a_call_may_take_as_long_as_its_handler(
    handler: Any, seconds: float, is_alive: bool
) -> None:
    state, seen, _, _ = BOUNDED["a call"]
    assert at(seconds, state, seen, handler).is_alive is is_alive


# ------------------------------------------------------------------ readiness


def test_every_phase_says_whether_it_serves() -> None:
    assert UNREADY.keys() == {phase.value for phase in Phase}


@pytest.mark.parametrize("phase", Phase)
def test_only_who_serves_or_could_at_once_is_ready(phase: Phase) -> None:
    found = at(0, serving(phase=phase))
    could = phase in (Phase.SERVING, Phase.STANDBY, Phase.FROZEN)
    assert found.is_ready is could
    assert found.is_alive is (phase is not Phase.ENDED)
    assert bool(found.problems) is not could


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lists": 0}, "the first listing of pods in default is not complete"),
        (
            {"phase": StreamPhase.WAITING, "refusal": "forbidden", "due": BEGAN},
            "pods in default cannot be followed: forbidden",
        ),
        (
            {"phase": StreamPhase.LISTING, "failures": 2},
            "pods in default cannot be followed: 2 failures in a row",
        ),
        ({"phase": StreamPhase.WAITING, "failures": 1, "due": BEGAN}, None),
        ({"failures": 7}, None),  # it watches again
        ({"lists": 0, "purpose": StreamPurpose.KINDS}, None),  # not for handlers
    ],
)
def test_readiness_is_that_everything_is_at_hand(
    changes: dict[str, Any], why: str | None
) -> None:
    assert at(1, serving(stream(**changes))).problems == ((why,) if why else ())


def test_an_operator_is_ready_from_its_first_listing_to_its_end() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="f")
    def created(**_: Any) -> None: ...

    counted = Meter()
    story = Scenario(registry, [example()], observers=[counted])

    def now() -> Health:
        state = story.machine.state
        return health(story.machine.program, state, counted.seen, story.clock.now())

    assert not now().is_ready
    assert story.settle()
    assert now().problems == ()
    assert now().objects == 1
    assert counted.attempts == {(f"{KIND}.v1.fnop.dev", "f", "success"): 1}
    story.stop()
    assert story.settle()
    assert now().stuck == ("the operator has ended",)


# ---------------------------------------------------------------------- meter


def feed(counted: Meter, mono: float, input: Any, *commands: Any) -> None:
    counted.observe(Now(0.0, mono), input, commands)


def test_the_meter_knows_when_a_stream_was_heard() -> None:
    counted, nothing = Meter(), Answered(99, Answer())
    feed(counted, 1, nothing, ListPage(1, PODS, None, 500))
    assert counted.seen.heard == {1: 1}
    feed(counted, 2, ListDone(1, "5"), Watch(2, PODS, None, "5", 290, 330))
    assert counted.seen.heard == {2: 2}
    feed(counted, 3, Bookmark(2, "6"))
    assert counted.seen.heard == {2: 3}
    feed(counted, 4, StreamEnded(2, "eof"), Watch(3, PODS, None, "6", 290, 330))
    feed(counted, 5, nothing, CloseStream(3))
    feed(counted, 6, Bookmark(3, "7"))
    assert counted.seen.heard == {}, "a closed stream is heard no more"
    assert counted.ends == {"eof": 1}


def test_the_meter_knows_since_when_a_command_is_under_way() -> None:
    counted, nothing = Meter(), StreamEnded(1, "eof")
    call = Perform(5, Call("m:f", {}), handler="f")
    feed(counted, 1, nothing, call, Fetch(6, "/api"))
    assert counted.seen.asked == {5: 1, 6: 1}
    feed(counted, 8, Answered(5, Answer()))
    assert counted.seen == Timings({}, {6: 1}, 8, 1), "a call reaches no API server"
    assert {name: times.total for name, times in counted.calls.items()} == {"f": 7}


@pytest.mark.parametrize(
    ("input", "is_word"),
    [
        (Bookmark(1, "6"), True),
        (ListDone(1, "5"), True),
        (StreamEnded(1, "eof"), True),
        (StreamEnded(1, "refused", 503), True),
        (StreamEnded(1, "unreachable"), False),
        (StreamEnded(1, "silent"), False),
        (Answered(6, Answer()), True),
        (Answered(6, Unreachable("down")), False),
        (Answered(6, Unknown("lost")), False),
        (Answered(5, Answer()), False),
    ],
)
def test_the_meter_knows_when_the_server_was_reached(input: Any, is_word: bool) -> None:
    counted = Meter()
    call = Perform(5, Call("m:f", {}), handler="f")
    feed(counted, 1, StreamEnded(0, "unreachable"), call, Fetch(6, "/api"))
    feed(counted, 9, input)
    assert counted.seen.reached == (9 if is_word else 1)


@pytest.mark.parametrize(
    ("ended", "error", "took", "result"),
    [
        (AttemptEnded("success"), None, 1.0, "success"),
        (AttemptEnded("success"), None, None, "success"),  # with its sub-handlers
        (AttemptEnded("requeue", retried=True), None, 1.0, "requeue"),
        (AttemptEnded("error", retried=True), "E: no", 1.0, "error"),
        (AttemptEnded("error"), "E: no", None, "error"),
        (AttemptEnded("timeout"), "E: no", 1.0, "error"),
        (AttemptEnded("timeout"), None, 1.0, None),  # it asked to go on
        (AttemptEnded("timeout"), "E: no", None, None),  # what it wrote is refused
        (AttemptEnded("cancelled"), None, 1.0, None),
        (AttemptEnded("delegated"), None, 1.0, None),
        (None, "E: no", 1.0, None),
    ],
)
def test_the_meter_counts_how_attempts_end(
    ended: AttemptEnded | None,
    error: str | None,
    took: float | None,
    result: str | None,
) -> None:
    counted, flow = Meter(), Flow()
    subject = Subject("pods.v1.", "default", "p")
    line = "create handler f succeeded"  # the words do not matter
    say = Say("info", line, subject, "f", error=error, took=took, ended=ended)
    feed(counted, 1, StreamEnded(1, "eof"), say)
    flow.observe(Now(1, 1), StreamEnded(1, "eof"), (say,))
    assert counted.attempts == ({("pods.v1.", "f", result): 1} if result else {})
    assert flow.retries == ({"pods.v1.": 1} if ended and ended.retried else {})
    is_timed = result is not None and took is not None
    assert (
        set(flow.works) == set(flow.attempts) == ({"pods.v1."} if is_timed else set())
    )


def ends_of(registry: Registry, *objects: Any, seconds: float = 60) -> dict[str, int]:
    """The ends of the attempts, and the number that are followed by another one."""
    meter = Meter()
    story = Story(registry, [*objects])
    flow = Flow(lambda: story.machine.state)
    story.machine._observers = (*story.machine._observers, meter, flow)
    story.wait(seconds)
    found: Counter[str] = Counter()
    for (_, handler, result), number in meter.attempts.items():
        found[f"{handler} {result}"] += number
    return {**found, "retried": sum(flow.retries.values())}


def test_a_line_of_the_author_is_no_end_of_an_attempt() -> None:
    """With any words."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="f")
    def f(logger: Any, **_: Any) -> None:
        logger.info("create handler f succeeded")
        logger.warning("create handler f goes on in 5 s")

    assert ends_of(registry, example()) == {"f success": 1, "retried": 0}


def test_the_ends_of_attempts_are_counted_by_handler() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="fails", retries=2, backoff=5)
    def fails(**_: Any) -> None:
        raise ValueError("no")

    @fnop.on.create(
        KIND, registry=registry, id="ignored", errors=fnop.ErrorsMode.IGNORED
    )
    def ignored(**_: Any) -> None:
        raise ValueError("no")

    @fnop.on.create(KIND, registry=registry, id="expires", timeout=7)
    def expires(**_: Any) -> Any:
        raise fnop.TemporaryError("not yet", delay=5)

    @fnop.on.create(KIND, registry=registry, id="waits", timeout=7)
    def waits(**_: Any) -> Any:
        return fnop.again(5, because="not yet")

    @fnop.on.create(KIND, registry=registry, id="sleeps", timeout=7)
    async def sleeps(**_: Any) -> None:
        await fnop.sleep(20)

    @fnop.on.create(KIND, registry=registry, id="parent")
    def parent(**_: Any) -> None:
        @fnop.subhandler(id="part")
        def part(**_: Any) -> None: ...

    @fnop.on.event(KIND, registry=registry, id="spy")
    def spy(type: Any, **_: Any) -> None:
        if type is None:
            raise ValueError("no")

    assert ends_of(registry, example()) == {
        "fails error": 2,  # and one of them is retried
        "ignored error": 1,
        "expires error": 2,  # the second one would be retried after the deadline
        "waits requeue": 2,
        "sleeps error": 1,
        "parent success": 1,  # with its part, not before
        "parent/part success": 1,
        "spy error": 1,
        "retried": 5,
    }


# ----------------------------------------------------------------------- flow


class Held(Story):
    """Requests for handlers are answered when the test says so."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.held: list[Perform] = []
        super().__init__(*given, **options)
        self.flow = Flow(lambda: self.machine.state)
        self.machine._observers = (*self.machine._observers, self.flow)

    def perform(self, command: Command) -> None:
        if isinstance(command, Perform):
            self.held.append(command)
        else:
            super().perform(command)

    def let_through(self) -> None:
        """Answer the oldest request."""
        super().perform(self.held.pop(0))


def counts(times: dict[str, Histogram]) -> dict[str, tuple[int, float]]:
    """The number and the total duration, by kind."""
    return {
        name.partition(".")[0]: (each.cumulated()[-1], round(each.total, 3))
        for name, each in times.items()
    }


def by_kind(found: Mapping[str, int]) -> dict[str, int]:
    return {name.partition(".")[0]: count for name, count in found.items()}


def test_the_flow_knows_how_long_objects_wait_and_attempts_take() -> None:
    """One request may be under way: of three objects two wait for the first."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="f")
    async def f(name: str, **_: Any) -> None:
        await fnop.get("configmaps", name=name)

    objects = [example(each) for each in "abc"]
    settings = Settings(request_concurrency=1)
    story = Held(registry, objects, settings=settings)
    story.wait(1)
    assert len(story.held) == 1
    assert by_kind(story.flow.adds) == {KIND: 3}
    assert counts(story.flow.waits) == {KIND: (1, 0.0)}
    machine, now = story.machine, story.clock.now()
    due = health(machine.program, machine.state, Timings(), now).queues
    assert by_kind(dict(due)) == {KIND: 2}
    story.wait(9)  # the first one gets its answer after ten seconds
    for _ in range(20):
        if story.held:
            story.let_through()
        story.wait(0.1)
    assert counts(story.flow.attempts)[KIND][0] == 3
    assert counts(story.flow.attempts)[KIND] == counts(story.flow.works)[KIND]
    assert counts(story.flow.attempts)[KIND][1] >= 10.0
    number, waited = counts(story.flow.waits)[KIND]
    assert waited >= 20.0, "two of them for ten seconds each"
    assert number == by_kind(story.flow.adds)[KIND], "all have been served"


def test_the_flow_counts_what_comes_again() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="f", retries=3, backoff=5)
    def f(**_: Any) -> None:
        raise ValueError("oops")

    @fnop.on.create(KIND, registry=registry, id="g")
    def g(retry: int, **_: Any) -> None:
        if retry == 0:
            raise fnop.TemporaryError("not yet", delay=7)

    story = Held(registry, [example()])
    for _ in range(400):
        if story.held:
            story.let_through()
        story.wait(0.1)
    assert by_kind(story.flow.retries) == {KIND: 3}
    attempts, seconds = counts(story.flow.attempts)[KIND]
    assert (attempts, seconds) == (5, 0.0), "what waits between attempts is none"
    number, _ = counts(story.flow.waits)[KIND]
    assert number == by_kind(story.flow.adds)[KIND]
    assert number >= 4, "its time comes again and again"


def test_what_is_no_object_of_handlers_is_no_work() -> None:
    """Definitions are followed for the sake of kinds that are missing."""
    registry = Registry()

    @fnop.on.create("widgets.late.dev", registry=registry)
    def f(**_: Any) -> None: ...

    story = Held(registry)
    story.wait(30)
    assert {
        each.resource.plural for each in story.machine.state.streams.followed.values()
    }
    assert story.flow.adds == {}
