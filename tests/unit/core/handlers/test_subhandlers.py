"""Subhandlers: declared while a handler runs; each has progress of its own."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from tests.simulations import Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def status_of(run: Scenario) -> dict[str, Any]:
    found = run.get(KIND)
    assert found is not None
    status = dict(found.get("status") or {})
    status.pop("fnop.dev/default", None)  # the stored state
    return status


def test_k_1_33_each_part_succeeds_by_itself(registry: Registry) -> None:
    calls: list[str] = []

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(spec: Any, **_: Any) -> str:
        calls.append("create")
        for item in spec["items"]:

            @fnop.subhandler(id=f"item-{item}")
            def part(item: str = item, **_: Any) -> str:
                calls.append(item)
                return item.upper()

        return "declared"

    run = Scenario(registry, [example(items=["a", "b"])])
    run.settle()
    assert calls == ["create", "a", "b"]
    assert status_of(run) == {
        "create": "declared",
        "create/item-a": "A",
        "create/item-b": "B",
    }


def test_a_part_is_retried_without_the_others_and_without_its_parent(
    registry: Registry,
) -> None:
    calls: list[str] = []

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        calls.append("create")

        @fnop.subhandler()
        def one(retry: int, **_: Any) -> None:
            calls.append(f"one {retry}")
            if retry < 2:
                raise fnop.TemporaryError("not yet", delay=10)

        @fnop.subhandler()
        def two(**_: Any) -> None:
            calls.append("two")

    run = Scenario(registry, [example()])
    run.settle()
    assert calls == ["create", "one 0", "two", "one 1", "one 2"]
    # What has been done is stored while a part waits, and forgotten at the end.
    assert len(run.writes) <= 3


def test_a_restart_runs_the_parent_and_only_the_parts_that_are_left(
    registry: Registry,
) -> None:
    calls: list[str] = []

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        calls.append("create")

        @fnop.subhandler()
        def one(**_: Any) -> None:
            calls.append("one")

        @fnop.subhandler()
        def two(**_: Any) -> None:
            calls.append("two")
            if calls.count("two") < 2:
                raise fnop.TemporaryError("not yet", delay=100)

    run = Scenario(registry, [example()])
    run.settle(seconds=50)
    assert calls == ["create", "one", "two"]
    run.crash()
    run.settle(seconds=500)
    assert calls == ["create", "one", "two", "create", "two"]


def with_a_failing_part(registry: Registry) -> Scenario:
    """A handler of two parts, one of which fails for good; settled."""

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        @fnop.subhandler()
        def one(**_: Any) -> None:
            raise fnop.PermanentError("never")

        @fnop.subhandler()
        def two(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    assert run.settle()
    return run


def test_a_part_that_fails_for_good_is_seen_by_its_parent(registry: Registry) -> None:
    run = with_a_failing_part(registry)
    assert run.machine.state.notes.failures == 1
    assert any("create/one failed for good" in line for line in run.lines)


def test_execute_waits_for_the_parts_and_tells_how_they_ended(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    def good(**_: Any) -> None: ...

    def late(retry: int, **_: Any) -> None:
        if retry == 0:
            raise fnop.TemporaryError("not yet", delay=30)

    def bad(**_: Any) -> None:
        raise fnop.PermanentError("never")

    @fnop.on.create(KIND, id="create", registry=registry)
    async def create(**_: Any) -> str:
        ends = await fnop.execute({"good": good, "late": late, "bad": bad})
        seen.append({name: end["finished"] for name, end in ends.items()})
        assert "never" in ends["bad"]["message"]
        return "all done"

    run = Scenario(registry, [example()])
    assert run.settle()
    assert seen[0] == {"good": "success", "late": "success", "bad": "failure"}
    assert status_of(run)["create"] == "all done"
    assert run.clock.elapsed >= 30
    assert any(line == "create handler create succeeded" for line in run.lines)


def test_parts_have_parts(registry: Registry) -> None:
    calls: list[str] = []

    @fnop.on.update(KIND, id="update", registry=registry)
    def update(diff: Any, **_: Any) -> None:
        @fnop.subhandler(id="outer")
        def outer(diff: Any, **_: Any) -> None:
            calls.append("outer")

            @fnop.subhandler(id="inner")
            def inner(new: Any, old: Any, **_: Any) -> str:
                calls.append(f"{old['spec']} {new['spec']}")
                return "deep"

    run = Scenario(registry, [example(field=1)])
    run.settle()
    run.edit(KIND, spec={"field": 2}).settle()
    assert calls == ["outer", "{'field': 1} {'field': 2}"]
    assert status_of(run)["update/outer/inner"] == "deep"


def test_the_patches_of_parts_are_written_together(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(patch: Any, **_: Any) -> None:
        patch.status["parent"] = 1
        for name in ("a", "b"):

            @fnop.subhandler(id=name)
            def part(patch: Any, key: str = name, **_: Any) -> None:
                patch.status[key] = 1

    run = Scenario(registry, [example()])
    assert run.settle()
    assert status_of(run) == {"parent": 1, "a": 1, "b": 1}
    assert len(run.writes) == 1


def test_a_new_change_begins_with_the_parent_again(registry: Registry) -> None:
    calls: list[str] = []

    @fnop.on.create(KIND, id="create", registry=registry)
    @fnop.on.update(KIND, id="update", registry=registry)
    def handle(spec: Any, **_: Any) -> None:
        for item in spec["items"]:

            @fnop.subhandler(id=item)
            def part(item: str = item, **_: Any) -> None:
                calls.append(item)

    run = Scenario(registry, [example(items=["a"])])
    run.settle()
    run.edit(KIND, spec={"items": ["b", "c"]}).settle()
    assert calls == ["a", "b", "c"]


def test_the_filters_of_a_part_leave_it_out(registry: Registry) -> None:
    calls: list[str] = []

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        @fnop.subhandler(labels={"app": "a"})
        def one(**_: Any) -> None:
            calls.append("one")

        @fnop.subhandler(field="spec.field", value=1)
        def two(new: int, **_: Any) -> None:
            calls.append(f"two {new}")

    run = Scenario(registry, [example(field=1)])
    assert run.settle()
    assert calls == ["two 1"]


def test_register_and_a_plan_declare_them_too(registry: Registry) -> None:
    calls: list[str] = []

    def part(name: str, **_: Any) -> None:
        calls.append(f"part of {name}")

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> Any:
        fnop.register(part, id="registered")
        return [fnop.execute({"executed": part}), fnop.patch(status={"x": 1})]

    run = Scenario(registry, [example()])
    assert run.settle()
    assert calls == ["part of example-1"] * 2
    assert status_of(run)["x"] == 1


def test_the_conversation_of_a_part_is_cancelled_with_its_object(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        @fnop.subhandler()
        async def wait(**_: Any) -> None:
            await fnop.sleep(10_000)

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    run.settle(seconds=10)
    run.delete(KIND).settle(seconds=10)
    assert run.get(KIND) is None
    assert any("create/wait is cancelled" in line for line in run.lines)


# ------------------------------------------------------------------ bad input


def test_two_parts_of_one_id_fail_their_parent(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    def create(**_: Any) -> None:
        for _each in range(2):

            @fnop.subhandler()
            def part(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    assert run.settle()
    assert any("declares two of the id 'part'" in line for line in run.lines)


def test_only_changes_have_parts(registry: Registry) -> None:
    @fnop.timer(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    def tick(**_: Any) -> None:
        @fnop.subhandler()
        def part(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    run.settle(seconds=1)
    assert any("only handlers of changes have sub-handlers" in x for x in run.lines)


@pytest.mark.parametrize("declare", [fnop.subhandler, fnop.execute])
def test_there_are_no_parts_outside_of_a_handler(declare: Any) -> None:
    with pytest.raises(RegistrationError, match="while it runs"):
        declare()


def test_an_unknown_option_of_a_part_is_refused(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    def create(**_: Any) -> None:
        @fnop.subhandler(retrys=3)  # type: ignore[call-arg]
        def part(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    assert run.settle()
    assert any("did you mean retries=?" in line for line in run.lines)


def test_a_part_can_ask_for_an_index(registry: Registry) -> None:
    @fnop.index(KIND, registry=registry)
    def names(name: str, **_: Any) -> dict[str, str]:
        return {"name": name}

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> None:
        @fnop.subhandler()
        def part(names: fnop.Index[str, str] = fnop.INDEX, **_: Any) -> Any:
            return fnop.result(names["name"])

    run = Scenario(registry, [example()])
    assert run.settle()
    assert status_of(run) == {"create/part": ["example-1"]}


def test_a_part_is_for_what_its_handler_is_for(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    def create(**_: Any) -> None:
        @fnop.subhandler(owner=KIND)  # type: ignore[call-arg]
        def part(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    assert run.settle()
    assert any("has no option owner=; it takes" in line for line in run.lines)


def test_a_part_that_asks_for_old_needs_a_parent_that_does(registry: Registry) -> None:
    @fnop.on.update(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    def update(**_: Any) -> None:
        @fnop.subhandler()
        def part(old: Any, **_: Any) -> None: ...

    run = Scenario(registry, [example(field=1)])
    run.settle()
    run.edit(KIND, spec={"field": 2}).settle()
    assert any("name old or diff there too" in line for line in run.lines)


def ends_of(run: Scenario) -> list[str]:
    """The log lines about ends, in order."""
    words = (" succeeded", " failed", " waits for ")
    return [line for line in run.lines if any(word in line for word in words)]


def test_a_handler_with_parts_tells_its_own_end(registry: Registry) -> None:
    """When its parts have ended, the inner ones first, and once."""

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        @fnop.subhandler()
        def outer(retry: int, **_: Any) -> None:
            @fnop.subhandler()
            def inner(**_: Any) -> None: ...

        @fnop.subhandler()
        def late(retry: int, **_: Any) -> None:
            if not retry:
                raise fnop.TemporaryError("not yet", delay=10)

    run = Scenario(registry, [example()])
    assert run.settle()
    assert ends_of(run) == [
        "create handler create waits for 2 sub-handlers",
        "create handler create/outer waits for 1 sub-handler",
        "create handler create/late failed, again in 10 s: TemporaryError: not yet",
        "create handler create/outer/inner succeeded",
        "create handler create/outer succeeded",
        "create handler create/late succeeded",
        "create handler create succeeded",
    ]


def test_a_handler_whose_part_fails_tells_which(registry: Registry) -> None:
    run = with_a_failing_part(registry)
    assert ends_of(run)[1:] == [
        "create handler create/one failed for good: PermanentError: never",
        "create handler create/two succeeded",
        "create handler create failed for good, as its sub-handler create/one has",
    ]
    told = next(say for say in run.said if "as its sub-handler" in say.message)
    assert told.error == "failed for good: PermanentError: never"
    assert run.machine.state.notes.failures == 1, "it is one failure"


def test_a_handler_whose_parts_are_all_left_out_tells_its_own_end(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, id="create", registry=registry)
    def create(**_: Any) -> None:
        @fnop.subhandler(labels={"never": "there"})
        def one(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    assert run.settle()
    assert ends_of(run)[-1] == "create handler create succeeded"
