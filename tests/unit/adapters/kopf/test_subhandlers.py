"""Sub-handlers: rounds within the calls of the handler that declares them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.context import CURRENT, CurrentCall
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.core.handlers.declare import lifecycles
from tests.unit.adapters.kopf.simulated import KIND, example, simulated

Diary = list[Any]


def kept_on(run: Any) -> list[str]:
    """The names of Kopf's annotations on the object."""
    names = run.get()["metadata"].get("annotations") or {}
    return sorted(name.partition("/")[2] for name in names)


@pytest.mark.parametrize(
    ("lifecycle", "calls"),
    [
        (lifecycles.all_at_once, ["parent", "a", "b", "c"]),
        (lifecycles.one_by_one, ["parent", "a", "parent", "b", "parent", "c"]),
        (lifecycles.asap, ["parent", "a", "parent", "b", "parent", "c"]),
    ],
    ids=["all_at_once", "one_by_one", "asap"],
)
def test_a_round_calls_what_the_lifecycle_selects(
    registry: OperatorRegistry, diary: Diary, lifecycle: Any, calls: list[str]
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    def parent(**_: Any) -> Any:
        diary.append("parent")
        for name in "abc":

            @kopf.subhandler(id=name)
            def child(own: str = name, **_: Any) -> str:
                diary.append(own)
                return own.upper()

        return "whole"

    with simulated(registry, example(), lifecycle=lifecycle) as run:
        assert diary == calls
        assert run.status() == {
            "parent": "whole",
            "parent/a": "A",
            "parent/b": "B",
            "parent/c": "C",
        }
        assert kept_on(run) == ["last-handled-configuration"]
        assert run.errors() == []


def test_a_child_that_fails_is_tried_again_with_its_parent(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    async def parent(retry: int, **_: Any) -> None:
        @kopf.subhandler(id="good")
        async def good(**_: Any) -> None:
            diary.append(("good",))

        @kopf.subhandler(id="bad", backoff=10)
        def bad(retry: int, runtime: Any, **_: Any) -> str:
            diary.append((retry, round(runtime.total_seconds())))
            if retry < 2:
                raise ValueError("not yet")
            return "at last"

    with simulated(registry, example(), lifecycle=lifecycles.all_at_once) as run:
        assert diary == [("good",), (0, 0), (1, 10), (2, 20)]
        assert run.status() == {"parent/bad": "at last"}


def test_the_progress_of_children_is_stored_as_kopf_stores_it(
    registry: OperatorRegistry,
) -> None:
    theirs = pytest.importorskip("kopf")

    @kopf.on.create(KIND, id="parent", registry=registry)
    def parent(**_: Any) -> None:
        @kopf.subhandler(id="child")
        def child(retry: int, **_: Any) -> None:
            if retry < 1:
                raise kopf.TemporaryError("later", delay=1000)

    with simulated(registry) as run:
        run.apply(example()).settle(seconds=100)
        body = theirs.Body(run.get())
        record = theirs.SmartProgressStorage().fetch(key="parent/child", body=body)
        assert record["retries"] == 1
        assert record["purpose"] == "create"
        assert record["message"].endswith("later")
        run.settle(seconds=1000)
        assert kept_on(run) == ["last-handled-configuration"]


@pytest.mark.parametrize(
    ("options", "problem", "tries"),
    [
        ({}, kopf.PermanentError("no"), 1),
        ({"retries": 2, "backoff": 1}, ValueError("x"), 2),
        ({"errors": kopf.ErrorsMode.IGNORED}, ValueError("x"), 1),
        ({"timeout": 25, "backoff": 10}, ValueError("x"), 3),
    ],
    ids=range(4),
)
def test_a_child_gives_up_and_its_parent_ends(
    registry: OperatorRegistry,
    diary: Diary,
    options: dict[str, Any],
    problem: Exception,
    tries: int,
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    def parent(**_: Any) -> None:
        @kopf.subhandler(id="child", **options)
        def child(**_: Any) -> None:
            diary.append(1)
            raise problem

    @kopf.on.update(KIND, id="updated", registry=registry)
    def updated(**_: Any) -> None:
        diary.append("updated")

    with simulated(registry, example(size=1)) as run:
        assert diary == [1] * tries
        run.edit(spec={"size": 2})
        assert diary[-1] == "updated"


def test_children_get_the_arguments_of_their_parent_and_their_own(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="parent", param="of parent", registry=registry)
    def parent(patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
        memo.seen = True
        patch.status["by parent"] = 1

        @kopf.subhandler(id="child", param="of child", field="spec.size")
        async def child(**kwargs: Any) -> None:
            kwargs["patch"].status["by child"] = 2
            diary.append((threading.current_thread().name, kwargs))

    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2})
        ((thread, found),) = diary
        assert thread == "author"
        assert found["param"] == "of child"
        assert found["memo"].seen
        assert (found["old"], found["new"]) == (1, 2)
        assert [tuple(each) for each in found["diff"]] == [("change", (), 1, 2)]
        assert found["retry"] == 0
        assert run.status() == {"by parent": 1, "by child": 2}


def test_filters_select_children(registry: OperatorRegistry, diary: Diary) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    def parent(**_: Any) -> None:
        def declare(id: str, **filters: Any) -> None:
            kopf.register(lambda **_: diary.append(id), id=id, **filters)

        declare("label", labels={"app": "db"})
        declare("another label", labels={"app": "web"})
        declare("absent", annotations={"x": kopf.ABSENT})
        declare("present", annotations={"x": kopf.PRESENT})
        declare("when", when=lambda name, **_: name == "example-1")
        declare("when not", when=lambda **_: False)
        declare("neither", when=kopf.all_([kopf.not_(lambda spec, **_: spec)]))
        declare("both", when=kopf.all_([lambda spec, **_: spec, lambda **_: 1]))
        declare("field", field="spec.size")
        declare("no field", field="spec.other")
        declare("value", field="spec.size", value=lambda value, **_: value == 1)
        declare("another value", field="spec.size", value=2)

    thing = example(size=1)
    thing["metadata"]["labels"] = {"app": "db"}
    with simulated(registry, thing, lifecycle=lifecycles.all_at_once) as run:
        assert diary == ["label", "absent", "when", "both", "field", "value"]
        assert run.errors() == []


@pytest.mark.parametrize("lifecycle", [lifecycles.all_at_once, lifecycles.asap])
@pytest.mark.parametrize("also_creates", [True, False])
def test_children_of_a_resumption_leave_no_records(
    registry: OperatorRegistry, diary: Diary, lifecycle: Any, also_creates: bool
) -> None:
    """Else the next process would take them for children that have ended."""

    @kopf.on.resume(KIND, id="parent", registry=registry)
    async def parent(**_: Any) -> None:
        await kopf.execute(fns={"a": child})

    def child(**_: Any) -> None:
        kopf.register(lambda **_: diary.append("leaf"), id="leaf")

    if also_creates:
        kopf.on.create(KIND, id="other", registry=registry)(lambda **_: None)
    with simulated(registry, example()) as run:
        cluster = run.sim.cluster
    for count in (1, 2, 3):
        with simulated(registry, cluster=cluster, lifecycle=lifecycle) as run:
            assert len(diary) == count
            assert set(kept_on(run)) <= {"last-handled-configuration"}
            assert run.errors() == []
            run.settle(3600)
            assert len(diary) == count


@pytest.mark.parametrize("decorator", [kopf.on.create, kopf.on.update, kopf.on.delete])
def test_children_that_end_at_once_leave_no_records(
    registry: OperatorRegistry, diary: Diary, decorator: Any
) -> None:
    def parent(**_: Any) -> None:
        kopf.register(lambda **_: diary.append("a"), id="a")

    decorator(KIND, id="parent", registry=registry)(parent)
    manifest = example(size=1)
    manifest["metadata"]["finalizers"] = ["guest.example.com/stays"]
    with simulated(registry, manifest) as run:
        run.edit(spec={"size": 2}).delete()
        assert diary == ["a"]
        assert set(kept_on(run)) <= {"last-handled-configuration"}
        assert run.errors() == []


def test_children_may_have_children(registry: OperatorRegistry, diary: Diary) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    def parent(**_: Any) -> None:
        @kopf.subhandler(id="child")
        def child(**_: Any) -> None:
            @kopf.subhandler(id="grandchild")
            def grandchild(retry: int, **_: Any) -> str:
                diary.append(retry)
                if retry < 1:
                    raise kopf.TemporaryError("later", delay=5)
                return "done"

    with simulated(registry, example()) as run:
        assert diary == [0, 1]
        assert run.status() == {"parent/child/grandchild": "done"}
        assert kept_on(run) == ["last-handled-configuration"]


def test_rounds_of_children_are_attempts_of_their_parents(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    def parent(retry: int, **_: Any) -> None:
        diary.append(("parent", retry))

        @kopf.subhandler(id="child")
        def child(retry: int, **_: Any) -> None:
            diary.append(("child", retry))
            for name in "ab":
                kopf.register(lambda **_: None, id=name)

    @kopf.on.create(KIND, id="other", registry=registry)
    def other(**_: Any) -> None:
        diary.append("other")

    with simulated(registry, example(), lifecycle=lifecycles.asap) as run:
        first, second = (("parent", 0), ("child", 0)), (("parent", 1), ("child", 1))
        assert diary == [*first, "other", *second]
        assert run.errors() == []


def test_a_parent_has_as_many_rounds_as_attempts(
    registry: OperatorRegistry, diary: Diary, caplog: pytest.LogCaptureFixture
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry, retries=2)
    def parent(**_: Any) -> None:
        for name in "abc":
            kopf.register(lambda own=name, **_: diary.append(own), id=name)

    with simulated(registry, example(), lifecycle=lifecycles.asap) as run:
        assert diary == ["a", "b"]
        assert "Handler 'parent' has exceeded 2 retries." in caplog.messages
        assert kept_on(run) == ["last-handled-configuration"]


@pytest.mark.parametrize("form", ["ids", "functions"])
def test_children_keep_their_whole_ids(
    registry: OperatorRegistry, diary: Diary, form: str
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    def parent(**_: Any) -> None:
        for host in ("a.example.org", "b.example.org"):

            @kopf.subhandler(id=host if form == "ids" else None)
            def child(host: str = host, **_: Any) -> str:
                diary.append(host)
                return host

    with simulated(registry, example()) as run:
        if form == "ids":
            assert diary == ["a.example.org", "b.example.org"]
            assert run.status() == {
                "parent/a.example.org": "a.example.org",
                "parent/b.example.org": "b.example.org",
            }
        else:
            (name,) = run.status()
            assert name.startswith("parent/test_children_keep_their_whole_ids.<locals>")
            assert name.endswith(".parent.<locals>.child")


def test_fields_of_children_change_if_those_of_their_parent_do(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    @kopf.on.update(KIND, id="parent", registry=registry)
    def parent(reason: str, **_: Any) -> None:
        def declare(id: str, **filters: Any) -> None:
            @kopf.subhandler(id=id, **filters)
            def child(**_: Any) -> None:
                diary.append((str(reason), id))

        declare("size", field="spec.size")
        declare("from-1", field="spec.size", old=1)
        declare("to-2", field="spec.size", new=lambda value, **_: value == 2)
        declare("gone", field="spec.size", value=kopf.ABSENT)
        declare("other", field="spec.other")

    with simulated(registry, example(size=1), lifecycle=lifecycles.all_at_once) as run:
        # As in Kopf, there was no field before the creation.
        assert diary == [("create", "size"), ("create", "gone")]
        diary.clear()
        run.edit(spec={"size": 2})
        assert diary == [("update", id) for id in ("size", "from-1", "to-2")]
        diary.clear()
        run.edit(spec={"other": "x"})
        assert diary == [("update", "other")]
        diary.clear()
        run.edit(spec={"size": None})
        assert diary == [("update", "size"), ("update", "gone")]
        assert run.errors() == []


# ----------------------------------------------------------------------- execute


@pytest.mark.parametrize("form", ["mapping", "iterable", "registry", "declared"])
def test_execute_calls_children_now(
    registry: OperatorRegistry, diary: Diary, form: str
) -> None:
    def first(**_: Any) -> str:
        diary.append("first")
        return "x"

    async def second(**_: Any) -> None:
        diary.append("second")

    others = OperatorRegistry()
    if form == "registry":
        kopf.on.create(KIND, id="a", registry=others)(first)
        kopf.on.create(KIND, id="b", registry=others)(second)

    @kopf.on.create(KIND, id="parent", registry=registry)
    async def parent(**_: Any) -> None:
        match form:
            case "mapping":
                await kopf.execute(fns={"a": first, "b": second})
            case "iterable":
                await kopf.execute(fns=[first, second])
            case "registry":
                await kopf.execute(registry=others)
            case _:
                kopf.register(first, id="a")
                kopf.register(second, id="b")
                await kopf.execute()
        diary.append("after all of them")

    with simulated(registry, example(), lifecycle=lifecycles.asap) as run:
        assert diary == ["first", "second", "after all of them"]
        (name,) = run.status()
        assert name.startswith("parent/")
        assert name.endswith("first" if form == "iterable" else "a")


@pytest.mark.parametrize("lifecycle", [lifecycles.asap, lifecycles.all_at_once])
def test_several_executions_are_stages(
    registry: OperatorRegistry, diary: Diary, lifecycle: Any
) -> None:
    def part(name: str) -> Any:
        async def fn(**_: Any) -> str:
            diary.append(name)
            return name

        return fn

    @kopf.on.create(KIND, id="parent", registry=registry)
    async def parent(**_: Any) -> None:
        kopf.register(part("declared"), id="declared")
        await kopf.execute(fns={"a": part("a")})
        diary.append("a is over")
        await kopf.execute(fns={"b": part("b")})
        diary.append("b is over")

    with simulated(registry, example(), lifecycle=lifecycle) as run:
        assert diary == ["a", "a is over", "b", "b is over", "declared"]
        names = ("a", "b", "declared")
        assert run.status() == {f"parent/{name}": name for name in names}
        assert run.errors() == []


def test_declared_children_are_executed_once(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    async def parent(**_: Any) -> None:
        kopf.register(lambda **_: diary.append("child"), id="child")
        await kopf.execute()
        await kopf.execute()

    with simulated(registry, example()):
        assert diary == ["child"]


def test_execute_may_have_a_lifecycle_of_its_own(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="parent", registry=registry)
    async def parent(**_: Any) -> None:
        diary.append("parent")
        fns = {name: lambda own=name, **_: diary.append(own) for name in "abc"}
        await kopf.execute(fns=fns, lifecycle=lifecycles.all_at_once)

    with simulated(registry, example(), lifecycle=lifecycles.one_by_one):
        assert diary == ["parent", "a", "b", "c"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"fns": [], "registry": OperatorRegistry()},
        {"fns": [], "handlers": []},
        {"handlers": []},
        {"cause": object()},
    ],
    ids=["fns and registry", "fns and handlers", "handlers", "cause"],
)
async def test_execute_takes_one_thing(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"execute\(\) takes"):
        await kopf.execute(**wrong)


async def test_only_handlers_of_changes_execute() -> None:
    with pytest.raises(LookupError, match="no handler"):
        await kopf.execute(fns=[])
    CURRENT.set(CurrentCall("a", {}, None))
    with pytest.raises(LookupError, match="handlers of changes"):
        await kopf.execute(fns=[])
