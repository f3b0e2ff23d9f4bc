"""A day of an operator, in virtual time: memory grows only with the objects."""

from __future__ import annotations

import random
from typing import Any

from immutables import Map
from msgspec import Struct

import fnop
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.core.seam.inputs import StreamEnded
from fnop.core.values.body import Body
from fnop.effects import Outcome, Unreachable
from fnop.effects.outcomes import Refused
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"
HOUR = 3600
# Of a hundred requests one fails, in one of these ways.
SHARE = 0.01


class Trouble:
    """Requests fail now and then, with or without an effect."""

    def __init__(self) -> None:
        self.dice = random.Random(5)
        self.count = 0

    def __call__(self, story: Story, command: Perform) -> Outcome | None:
        if self.dice.random() >= SHARE:
            return None
        self.count += 1
        match self.dice.randrange(4):
            case 0:
                return Unreachable("no route")
            case 1:
                return Unreachable("busy", 5.0)
            case 2:
                return Refused(500, "a webhook is down", "InternalError")
            case _:
                return story.applied_but_unknown(command)


def operator() -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="create")
    async def create(name: str, **_: Any) -> dict[str, str]:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"of": name}}
        await fnop.adopt(config)
        return {"made": name}

    @fnop.on.update(KIND, registry=registry)
    def update(spec: Any, **_: Any) -> Any:
        return [fnop.event("Updated", f"size {spec['size']}"), fnop.sleep(2)]

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> Any:
        return fnop.event("Deleted", "gone")

    @fnop.timer(KIND, registry=registry, interval=180)
    def tick(now: Any, **_: Any) -> Any:
        return fnop.patch(status={"at": now.isoformat()})

    @fnop.index(KIND, registry=registry)
    def by_size(name: str, spec: Any, **_: Any) -> Any:
        return {spec.get("size"): name}

    return registry


def weight(value: Any) -> int:
    """The number of values in a state; the content of objects does not count."""
    if isinstance(value, (Body, Handler)):
        return 1
    if isinstance(value, (Map, dict)):
        return 1 + sum(weight(each) for each in value.values())
    if isinstance(value, (tuple, list, frozenset)):
        return 1 + sum(map(weight, value))
    if isinstance(value, Struct):
        names = value.__struct_fields__
        return 1 + sum(weight(getattr(value, name)) for name in names)
    return 1


def an_hour(story: Story, hour: int) -> None:
    """Changes all the time, at moments that fall into everything else."""
    for minute in range(6):
        name = f"guest-{hour}-{minute}"
        story.apply(example(name, size=minute))
        story.wait(137)
        story.edit(KIND, "host", spec={"size": hour * 10 + minute})
        story.wait(200)
        story.delete(KIND, name)
        story.wait(HOUR / 6 - 337)
        story.steps = 0  # a day has many
        story.trace.steps.clear()
        story.requests.clear()
        story.sent_at.clear()
    for number in tuple(story.machine.state.streams.numbers):
        story.feed(StreamEnded(number, "unreachable", None, "reset"))


def test_a_day_with_failing_requests_leaves_nothing_behind() -> None:
    story = Story(operator(), [example("host", size=0), example("other", size=0)])
    story.fate = trouble = Trouble()
    weights = []
    for hour in range(24):
        an_hour(story, hour)
        story.wait(60)
        weights.append(weight(story.machine.state))
    state = story.machine.state
    assert trouble.count > 10
    assert {key.name for key in state.objects.records} == {"host", "other"}
    assert max(weights[12:]) <= max(weights[:6]), weights  # recent events are kept
    host, other = story.get(KIND, "host"), story.get(KIND, "other")
    assert host is not None
    assert other is not None
    assert host["status"]["create"] == {"made": "host"}
    assert not story.machine.live.drives, "no conversation is left"
    children = [each for each in story.objects("configmaps") if _is_child(each)]
    assert len(children) == 2, "one for each object that there is"


def _is_child(manifest: Any) -> bool:
    return bool(manifest["metadata"].get("ownerReferences"))
