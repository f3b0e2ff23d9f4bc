"""Daemons and timers, in the simulated cluster."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.declare import schedule, writers
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.testing import plan_of
from tests.simulations import Scenario, example
from tests.thorough import examples

KIND = "fnopexamples"
FINALIZER = "fnop.dev/default"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def elapsed(run: Scenario) -> float:
    return run.clock.elapsed


@pytest.mark.parametrize("module", [schedule, writers])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


# -------------------------------------------------------------------- timers


def counting(registry: Registry, **options: Any) -> list[float]:
    """A timer that notes when it was called; the list of the moments."""
    moments: list[float] = []

    @fnop.timer(KIND, registry=registry, **options)
    def tick(now: Any, **_: Any) -> None:
        moments.append(now.timestamp())

    return moments


def told(moments: list[float]) -> list[float]:
    return [round(moment - moments[0], 3) for moment in moments]


def test_an_interval_counts_from_the_end_of_a_run(registry: Registry) -> None:
    moments: list[float] = []

    @fnop.timer(KIND, registry=registry, interval=5)
    async def tick(now: Any, **_: Any) -> None:
        moments.append(now.timestamp())
        await fnop.sleep(2)

    Scenario(registry, [example()]).settle(seconds=20)
    assert told(moments) == [0, 7, 14]


def test_a_sharp_interval_counts_along_a_grid(registry: Registry) -> None:
    moments: list[float] = []

    @fnop.timer(KIND, registry=registry, interval=5, sharp=True)
    async def tick(now: Any, **_: Any) -> None:
        moments.append(now.timestamp())
        await fnop.sleep(7 if len(moments) == 1 else 2)

    Scenario(registry, [example()]).settle(seconds=22)
    assert told(moments) == [0, 10, 15, 20]


def test_the_first_run_waits_for_its_initial_delay(registry: Registry) -> None:
    moments = counting(registry, interval=5, initial_delay=3)
    run = Scenario(registry, [example()])
    begin = run.clock.now().wall
    run.settle(seconds=9)
    assert [round(moment - begin) for moment in moments] == [3, 8]


def test_an_initial_delay_can_be_a_function_of_the_object(registry: Registry) -> None:
    moments = counting(registry, initial_delay=lambda spec, **_: spec["delay"])
    run = Scenario(registry, [example(delay=4)])
    begin = run.clock.now().wall
    run.settle(seconds=30)
    assert [round(moment - begin) for moment in moments] == [4]


def test_an_interval_can_be_a_function_of_the_object(registry: Registry) -> None:
    moments = counting(registry, interval=lambda spec, **_: spec["every"])
    run = Scenario(registry, [example(every=10), example("example-2", every=25)])
    run.settle(seconds=52)
    assert told(moments) == [0, 0, 10, 20, 25, 30, 40, 50, 50]


@settings(max_examples=examples(15), deadline=None)
@given(
    seconds=st.integers(1, 30),
    sharp=st.booleans(),
    lasts=st.integers(0, 12),
    edits=st.lists(st.integers(1, 40), max_size=3),
    idle=st.sampled_from([None, 5]),
)
def test_a_function_that_always_answers_the_same_is_that_interval(
    seconds: int, sharp: bool, lasts: int, edits: list[int], idle: float | None
) -> None:
    """With any edits meanwhile: it is called again, and returns the same."""

    def runs(interval: Any) -> list[float]:
        registry, moments = Registry(), []

        @fnop.timer(KIND, interval=interval, sharp=sharp, idle=idle, registry=registry)
        async def tick(now: Any, **_: Any) -> None:
            moments.append(now.timestamp())
            await fnop.sleep(lasts)

        run = Scenario(registry, [example()])
        for moment in edits:
            run.settle(seconds=moment)
            run.edit(KIND, spec={"size": moment})
        run.settle(seconds=60)
        return moments

    assert runs(lambda **_: seconds) == runs(seconds)


def test_an_interval_counts_from_the_last_run_whatever_it_was_before(
    registry: Registry,
) -> None:
    moments = counting(registry, interval=lambda spec, **_: spec["every"])
    run = Scenario(registry, [example(every=1000)])
    run.settle(seconds=100)
    run.edit(KIND, spec={"every": 150})
    run.settle(seconds=100)
    run.edit(KIND, spec={"every": 5})
    run.settle(seconds=12)
    assert told(moments) == [0, 150, 200, 205, 210]


def test_an_interval_that_is_a_function_may_be_sharp(registry: Registry) -> None:
    ran: list[int] = []

    @fnop.timer(
        KIND, interval=lambda spec, **_: spec["every"], sharp=True, registry=registry
    )
    async def tick(**_: Any) -> None:
        ran.append(round(run.clock.elapsed))
        await fnop.sleep(3)

    run = Scenario(registry, [example(every=10)])
    run.settle(seconds=45)
    assert ran == [0, 10, 20, 30, 40]


def test_an_interval_may_be_asked_of_what_an_index_knows(registry: Registry) -> None:
    @fnop.index("configmaps", registry=registry)
    def speeds(name: str, body: Any, **_: Any) -> Any:
        return {name: int(body["data"]["seconds"])} if "data" in body else {}

    moments = counting(
        registry,
        interval=lambda name, speeds=fnop.INDEX, **_: (*speeds[name],)[0],
    )
    speed = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"seconds": "20"}}
    speed["metadata"] = {"name": "example-1", "namespace": "default"}
    run = Scenario(registry, [speed, example()])
    run.settle(seconds=50)
    assert told(moments) == [0, 20, 40]


@pytest.mark.parametrize(
    ("interval", "why"),
    [
        (lambda spec, **_: spec["every"], "KeyError"),
        (lambda **_: None, "it answers a number of seconds, not None"),
        (lambda **_: True, "it answers a number of seconds, not bool"),
        (lambda **_: float("nan"), "it answers a number of seconds, not nan"),
        (lambda **_: float("inf"), "it answers a number of seconds, not inf"),
    ],
)
def test_an_interval_that_fails_counts_as_the_usual_backoff(
    registry: Registry, interval: Any, why: str
) -> None:
    moments = counting(registry, interval=interval, id="ticking")
    settings = fnop.Settings(default_backoff=30)
    run = Scenario(registry, [example()], settings=settings)
    run.settle(seconds=70)
    assert told(moments) == [0, 30, 60]
    (line,) = {line for line in run.lines if "interval=" in line}
    assert line.startswith("interval= of ticking failed and counts as 30 s: ")
    assert why in line


def test_a_run_that_fails_comes_before_its_interval(registry: Registry) -> None:
    ran: list[int] = []

    @fnop.timer(KIND, interval=lambda **_: 100, backoff=7, registry=registry)
    def tick(retry: int, **_: Any) -> None:
        ran.append(round(run.clock.elapsed))
        if retry < 1:
            raise ValueError("not yet")

    run = Scenario(registry, [example()])
    run.settle(seconds=210)
    assert ran == [0, 7, 107, 114]


def test_an_initial_delay_that_fails_counts_as_none(registry: Registry) -> None:
    moments = counting(registry, initial_delay=lambda spec, **_: spec["delay"])
    run = Scenario(registry, [example()])
    run.settle(seconds=3)
    assert len(moments) == 1
    assert any("initial_delay= failed" in line for line in run.lines)


def test_idle_waits_until_the_object_has_not_changed(registry: Registry) -> None:
    moments = counting(registry, interval=1, idle=10)
    run = Scenario(registry, [example(field=1)])
    begin = run.clock.now().wall
    run.settle(seconds=6)
    run.edit(KIND, spec={"field": 2}).settle(seconds=6)
    assert moments == []
    run.settle(seconds=5)
    assert [round(moment - begin) for moment in moments] == [16, 17]


def test_its_own_writes_to_status_are_no_change(registry: Registry) -> None:
    @fnop.timer(KIND, registry=registry, interval=2, idle=5)
    def tick(status: Any, **_: Any) -> Any:
        return fnop.patch(status={"ticks": status.get("ticks", 0) + 1})

    run = Scenario(registry, [example(field=1)])
    run.settle(seconds=12)
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["ticks"] == 4  # at 5, 7, 9 and 11 s


def test_idle_alone_is_once_after_each_change(registry: Registry) -> None:
    moments = counting(registry, idle=10)
    run = Scenario(registry, [example(field=1)])
    run.settle(seconds=100)
    assert len(moments) == 1
    run.edit(KIND, spec={"field": 2}).settle(seconds=100)
    assert told(moments) == [0, 10]


def test_neither_interval_nor_idle_is_once(registry: Registry) -> None:
    moments = counting(registry)
    Scenario(registry, [example()]).settle(seconds=1000)
    assert len(moments) == 1


def test_cron_is_about_the_wall_clock(registry: Registry) -> None:
    moments = counting(registry, cron="*/15 * * * *")
    Scenario(registry, [example()]).settle(seconds=3600)
    assert [moment % 900 for moment in moments] == [0, 0, 0, 0]


def test_an_error_comes_before_the_schedule(registry: Registry) -> None:
    moments: list[float] = []

    @fnop.timer(KIND, registry=registry, interval=100, backoff=7)
    def tick(now: Any, retry: int, **_: Any) -> None:
        moments.append(now.timestamp())
        if retry == 0:
            raise fnop.TemporaryError("not yet", delay=3)
        if retry == 1:
            raise ValueError("broken")

    Scenario(registry, [example()]).settle(seconds=115)
    assert told(moments) == [0, 3, 10, 110, 113]


def test_a_permanent_error_ends_a_timer(registry: Registry) -> None:
    moments: list[float] = []

    @fnop.timer(KIND, registry=registry, interval=1)
    def tick(now: Any, **_: Any) -> None:
        moments.append(now.timestamp())
        raise fnop.PermanentError("never")

    run = Scenario(registry, [example()])
    run.settle(seconds=10)
    assert len(moments) == 1
    run.edit(KIND, spec={"field": 2}).settle(seconds=10)
    assert len(moments) == 1


def test_again_comes_before_the_schedule(registry: Registry) -> None:
    moments: list[float] = []

    @fnop.timer(KIND, registry=registry, interval=100)
    def tick(now: Any, **_: Any) -> Any:
        moments.append(now.timestamp())
        return fnop.again(after=4) if len(moments) < 3 else None

    Scenario(registry, [example()]).settle(seconds=20)
    assert told(moments) == [0, 4, 8]


def test_a_timer_puts_no_finalizer_on_the_object(registry: Registry) -> None:
    counting(registry, interval=1)
    run = Scenario(registry, [example()])
    run.settle(seconds=3)
    assert run.writes == []
    run.delete(KIND).settle(seconds=3)
    assert run.get(KIND) is None


def test_a_timer_that_asks_for_it_gets_a_finalizer(registry: Registry) -> None:
    counting(registry, interval=1, finalizer=True)
    run = Scenario(registry, [example()])
    run.settle(seconds=3)
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"] == [FINALIZER]
    run.delete(KIND).settle(seconds=3)
    assert run.get(KIND) is None


def test_a_timer_ends_with_its_object(registry: Registry) -> None:
    moments = counting(registry, interval=1)
    run = Scenario(registry, [example()])
    run.settle(seconds=3)
    run.delete(KIND).settle(seconds=3)
    known = len(moments)
    run.settle(seconds=10)
    assert len(moments) == known


def test_a_timer_stops_and_begins_anew_with_its_filter(registry: Registry) -> None:
    moments = counting(registry, interval=1, labels={"app": "a"})
    run = Scenario(registry, [example()])
    run.settle(seconds=3)
    assert moments == []
    run.edit(KIND, metadata={"labels": {"app": "a"}}).settle(seconds=2.5)
    assert len(moments) == 3
    run.edit(KIND, metadata={"labels": {"app": "b"}}).settle(seconds=5)
    assert len(moments) == 3
    run.edit(KIND, metadata={"labels": {"app": "a"}}).settle(seconds=0.5)
    assert len(moments) == 4


def test_settle_ends_when_a_whole_period_has_changed_nothing(
    registry: Registry,
) -> None:
    @fnop.timer(KIND, registry=registry, interval=60)
    def tick(status: Any, **_: Any) -> Any:
        return fnop.patch(status={"ticks": min(3, status.get("ticks", 0) + 1)})

    run = Scenario(registry, [example()])
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["status"]["ticks"] == 3
    assert elapsed(run) < 400


def test_patches_of_several_timers_are_written_together(registry: Registry) -> None:
    for name in ("a", "b"):

        @fnop.timer(KIND, id=name, registry=registry)
        def tick(patch: Any, key: str = name, **_: Any) -> None:
            patch.status[key] = 1

    run = Scenario(registry, [example()])
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["status"] == {"a": 1, "b": 1}
    assert not any("unexpected error" in line for line in run.lines)


# ------------------------------------------------------------------- daemons


def test_a_daemon_holds_its_object_and_gets_a_fresh_view(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(spec: Any, **_: Any) -> None:
        while True:
            seen.append(spec.get("field"))
            view = await fnop.sleep(10)
            spec = view.spec

    run = Scenario(registry, [example(field=1)])
    run.settle(seconds=15)
    run.edit(KIND, spec={"field": 2}).settle(seconds=10)
    assert seen == [1, 1, 2]
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"] == [FINALIZER]
    run.delete(KIND).settle(seconds=1)
    assert run.get(KIND) is None
    assert any("cancelled: resource_deleted" in line for line in run.lines)


def test_a_daemon_that_listens_is_told_first(registry: Registry) -> None:
    ends: list[str] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.sleep(1000)
        await fnop.sleep(2)
        ends.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.settle(seconds=5)
    run.delete(KIND).settle(seconds=1)
    assert run.get(KIND) is not None  # it holds its object until it has ended
    run.settle(seconds=5)
    assert ends == ["resource_deleted"]
    assert run.get(KIND) is None


def test_a_daemon_that_does_not_end_is_cancelled(registry: Registry) -> None:
    ends: list[str] = []

    @fnop.daemon(KIND, registry=registry, cancellation_backoff=3)
    async def follow(stopped: Any, **_: Any) -> None:
        try:
            while True:
                await fnop.sleep(1)
        finally:
            ends.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.settle(seconds=5)
    run.delete(KIND).settle(seconds=2)
    assert (ends, run.get(KIND) is None) == ([], False)
    run.settle(seconds=2)
    assert (ends, run.get(KIND) is None) == (["resource_deleted"], True)


def test_a_daemon_that_ends_by_itself_is_not_begun_again(registry: Registry) -> None:
    runs: list[int] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(**_: Any) -> None:
        runs.append(1)
        await fnop.sleep(1)

    run = Scenario(registry, [example()])
    run.settle(seconds=5)
    run.edit(KIND, spec={"field": 2}).settle(seconds=5)
    assert len(runs) == 1
    run.delete(KIND).settle(seconds=1)
    assert run.get(KIND) is None


def test_a_daemon_begins_again_after_a_temporary_error(registry: Registry) -> None:
    runs: list[int] = []

    @fnop.daemon(KIND, registry=registry, retries=3)
    async def follow(retry: int, **_: Any) -> None:
        runs.append(retry)
        await fnop.sleep(1)
        raise fnop.TemporaryError("not yet", delay=2)

    run = Scenario(registry, [example()])
    run.settle(seconds=60)
    assert runs == [0, 1, 2]
    assert run.machine.state.notes.failures == 1


def test_a_daemon_stops_and_begins_anew_with_its_filter(registry: Registry) -> None:
    told: list[str] = []

    @fnop.daemon(KIND, registry=registry, labels={"app": fnop.PRESENT})
    async def follow(stopped: Any, **_: Any) -> None:
        told.append("begins")
        while not stopped:
            await fnop.sleep(10)
        told.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.settle(seconds=5)
    for label in ("a", None, "b"):
        run.edit(KIND, metadata={"labels": {"app": label}}).settle(seconds=5)
    assert told == ["begins", "filters_mismatch", "begins"]


def test_a_daemon_is_told_that_the_operator_ends(registry: Registry) -> None:
    told: list[str] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.sleep(10)
        told.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.settle(seconds=5)
    run.stop()
    run.settle(seconds=20)
    assert told == ["operator_exiting"]
    assert run.exit is not None
    assert run.exit.status == 0


def test_a_daemon_of_a_deleted_object_ends_without_its_finalizer(
    registry: Registry,
) -> None:
    """An object that vanishes at once leaves no daemon behind (E17)."""
    told: list[str] = []

    @fnop.daemon(KIND, registry=registry, finalizer=False)
    async def follow(stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.sleep(10)
        told.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.settle(seconds=5)
    assert run.writes == []
    run.delete(KIND).settle(seconds=1)
    assert told == ["resource_deleted"]
    assert len(run.machine.state.objects.records) == 0


def test_daemons_timers_and_changes_do_not_wait_for_each_other(
    registry: Registry,
) -> None:
    told: list[str] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(**_: Any) -> None:
        await fnop.sleep(1000)

    @fnop.timer(KIND, registry=registry, interval=10)
    def tick(**_: Any) -> None:
        told.append("tick")

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        await fnop.sleep(100)
        told.append("created")

    @fnop.on.update(KIND, registry=registry)
    def update(**_: Any) -> None:
        told.append("updated")

    run = Scenario(registry, [example(field=1)])
    run.settle(seconds=15)
    run.edit(KIND, spec={"field": 2}).settle(seconds=90)
    assert told[:2] == ["tick", "tick"]
    assert told[-2:] == ["created", "updated"] or "created" in told
    run.settle(seconds=1)
    assert told.count("created") == 1
    assert told.count("updated") == 1


def test_a_daemon_survives_a_crash_by_beginning_anew(registry: Registry) -> None:
    begun: list[int] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(**_: Any) -> None:
        begun.append(1)
        await fnop.sleep(1000)

    run = Scenario(registry, [example()])
    run.settle(seconds=5)
    run.crash()
    run.settle(seconds=5)
    assert len(begun) == 2


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"interval": "5"}, "interval= must be a number"),
        ({"interval": -1}, "interval= must be a number"),
        ({"sharp": True}, "sharp= needs interval="),
        ({"interval": 5, "cron": "* * * * *"}, "either interval= or cron="),
        ({"cron": "every day"}, "not a cron expression"),
        ({"intervall": 5}, "did you mean interval=?"),
        ({"initial_delay": "5"}, "initial_delay= must be a number"),
    ],
)
def test_a_timer_that_cannot_work_is_refused(
    registry: Registry, options: dict[str, Any], sentence: str
) -> None:
    def fn(**_: Any) -> None: ...

    with pytest.raises(RegistrationError, match=sentence.replace("?", r"\?")):
        fnop.timer(KIND, registry=registry, **options)(fn)


# ------------------------------------------------------------ waiting on stopped


def test_k_17_12_waiting_on_stopped_is_a_pause_that_ends_early(
    registry: Registry,
) -> None:
    told: list[Any] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: fnop.Stopped, logger: fnop.Logger, **_: Any) -> None:
        while not stopped:
            logger.info("again")
            told.append(await stopped.wait(10))
        told.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.settle(seconds=25)
    assert run.lines.count("again") == 3
    run.delete(KIND).settle(seconds=1)
    assert told == [False, False, True, "resource_deleted"]
    assert told[-1] == fnop.DaemonStoppingReason.RESOURCE_DELETED
    assert run.clock.elapsed < 30
    assert run.get(KIND) is None


def test_k_17_12_without_seconds_it_waits_until_it_stops(registry: Registry) -> None:
    told: list[Any] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        told.append(await stopped.wait())

    run = Scenario(registry, [example()])
    run.settle(seconds=24 * 3600)
    assert told == []
    requests = len(run.requests)
    run.settle(seconds=24 * 3600)
    assert len(run.requests) == requests, "and that costs nothing"
    run.stop()
    run.settle(seconds=1)
    assert told == [True]
    assert run.exit is not None


def test_k_17_12_who_is_told_already_waits_no_more(registry: Registry) -> None:
    told: list[Any] = []

    @fnop.daemon(KIND, registry=registry, cancellation_backoff=100)
    async def follow(stopped: Any, **_: Any) -> None:
        await stopped.wait(timeout=10)
        told.append(await stopped.wait(10))
        told.append(await stopped.wait())

    run = Scenario(registry, [example()])
    run.settle(seconds=1)
    run.delete(KIND).settle(seconds=1)
    assert told == [True, True]
    assert run.get(KIND) is None


def test_k_17_12_a_generator_waits_in_the_same_way(registry: Registry) -> None:
    told: list[Any] = []

    @fnop.daemon(KIND, registry=registry, labels={"app": "a"})
    def follow(stopped: fnop.Stopped, **_: Any) -> Iterator[fnop.Effect]:
        while not (yield stopped.wait(10)):
            told.append("again")
        told.append(stopped.reason)

    owner = example()
    owner["metadata"]["labels"] = {"app": "a"}
    run = Scenario(registry, [owner])
    run.settle(seconds=15)
    run.edit(KIND, metadata={"labels": {"app": "b"}}).settle(seconds=1)
    assert told == ["again", "filters_mismatch"]


def test_k_17_12_its_answers_are_remembered(registry: Registry) -> None:
    """A conversation that is driven again gets the same answers as before."""
    told: list[Any] = []

    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        heard = [await stopped.wait(1) for _ in range(2)]
        await fnop.sleep(5)
        told.append([*heard, bool(stopped), await stopped.wait()])

    run = Scenario(registry, [example()])
    run.settle(seconds=4)
    run.machine.live.clear()
    run.delete(KIND).settle(seconds=1)
    assert told == [[False, False, True, True]]
    assert run.machine.state.notes.failures == 0


def test_k_17_12_a_pause_that_nobody_awaits_is_named(registry: Registry) -> None:
    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        stopped.wait(10)

    run = Scenario(registry, [example()])
    run.settle(seconds=0.5)
    (line,) = (each for each in run.lines if "await it" in each)
    assert "the Wait built at" in line
    assert "test_daemons_and_timers.py" in line


def test_k_17_12_the_plan_of_a_daemon_says_when_it_was_told(registry: Registry) -> None:
    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: fnop.Stopped, **_: Any) -> str:
        while not stopped:
            await stopped.wait(10)
        return stopped.reason

    plan = plan_of(follow, example(), answers=[False, False, True], registry=registry)
    assert [each.kind for each in plan] == ["Wait"] * 3
    assert plan.result == "resource_deleted"
