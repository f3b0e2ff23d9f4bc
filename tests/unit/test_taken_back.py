"""What a handler has acted upon, and has yet to be told, while changes come and go."""

from typing import Any

import fnop
from fnop.core.registry import Registry
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"


def test_a_retry_for_what_was_handled_before_is_not_lost() -> None:
    """The object goes back to what it was, and the handler is not ready yet."""
    registry = Registry()
    seen: list[int] = []

    @fnop.on.update(KIND, registry=registry, backoff=5)
    async def update(spec: Any, retry: int, **_: Any) -> None:
        await fnop.get("configmaps", name="absent")  # something may be done
        seen.append(spec["n"])
        if spec["n"] == 1 or len(seen) < 4:
            raise fnop.TemporaryError("not yet", delay=5)

    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1}).settle(seconds=1)
    story.edit(KIND, spec={"n": 0})
    assert story.settle()
    assert seen == [1, 0, 0, 0]


def test_a_wait_for_what_was_handled_before_is_not_lost_by_a_restart() -> None:
    registry = Registry()
    seen: list[int] = []

    @fnop.on.update(KIND, registry=registry)
    async def update(spec: Any, **_: Any) -> Any:
        await fnop.get("configmaps", name="absent")
        seen.append(spec["n"])
        return fnop.again(after=90) if len(seen) < 3 else None

    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1}).settle(seconds=1)
    story.edit(KIND, spec={"n": 0}).settle(seconds=1)
    assert seen == [1, 0]
    story.crash()
    assert story.settle()
    assert seen == [1, 0, 0]


def test_who_is_done_with_a_value_is_not_called_again_for_an_older_view() -> None:
    """Another handler of the creation has an older view, and ends later."""
    registry = Registry()
    called: list[tuple[str, int]] = []

    @fnop.on.create(KIND, registry=registry)
    async def slow(spec: Any, **_: Any) -> None:
        called.append(("slow", spec["n"]))
        await fnop.sleep(30)

    @fnop.on.field(KIND, field="spec.n", registry=registry)
    def field(new: Any, retry: int, **_: Any) -> None:
        called.append(("field", new))
        if retry == 0:
            raise fnop.TemporaryError("not yet", delay=10)

    @fnop.on.update(KIND, registry=registry)
    def update(old: Any, new: Any, **_: Any) -> None:
        called.append(("update", new["spec"]["n"]))

    story = Story(registry, [example(n=1)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"n": 2})
    assert story.settle()
    assert called == [("slow", 1), ("field", 1), ("field", 2), ("update", 2)]
    # A later change of something else does not forget it, and one of the value does.
    story.edit(KIND, metadata={"labels": {"a": "b"}})
    assert story.settle()
    story.edit(KIND, spec={"n": 1})
    assert story.settle()
    assert called[4:] == [("update", 2), ("field", 1), ("update", 1), ("field", 1)]
