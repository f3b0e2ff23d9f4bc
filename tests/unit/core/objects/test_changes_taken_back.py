"""Changes that come, go and are taken back while handlers work or wait."""

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
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


@pytest.mark.parametrize("seconds", [0, 5])
def test_an_optional_deletion_handler_is_called_wherever_the_object_is_held(
    seconds: int,
) -> None:
    """A daemon's finalizer holds it, however quickly the daemon ends."""
    registry = Registry()
    called: list[str] = []

    @fnop.daemon(KIND, registry=registry)
    async def daemon(stopped: Any, **_: Any) -> None:
        await stopped.wait()
        await fnop.sleep(seconds)

    @fnop.on.delete(KIND, registry=registry, optional=True)
    def deleted(**_: Any) -> None:
        called.append("deleted")

    story = Story(registry, [example(n=0)])
    story.settle(seconds=5)
    story.delete(KIND)
    assert story.settle()
    assert story.get(KIND) is None
    assert called == ["deleted"]


class Half(list[int]):
    """Attempts that write elsewhere and fail, and what they have written there."""

    def __init__(self, registry: Registry, **options: Any) -> None:
        @fnop.on.update(KIND, registry=registry, id="half", **options)
        async def half(spec: Any, patch: Any, **_: Any) -> None:
            patch.status["tried"] = spec["n"]
            await fnop.apply(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "child"},
                    "data": {"n": str(spec["n"])},
                }
            )
            self.append(spec["n"])
            if spec["n"]:
                raise fnop.TemporaryError("the rest is not done", delay=30)


def child(story: Story) -> str | None:
    found = story.get("configmaps", "child")
    return None if found is None else str(found["data"]["n"])


def test_half_done_restarted_and_taken_back_is_told() -> None:
    """The write of what the attempt has patched also says that it has begun to act."""
    registry = Registry()
    acted = Half(registry)
    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1}).settle(seconds=1)
    assert child(story) == "1"
    story.crash()
    story.edit(KIND, spec={"n": 0})
    assert story.settle()
    assert acted == [1, 0]
    assert child(story) == "0"


@pytest.mark.parametrize("write_ahead", [True, False])
def test_a_crash_in_the_middle_of_the_first_attempt_is_told_where_that_is_asked_for(
    write_ahead: bool,
) -> None:
    registry = Registry()
    acted = Half(registry, write_ahead=write_ahead)
    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"n": 1})
    while child(story) != "1":
        assert story.advance()
    story.crash()  # nothing has come back of it yet
    story.edit(KIND, spec={"n": 0})
    assert story.settle()
    assert child(story) == ("0" if write_ahead else "1")
    assert acted == ([0] if write_ahead else [])


def test_an_attempt_is_marked_once_before_its_first_effect_elsewhere() -> None:
    registry = Registry()
    Half(registry, write_ahead=True)
    story = Story(registry, [example(n=0)])
    assert story.settle()
    before = len(story.sent)
    story.edit(KIND, spec={"n": 1}).settle(seconds=100)
    sent = story.sent[before:]
    assert sent[0] == "PATCH fnopexamples/example-1/status"
    assert sent.count("PATCH configmaps/child") == 4
    # The mark, and what is patched: further attempts cost nothing.
    assert sent.count("PATCH fnopexamples/example-1/status") == 2


# ------------------------------------------------------- fields that come and go


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("write_ahead", [False, True])
@pytest.mark.parametrize(
    ("decorator", "creation"),
    [
        (fnop.on.field, "none"),
        (fnop.on.field, "over"),
        (fnop.on.field, "under way"),
        (fnop.on.update, "none"),
        (fnop.on.update, "over"),
    ],
)
def test_a_field_that_is_taken_away_again_is_told_to_who_acted_upon_it(
    decorator: Any, creation: str, write_ahead: bool, restart: bool
) -> None:
    """The former state is a missing field, and the object goes back to that."""
    registry = Registry()

    def create(retry: int, **_: Any) -> None:
        if creation == "under way" and retry < 2:
            raise fnop.TemporaryError("not yet", delay=90)

    if creation != "none":
        fnop.on.create(KIND, registry=registry)(create)

    async def zone(new: Any, **_: Any) -> None:
        if new:
            child = {"apiVersion": "v1", "kind": "ConfigMap"}
            await fnop.adopt({**child, "metadata": {"name": f"zone-{new}"}})
            raise fnop.TemporaryError("not ready", delay=60)
        await fnop.delete("configmaps", name="zone-a")

    options = {"registry": registry, "write_ahead": write_ahead}
    decorator(KIND, field="spec.zone", **options)(zone)
    story = Story(registry, [example(n=0)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"zone": "a"}).settle(seconds=10)
    assert story.objects("configmaps")
    if restart:
        story.crash()
    story.edit(KIND, spec={"zone": None})
    assert story.settle()
    assert not story.objects("configmaps")


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("decorator", [fnop.on.field, fnop.on.update])
def test_who_is_done_with_a_field_that_is_gone_after_a_restart_is_told(
    decorator: Any, old: bool
) -> None:
    """Another handler of the same change was still at work."""
    registry = Registry()
    seen: list[Any] = []

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    async def keep(**_: Any) -> None:
        await fnop.sleep(2)

    def label(new: Any, **_: Any) -> None:
        seen.append(new)

    def label_with_old(old: Any, new: Any, **_: Any) -> None:
        seen.append(new)

    fn = label_with_old if old else label
    decorator(KIND, field="metadata.labels.x", registry=registry, id="label")(fn)
    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, metadata={"labels": {"x": "a"}}).settle(seconds=1)
    assert seen == ["a"]
    story.crash()
    story.edit(KIND, metadata={"labels": {"x": None}})
    assert story.settle()
    assert seen == ["a", None]


@pytest.mark.parametrize("others", [False, True])
def test_the_first_appearance_of_a_field_is_an_update(others: bool) -> None:
    """Whether other handlers have left a state on the object does not matter."""
    registry = Registry()
    seen: list[Any] = []

    @fnop.on.update(KIND, field="spec.zone", registry=registry)
    def zone(old: Any, new: Any, **_: Any) -> None:
        seen.append((old, new))

    if others:

        @fnop.on.create(KIND, registry=registry)
        def create(**_: Any) -> None:
            pass

    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, spec={"zone": "a"})
    assert story.settle()
    story.edit(KIND, spec={"zone": "b"})
    assert story.settle()
    assert seen == [(None, "a"), ("a", "b")]


def test_who_came_to_be_handled_by_a_label_is_created() -> None:
    """A creation handler whose filter begins to fit is called for the creation."""
    registry = Registry()
    called: list[str] = []

    @fnop.on.create(KIND, labels={"a": "b"}, registry=registry)
    def create(**_: Any) -> None:
        called.append("create")

    @fnop.on.update(KIND, labels={"a": "b"}, registry=registry)
    def update(**_: Any) -> None:
        called.append("update")

    story = Story(registry, [example(n=0)])
    assert story.settle()
    story.edit(KIND, metadata={"labels": {"a": "b"}})
    assert story.settle()
    assert called == ["create"]


# ---------------------------------------------- handlers with parts, and new releases


@pytest.mark.parametrize("crash", [False, True])
def test_a_handler_with_parts_is_done_with_a_view_of_the_creation_once(
    crash: bool,
) -> None:
    """Its parts have acted on the states that it was called with."""
    failing, called = [True], []
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    def first(**_: Any) -> None:
        if failing:
            raise fnop.TemporaryError("no", delay=15)

    @fnop.on.create(KIND, registry=registry)
    def second(**_: Any) -> None:
        pass

    @fnop.on.field(KIND, field="spec.n", labels={"l": "1"}, registry=registry)
    def field(**_: Any) -> None:
        pass

    @fnop.on.update(KIND, registry=registry)
    def update(**_: Any) -> None:
        called.append("update")
        for part in "pq":

            @fnop.subhandler(id=part)
            def sub(**_: Any) -> None:
                pass

    story = Story(registry, [example(n=1)])
    story.settle(seconds=2)
    story.edit(KIND, spec={"n": 2}, metadata={"labels": {"l": "1"}})
    story.settle(seconds=1)
    if crash:
        story.crash()
    failing.clear()
    assert story.settle()
    assert called == ["update"]


def new_handler(registry: Registry, what: str, called: list[str]) -> None:
    """The handlers that only a later release has."""

    def handler(**_: Any) -> None:
        called.append(what)

    match what:
        case "update":
            fnop.on.update(KIND, registry=registry, id="new")(handler)
        case "field":
            fnop.on.field(KIND, field="spec.n", registry=registry, id="new")(handler)
        case "update of a field":
            fnop.on.update(KIND, field="spec.n", registry=registry, id="new")(handler)
        case _:
            fnop.on.delete(KIND, registry=registry, id="new")(handler)


@pytest.mark.parametrize("what", ["update", "field", "update of a field", "delete"])
def test_a_release_with_more_handlers_comes_in_the_middle_of_a_creation(
    what: str,
) -> None:
    first, second = Registry(), Registry()
    called: list[str] = []

    @fnop.on.create(KIND, registry=first, id="a")
    def failing(**_: Any) -> None:
        raise fnop.TemporaryError("no", delay=2)

    @fnop.on.create(KIND, registry=second, id="a")
    def done(**_: Any) -> None:
        called.append("a")

    def other(**_: Any) -> None:
        pass

    for registry in (first, second):
        fnop.on.create(KIND, registry=registry, id="b")(other)
    new_handler(second, what, called)
    story = Story(first, [example(n=1)])
    story.settle(seconds=1)
    story.crash(Program(second.handlers))
    assert story.settle()
    # The creation goes on, and is one of the field.
    begun = ["a", "field"] if what == "field" else ["a"]
    assert called == begun
    story.edit(KIND, spec={"n": 2})
    assert story.settle()
    assert called == (begun if what == "delete" else [*begun, what])


@pytest.mark.parametrize("what", ["update", "field", "delete"])
def test_other_handlers_of_a_release_void_no_attempts(what: str) -> None:
    retries: list[int] = []
    releases = Registry(), Registry()
    for registry in releases:

        @fnop.on.create(KIND, registry=registry, id="a", retries=3)
        def failing(retry: int, **_: Any) -> None:
            retries.append(retry)
            raise fnop.TemporaryError("no", delay=20)

    new_handler(releases[1], what, [])
    story = Story(releases[0], [example(n=1)])
    story.settle(seconds=1)
    for number in range(8):
        story.crash(Program(releases[(number + 1) % 2].handlers))
        story.settle(seconds=5)
    story.settle()
    assert retries == [0, 1, 2]
