"""The API server's storage is restored from a backup: versions go back."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.peers.lease import Candidate
from fnop.core.peers.peers import Member, record_of
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.inputs import StreamEnded
from fnop.core.state.lifecycle import Phase
from fnop.effects import Outcome, Unreachable
from fnop.interpreters.cluster import Cluster
from tests.peerings import PEERING_OBJECT, peering_definition
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"
AWAY = "the server is away"


class Restored(Story):
    """A cluster that can be made what it was; its watches break then."""

    def restore(self, backup: Cluster) -> None:
        self.cluster = backup
        self.break_off()

    def break_off(self) -> None:
        """The connections of all watches are lost."""
        for stream in tuple(self.reads.watches._open):
            self.feed(StreamEnded(stream, "unreachable", None, AWAY))
        self.reads.watches._open.clear()

    def opened(self, since: float) -> list[str]:
        """The lists, or watches, after a moment: `list 1` of one object."""
        found = []
        for now, _, commands in self.trace.steps:
            for each in commands if now.mono >= since else ():
                if isinstance(each, ListPage):
                    found.append(f"list {each.limit}")
                elif isinstance(each, Watch):
                    found.append("watch")
        return found


@pytest.fixture
def diary() -> list[str]:
    return []


@pytest.fixture
def registry(diary: list[str]) -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(name: str, spec: Any, **_: Any) -> dict[str, Any]:
        diary.append(f"created {name} of {spec['size']}")
        return {"size": spec["size"]}

    @fnop.on.update(KIND, registry=registry, id="update")
    def update(name: str, spec: Any, **_: Any) -> dict[str, Any]:
        diary.append(f"updated {name} to {spec['size']}")
        return {"size": spec["size"]}

    @fnop.on.event(KIND, registry=registry)
    def see(type: str | None, name: str, **_: Any) -> None:
        if type == "DELETED":
            diary.append(f"gone {name}")

    return registry


def test_it_is_not_deaf_until_versions_have_caught_up(
    registry: Registry, diary: list[str]
) -> None:
    run = Restored(registry, [example(size=1)])
    assert run.settle()
    backup = run.cluster
    for size in range(2, 40):
        run.edit(KIND, spec={"size": size})
    run.settle()
    diary.clear()
    run.restore(backup)
    run.wait(10)
    assert diary == ["updated example-1 to 1"], "what was done since is taken back"
    diary.clear()
    run.apply(example("example-2", size=1))
    run.wait(5)
    run.edit(KIND, spec={"size": 5})
    run.wait(5)
    assert diary == ["created example-2 of 1", "updated example-1 to 5"]
    assert run.status() == {"create": {"size": 1}, "update": {"size": 5}}
    told = [line for line in run.said_at("warning") if "has gone back" in line]
    assert len(told) == 1, "once for all collections"


def test_what_came_after_the_backup_is_gone(
    registry: Registry, diary: list[str]
) -> None:
    run = Restored(registry, [example(size=1)])
    assert run.settle()
    backup = run.cluster
    run.apply(example("late", size=1)).settle()
    run.restore(backup)
    run.wait(10)
    assert diary[-1] == "gone late"


def test_what_was_gone_is_there_again_and_was_handled_before(
    registry: Registry, diary: list[str]
) -> None:
    run = Restored(registry, [example(size=1), example("other", size=1)])
    assert run.settle()
    backup = run.cluster
    run.delete(KIND, "other")
    run.settle()
    diary.clear()
    run.restore(backup)
    run.wait(10)
    assert diary == [], "its state says that it was created"
    run.edit(KIND, "other", spec={"size": 2})
    run.wait(5)
    assert diary == ["updated other to 2"]


def test_a_write_that_was_under_way_lands_on_the_restored_object(
    registry: Registry, diary: list[str]
) -> None:
    """It carries a version that no longer exists: a conflict, and a new read."""
    run = Restored(registry, [example(size=1)])
    assert run.settle()
    backup = run.cluster
    run.edit(KIND, spec={"size": 2})
    away = True

    def fate(story: Story, command: Any) -> Outcome | None:
        return Unreachable(AWAY) if away else None

    run.fate = fate
    run.wait(1)
    run.restore(backup)
    away = False
    run.wait(30)
    assert diary[0] == "created example-1 of 1"
    assert "updated example-1 to 2" in diary
    assert run.status()["update"] == {"size": int(diary[-1][-1])}
    assert diary[-1] == "updated example-1 to 1", "the last word is the server's"


def test_who_was_cut_off_asks_before_it_resumes(registry: Registry) -> None:
    run = Restored(registry, [example(name, size=1) for name in "abc"])
    assert run.settle()
    run.wait(60)
    since = run.clock.elapsed
    run.break_off()
    run.wait(10)
    assert run.opened(since) == ["list 1", "watch"], "nothing is listed in full"
    assert run.said_at("warning")[-1].startswith("the stream of fnopexamples broke")


def test_while_the_server_is_away_it_keeps_asking(registry: Registry) -> None:
    run = Restored(registry, [example(size=1)])
    assert run.settle()
    run.wait(60)
    since = run.clock.elapsed
    run.break_off()
    for _ in range(5):
        while run.opened(since)[-1:] != ["list 1"]:
            assert run.advance(since + 60)
        (stream,) = run.streams.values()
        run.inbox.clear()
        run.feed(StreamEnded(stream, "unreachable", None, AWAY))
        run.take()
        since = run.clock.elapsed + 0.001
    run.wait(20)
    assert run.opened(since)[-2:] == ["list 1", "watch"]


def test_a_watch_that_ends_in_order_is_resumed_at_once(registry: Registry) -> None:
    run = Restored(registry, [example(size=1)])
    assert run.settle()
    run.wait(60)
    since = run.clock.elapsed
    (stream,) = tuple(run.reads.watches._open)
    run.reads.watches._open.clear()
    run.feed(StreamEnded(stream, "eof"))
    run.wait(1)
    assert run.opened(since) == ["watch"]


def test_the_leader_goes_on_with_the_lease_as_it_was(registry: Registry) -> None:
    settings = Settings(election=Candidate("me", "default", "operator"))
    run = Restored(registry, [example(size=1)], settings=settings)
    run.wait(30)
    backup = run.cluster
    run.wait(300)
    run.restore(backup)
    run.wait(30)
    assert run.machine.state.lifecycle.phase is Phase.SERVING
    assert not any("not leading" in line for line in run.lines)


def test_peers_are_seen_though_their_object_is_older(registry: Registry) -> None:
    settings = Settings(peering=Member("me"))
    given = [peering_definition(), PEERING_OBJECT, example(size=1)]
    run = Restored(registry, given, settings=settings)
    run.wait(30)
    backup = run.cluster
    for _ in range(20):
        run.wait(60)  # its record is renewed
    run.restore(backup)
    run.wait(60)
    record = record_of(100, 600, run.clock.now().wall)
    run.edit("clusterkopfpeerings", "default", status={"boss": record})
    run.wait(2)
    assert run.machine.state.lifecycle.phase is Phase.FROZEN


def test_a_stream_that_is_resumed_later_is_read_anew_with_the_others(
    registry: Registry, diary: list[str]
) -> None:
    """By then the server has got to the stream's version again, by another way."""

    @fnop.on.event("configmaps", registry=registry)
    def spy(type: str | None, name: str, **_: Any) -> None:
        diary.append(f"{type} {name}")

    story = Restored(registry, [example(size=1)])
    assert story.settle()
    backup = story.cluster
    late = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}}
    story.apply(late)
    story.edit(KIND, spec={"size": 2})
    assert story.settle()
    diary.clear()
    story.cluster = backup
    (kept,) = (n for key, n in story.streams.items() if key.startswith("configmaps"))
    for stream in {*story.reads.watches._open} - {kept}:
        story.feed(StreamEnded(stream, "unreachable", None, AWAY))
        del story.reads.watches._open[stream]
    assert story.settle()
    for number in range(30):
        story.edit(KIND, spec={"size": number})
    assert story.settle()
    assert "DELETED late" in diary
    told = [each for each in story.said_at("warning") if "has gone back" in each]
    assert len(told) == 1
