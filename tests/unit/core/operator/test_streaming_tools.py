"""Streaming lists in recordings, checks, plans and figures, and in the real loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fnop
from fnop.adapters.common.loading import resolve
from fnop.adapters.generate.rights import Account, Wishes, studied
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.program.rights import by_right
from fnop.core.operator.health import LIMITS, Timings, health
from fnop.core.seam.commands import Watch
from fnop.core.seam.inputs import (
    ListDone,
    ListItem,
    StreamEnded,
    WatchEvent,
)
from fnop.core.seam.wire import command_to_wire, input_to_wire
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.interpreters.plan.planner import PlanProblem
from fnop.interpreters.recording.format.ring import Ring
from fnop.interpreters.recording.model.excerpt import excerpt_of
from fnop.interpreters.recording.model.presence import Departure, Presence
from fnop.interpreters.recording.questions.asides import Asides
from fnop.interpreters.recording.replay.replay import replay
from fnop.interpreters.runtime.meter import Meter
from fnop.interpreters.runtime.protocol import ApiRequest, WatchLine
from fnop.interpreters.runtime.run import Runner
from fnop.testing import create, edit, explore, stabilise
from tests.live import LiveCluster
from tests.patience import patience
from tests.plans import Served, labels, planned, planner_of
from tests.recordings import Recording
from tests.simulations import DEFINITION, example
from tests.stories import Story
from tests.streamed import REFUSALS, STREAMING, Streamed, things

KIND = "fnopexamples"
PODS = Resource("", "v1", "pods", "Pod")

# --------------------------------------------------------- recordings, and their words

TRACED = Settings(traces=True, initial_streaming=True)


def keeping(word: str = "n") -> Registry:
    """An operator that keeps a config map for each object, and reads an index."""
    registry = Registry()

    @fnop.index(KIND, registry=registry)
    def by_size(name: str, spec: Any, **_: Any) -> Any:
        return {spec["size"]: name}

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="keep")
    def keep(name: str, spec: Any, by_size: Any = fnop.INDEX, **_: Any) -> fnop.Desired:
        same = len(by_size.get(spec["size"], ()))
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        return fnop.desired({**config, "data": {word: f"{spec['size']} of {same}"}})

    return registry


class Recorded(NamedTuple):
    recording: Recording
    ring: Ring
    run: Streamed

    @property
    def records(self) -> list[dict[str, Any]]:
        _, records = self.recording.records()
        return [each for each in records if each is not None]


def recorded(settings: Settings = TRACED, ring: Ring | None = None) -> Recorded:
    """A run whose initial events are crossed by changes, cut off, and come again."""
    registry, ring = keeping(), ring or Ring()
    recording = Recording(registry, settings)
    observers = [recording.recorder, ring]
    run = Streamed(registry, things("abcd"), settings=settings, observers=observers)

    def meanwhile() -> None:
        run.edit(KIND, "a", spec={"size": 2})
        run.delete(KIND, "b")
        run.apply(*things("e"))

    run.fates.append(meanwhile)
    run.wait(30)
    run.loses("refused", 410)
    run.delete(KIND, "c")
    run.fates.append(1)
    run.wait(5)
    run.loses("unreachable")
    run.wait(30)
    run.edit(KIND, "d", spec={"size": 3})
    run.crash()
    run.lacks = REFUSALS["422"]
    run.wait(30)
    return Recorded(recording, ring, run)


@pytest.fixture(scope="module")
def story() -> Recorded:
    return recorded()


def test_a_recording_replays_identically(story: Recorded) -> None:
    assert {*story.run.asked} == {"begin", "page", "watch"}
    header, records = story.recording.records()
    assert replay(records, story.recording.program).difference is None
    _, records = story.recording.records()
    without = Program(story.recording.program.handlers, Settings(traces=True))
    difference = replay(records, without).difference
    assert difference is not None, "the setting is in the commands"
    assert header["operator"] == "default"


def test_a_shadow_asks_each_attempt_again(story: Recorded) -> None:
    found = story.recording.shadow(keeping(), TRACED)
    assert found.attempts > 5
    assert (found.changed, found.untold, found.missing) == ([], {}, {})
    other = story.recording.shadow(keeping("other"), TRACED)
    assert len(other.changed) == found.attempts


@pytest.mark.parametrize("size", [1_000, 30_000, 60_000])
def test_a_ring_keeps_what_later_attempts_compare_with(size: int) -> None:
    ring = Ring(size=size)
    recorded(ring=ring)
    assert ring.dropped
    last = Recording(keeping(), TRACED)
    for now, input, commands in ring.steps():
        last.recorder.observe(now, input, commands)
    found = last.shadow(keeping(), TRACED)
    assert (found.changed, found.untold, found.missing) == ([], {}, {})


def test_the_words_of_a_recording(story: Recorded) -> None:
    asides, said = Asides(), list[str]()
    for each in story.records:
        found = asides.add(each)
        said += [found.heard, *found.done]
    assert "watches fnopexamples from the beginning" in said
    assert "lists fnopexamples" in said
    assert any(each.startswith("fnopexamples are listed, as of ") for each in said)
    assert any(each.startswith("info: the API server does not stream") for each in said)


def test_a_part_of_a_recording_begins_with_what_was_streamed(story: Recorded) -> None:
    records = story.records
    found = excerpt_of(lambda: iter(records))
    assert f"{KIND}.v1.fnop.dev" in found.watched
    begun = sorted(each.name for each in found.objects if each.kind == "FnopExample")
    assert begun == ["a", "c", "d", "e"]
    paged = recorded(TRACED.replace(initial_streaming=False)).records
    assert found.watched == excerpt_of(lambda: iter(paged)).watched


def test_an_object_that_goes_before_the_end_has_departed_once() -> None:
    presence, found = Presence(), list[Departure]()
    watches = [Watch(number, PODS, None, "", 290, 330.0) for number in (1, 2)]

    def pod(name: str) -> Body:
        meta = {"name": name, "uid": f"uid of {name}", "resourceVersion": "5"}
        return Body({"apiVersion": "v1", "kind": "Pod", "metadata": meta})

    for input, commands in (
        (StreamEnded(0, "eof"), watches[:1]),
        (ListItem(1, pod("a")), []),
        (ListItem(1, pod("b")), []),
        (WatchEvent(1, "DELETED", pod("a")), []),
        (ListDone(1, "7"), []),
        (StreamEnded(1, "refused", 410), watches[1:]),
        (ListItem(2, pod("c")), []),
        (ListDone(2, "9"), []),
    ):
        told = [command_to_wire(each) for each in commands]
        record = {"wall": 0.0, "mono": 0.0, "input": input_to_wire(input)}
        found += presence.add({**record, "commands": told})
    assert found == [Departure("uid of a"), Departure("uid of b", listed=True)]


# ------------------------------------------------- tools that ask what an operator does


def streaming(registry: Registry) -> Registry:
    """The same operator, with a startup handler that sets it."""

    @fnop.on.startup(registry=registry)
    def configure(settings: Settings, **_: Any) -> Settings:
        return settings.replace(initial_streaming=True)

    return registry


FILE = """
import fnop

@fnop.on.startup()
def configure(settings, **_):
    return settings.replace(initial_streaming=True)

@fnop.reconcile("fnopexamples", owns="configmaps")
def keep(name, spec, **_):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return fnop.desired({**config, "data": {"size": str(spec.get("size"))}})
"""


def test_faults_hurt_no_operator_with_streaming_lists(tmp_path: Path) -> None:
    file = tmp_path / "streaming_checked.py"
    file.write_text(FILE)
    made, changed = create(example("a", size=1)), edit(f"{KIND}/a", spec={"size": 2})
    found = explore(file, made, changed, crds=DEFINITION, budget=40)
    found.must(stabilise)
    assert found.case.program.handlers


def test_rights_are_those_of_pages_as_well(tmp_path: Path) -> None:
    """The server may have none, and who doubts a version lists one object."""
    file = tmp_path / "streaming_rights.py"
    file.write_text(FILE)
    (tmp_path / "crd.yaml").write_text(json.dumps(DEFINITION))
    crds, account = (str(tmp_path / "crd.yaml"),), Account("op", "op")
    found = studied(Wishes((str(file),), account, crds=crds, budget=2))
    rights = {str(right) for right, _ in by_right(found.needs)}
    assert {f"list {KIND}.fnop.dev", f"watch {KIND}.fnop.dev"} <= rights
    assert {"list configmaps", "watch configmaps"} <= rights


def test_a_plan_is_the_same() -> None:
    run = Story(keeping(), things("abc"))
    assert run.settle()
    run.edit(KIND, "a", spec={"size": 2})
    run.delete("configmaps", "c")
    wall = run.clock.now().wall
    plans = []
    for handlers in (keeping(), streaming(keeping())):
        served = Served(run.cluster, wall)
        planner = planner_of(handlers, served, wall)
        plans.append(labels(planned(planner)))
        assert {each.method for each in served.requests} == {"GET"}
        assert not [each for each in served.requests if dict(each.query).get("watch")]
    assert plans[0] == plans[1]
    assert plans[0]["configmaps/c in default"] == "create"


def test_a_plan_tells_what_may_not_be_read() -> None:
    run = Story(keeping(), things("a"))

    def refuses(request: ApiRequest) -> bool:
        return request.path.endswith(f"/{KIND}")

    found = []
    for handlers in (keeping(), streaming(keeping())):
        wall = run.clock.now().wall
        planner = planner_of(handlers, Served(run.cluster, wall, refuses), wall)
        try:
            plan = planned(planner)
        except PlanProblem as problem:
            found.append(str(problem))
        else:
            found.append(str(plan.unread))
    assert found[0] == found[1]
    assert "you may not" in found[0]


# ----------------------------------------------------------------------- figures


def nothing(**_: Any) -> None:
    """A handler."""


def test_the_age_of_a_streamed_list_goes_on_as_that_of_a_watch() -> None:
    registry = Registry()
    fnop.on.event(KIND, registry=registry)(nothing)
    counted = Meter()
    run = Streamed(registry, things("ab"), observers=[counted])

    def ages() -> list[tuple[str, float | None]]:
        state, now = run.machine.state, run.clock.now()
        found = health(run.machine.program, state, counted.seen, now)
        assert found.is_alive
        return [(each.phase, each.age) for each in found.streams]

    run.fates.append(1)
    run.wait(20)
    assert ages() == [("listing", 20.0)]
    run.let_rest_through()
    run.take_all()
    assert ages() == [("watching", 0.0)]
    run.wait(40)
    assert ages() == [("watching", 40.0)]
    assert [*counted.seen.heard] == [*run.streams.values()]
    run.apply(*things("c"))
    run.take_all()
    assert ages() == [("watching", 0.0)]
    run.lacks = REFUSALS["422"]
    run.loses("refused", 410)
    run.wait(10)
    assert [*counted.seen.heard] == [*run.streams.values()]
    assert counted.ends == {"refused": 2}


def test_a_server_that_shows_no_end_is_given_up_before_the_probe_fails() -> None:
    """It is silent for as long as a watch may be, which is longer than a request."""
    registry = Registry()
    fnop.on.event(KIND, registry=registry)(nothing)
    run = Streamed(registry)
    run.fates.append(0)
    run.take_all()
    for seconds in (LIMITS.request + 1, STREAMING.watch_silence_seconds + 1):
        now = Now(0.0, run.clock.elapsed + seconds)
        state = run.machine.state
        assert health(run.machine.program, state, Timings(), now).is_alive
    late = Now(0.0, now.mono + LIMITS.grace)
    found = health(run.machine.program, state, Timings(), late)
    (why,) = found.stuck
    assert why.startswith("the listing of fnopexamples.fnop.dev has been silent")


# ------------------------------------------------------------------- the only loop

MANY = 5_000


class Flood(LiveCluster):
    """It shows many objects as fast as they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.taken, self.most = 0, 0
        self.waits: Callable[[], int] = lambda: 0
        self.asked: list[ApiRequest] = []

    async def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        self.asked.append(request)
        body = example("x", size=1)
        for number in range(MANY):
            meta = {"name": f"x{number}", "uid": f"u{number}", "resourceVersion": "5"}
            meta["namespace"] = "default"
            yield WatchLine("ADDED", {**body, "metadata": meta})
            self.taken += 1
            self.most = max(self.most, self.waits())
        end = {"k8s.io/initial-events-end": "true"}
        last = {"resourceVersion": "9", "annotations": end}
        yield WatchLine("BOOKMARK", {"metadata": last})
        later = {"name": "later", "uid": "u", "resourceVersion": "10"}
        yield WatchLine("ADDED", {**body, "metadata": {**body["metadata"], **later}})
        await asyncio.Event().wait()


async def test_a_flood_of_initial_events_is_read_no_faster_than_it_is_taken() -> None:
    registry, seen, later = Registry(), set[str](), asyncio.Event()

    @fnop.index(KIND, registry=registry)
    def see(name: str, **_: Any) -> None:
        seen.add(name)

    @fnop.on.event(KIND, registry=registry, when=lambda name, **_: name == "later")
    def add(type: str | None, **_: Any) -> None:
        if type == "ADDED":
            later.set()

    api = Flood()
    api.define()
    runner = Runner(
        Program(registry.handlers, STREAMING),
        api,
        seed="0",
        resolve=resolve,
        random=bytes,
    )
    api.waits = lambda: len(runner._inbox)
    running = asyncio.create_task(runner.run())
    async with asyncio.timeout(patience(60)):
        await runner.ready.wait()
        await later.wait()
        runner.stop("all is seen")
        await running
    assert len(seen) == MANY + 1
    assert api.taken == MANY
    assert len(api.asked) == 1
    assert 0 < api.most <= 300


async def test_two_floods_share_the_room_and_a_stop_waits_for_neither() -> None:
    registry = Registry()
    fnop.index(KIND, registry=registry)(nothing)
    api = Flood()
    api.define()
    settings = STREAMING.replace(namespaces=("one", "two"))
    program = Program(registry.handlers, settings)
    runner = Runner(program, api, seed="0", resolve=resolve, random=bytes)
    most = 0

    def waiting() -> int:
        nonlocal most
        most = max(most, len(runner._inbox))
        if api.taken == 2_000:
            runner.stop("enough")
        return most

    api.waits = waiting
    async with asyncio.timeout(patience(60)):
        ended = await runner.run()
    assert ended.status == 0
    assert api.taken < 2 * MANY
    assert 0 < most <= 300
