"""Operators in one process: each has memos, indices and views of its own."""

from __future__ import annotations

import asyncio
import doctest
import functools
import json
import logging
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.arguments.bodies import Body, Cell
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running import operator as module
from fnop.adapters.kopf.running.embedding import _is_told
from fnop.adapters.kopf.running.handlers import run_activity
from fnop.adapters.kopf.running.operator import Operator
from fnop.core.handlers.declare.roles import Role
from fnop.core.operator.step import NEW
from fnop.core.seam.commands import Perform
from fnop.core.seam.inputs import Answered, EventPosted, WatchEvent
from fnop.core.values.body import Body as CoreBody
from fnop.core.values.errors import ErrorsMode
from fnop.core.values.now import Now
from fnop.effects import Create
from fnop.effects.outcomes import Unknown
from tests.unit.adapters.kopf.simulated import (
    KIND,
    Simulated,
    author_loop,
    example,
    simulated,
)

Diary = list[Any]


def test_a_memo_is_of_one_object_until_it_is_deleted(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="made", registry=registry)
    def made(memo: kopf.Memo, name: str, **_: Any) -> None:
        assert memo.lock == "operator"
        memo.size = name

    @kopf.on.update(KIND, id="updated", registry=registry)
    def updated(memo: kopf.Memo, **_: Any) -> None:
        diary.append(memo.get("size"))

    memo = kopf.Memo(lock="operator")
    with simulated(registry, example("a"), example("b"), memo=memo) as run:
        run.edit("a", spec={"size": 1}).edit("b", spec={"size": 1})
        assert diary == ["a", "b"]
        uid = run.get("a")["metadata"]["uid"]
        run.delete("a")
        assert run.operator.memos.of(uid) == {"lock": "operator"}
        assert memo == {"lock": "operator"}


def test_the_last_watch_event_has_the_memo_of_the_object(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.event(KIND, id="seen", registry=registry)
    def seen(memo: kopf.Memo, type: str, **_: Any) -> None:
        memo.count = memo.get("count", 0) + 1
        diary.append((type, memo.count))

    with simulated(registry, example("a")) as run:
        uid = run.get("a")["metadata"]["uid"]
        run.delete("a")
        assert diary == [("ADDED", 1), ("DELETED", 2)]
        assert run.operator.memos.of(uid, keep=False) == {}


class Posting:
    """Stands for the running operator, and for its event loop."""

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.state = NEW

    def post(self, _handler: str, manifest: dict[str, Any]) -> None:
        self.posted.append(manifest["message"])

    def is_closed(self) -> bool:
        return False

    def call_soon_threadsafe(self, fn: Any, *given: Any) -> None:
        fn(*given)


def test_an_event_is_posted_when_the_one_before_is_stored(
    registry: OperatorRegistry,
) -> None:
    with author_loop() as loop:
        mine = Operator(registry, OperatorSettings(), None, loop)
    posting: Any = Posting()
    mine.running = mine._serving = posting
    manifests = [{"kind": "Event", "message": text} for text in "abcd"]
    for each in manifests[:3]:
        mine.post("h", each)
    assert posting.posted == ["a"]

    def step(input: Any, *commands: Any) -> list[str]:
        mine.observe(Now(0.0, 0.0), input, commands)
        found: list[str] = posting.posted
        return found

    named = {"apiVersion": "v1", "metadata": {"name": "e"}}
    creation = Perform(7, Create({**named, **manifests[0]}))
    other = Perform(6, Create({**named, "kind": "Pod"}))
    assert step(EventPosted("h", manifests[0]), other, creation) == ["a"]
    assert step(Answered(6, Unknown("lost"))) == ["a"]
    assert step(Answered(7, Unknown("lost"))) == ["a", "b"]
    # It is about an Event, or the operator ends: nothing is sent.
    assert step(EventPosted("h", manifests[1])) == ["a", "b", "c"]
    creation = Perform(9, Create({**named, **manifests[2]}))
    assert step(EventPosted("h", manifests[2]), creation) == ["a", "b", "c"]
    assert step(Answered(9, Unknown("lost"))) == ["a", "b", "c"]
    mine.post("h", manifests[3])
    assert posting.posted == ["a", "b", "c", "d"]


def test_a_memo_may_be_of_the_authors_class(
    registry: OperatorRegistry, diary: Diary
) -> None:
    class Till:
        def __init__(self) -> None:
            self.sold: list[str] = []

    @kopf.on.create(KIND, id="made", registry=registry)
    def made(memo: Till, name: str, **_: Any) -> None:
        memo.sold.append(name)
        diary.append(memo)

    till = Till()
    with simulated(registry, example("a"), example("b"), memo=till):
        assert till.sold == ["a", "b"]
        assert all(isinstance(each, Till) and each is not till for each in diary)


def test_indices_are_arguments_of_all_handlers(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.index(KIND, id="by_colour", registry=registry)
    def by_colour(spec: kopf.Spec, name: str, **_: Any) -> Any:
        return {spec.get("colour"): name}

    @kopf.index(KIND, id="names", registry=registry)
    async def all_names(name: str, memo: kopf.Memo, **_: Any) -> Any:
        memo.indexed = True
        return name

    @kopf.on.update(KIND, id="updated", registry=registry)
    def updated(by_colour: kopf.Index, names: kopf.Index, memo: Any, **_: Any) -> None:
        assert memo.indexed
        diary.append({key: sorted(store) for key, store in by_colour.items()})
        diary.append(sorted(names[None]))

    with simulated(registry, example("a", colour="red"), example("b")) as run:
        run.edit("b", spec={"colour": "red"})
        assert diary == [{"red": ["a", "b"]}, ["a", "b"]]
        run.delete("a")
        assert [*run.operator.indices()["by_colour"]["red"]] == ["b"]
        assert "blue" not in run.operator.indices()["by_colour"]


def test_an_index_fails_for_its_object_alone(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.index(KIND, id="sizes", registry=registry)
    def sizes(spec: kopf.Spec, **_: Any) -> Any:
        return {"size": spec["size"]}

    @kopf.on.create(KIND, id="made", registry=registry)
    def made(sizes: kopf.Index, name: str, **_: Any) -> None:
        diary.append((name, sorted(sizes.get("size", ()))))

    with simulated(registry, example("a", size=1), example("b")):
        assert diary[-1] == ("b", [1])


def test_the_log_names_calls_of_index_functions(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    @kopf.index(
        KIND, id="sizes", when=lambda spec, **_: spec["size"], registry=registry
    )
    def sizes(spec: kopf.Spec, logger: kopf.Logger, **_: Any) -> Any:
        logger.info("looking")
        return {"size": 1 / (spec["size"] - 1)}

    caplog.set_level("DEBUG", "kopf.objects")
    with simulated(registry, example("a", size=3)) as run:
        assert caplog.messages == ["looking", "Indexer 'sizes' succeeded."]
        caplog.clear()
        run.apply(example("b", size=1), example("c")).settle()
        told, untold = (each for each in run.said if each.level == "error")
    failed = "Indexer 'sizes' failed with an exception and will ignore it"
    assert caplog.messages == ["looking", f"{failed}: division by zero"]
    # The filter has failed without a line of its own.
    assert (_is_told(told), _is_told(untold)) == (True, False)


def test_filters_and_callbacks_see_indices_and_memos(
    registry: OperatorRegistry, diary: Diary
) -> None:
    kopf.index(KIND, id="names", registry=registry)(lambda name, **_: {name: 1})

    def is_known(name: str, names: kopf.Index, memo: kopf.Memo, **_: Any) -> bool:
        memo.asked = name
        return "a" in names

    @kopf.on.create(KIND, id="made", when=is_known, registry=registry)
    def made(memo: kopf.Memo, **_: Any) -> None:
        diary.append(memo.asked)

    with simulated(registry, example("a")) as run:
        run.apply(example("b")).settle()
        assert "b" in diary


def _has_own_size(name: str, spec: Any, sizes: kopf.Index, **_: Any) -> bool:
    return spec.get("size") in sizes.get(name, ())


def _has_own_size_by_kwargs(**kwargs: Any) -> bool:
    return _has_own_size(**kwargs)


# Filters that ask for an index by its name, and in other ways.
FILTERS = {
    "by name": _has_own_size,
    "**kwargs": _has_own_size_by_kwargs,
    "wrapped": functools.wraps(_has_own_size)(lambda **given: _has_own_size(**given)),
    "partial": functools.partial(_has_own_size, more=1),
    "combined": kopf.all_([_has_own_size, kopf.not_(lambda name, **_: name == "x")]),
}


@pytest.mark.parametrize("when", FILTERS.values(), ids=FILTERS)
def test_filters_see_the_version_of_an_index_that_has_come_with_the_event(
    registry: OperatorRegistry, diary: Diary, when: Any
) -> None:
    options: Any = {"when": when, "registry": registry}

    @kopf.index(KIND, id="sizes", registry=registry)
    def sizes(name: str, spec: kopf.Spec, **_: Any) -> Any:
        return {name: spec.get("size")}

    @kopf.on.create(KIND, id="made", **options)
    @kopf.on.update(KIND, id="edited", field="spec.size", **options)
    def changed(name: str, reason: str, **_: Any) -> None:
        diary.append(f"{reason} {name}")

    @kopf.on.event(KIND, id="seen", **options)
    def seen(name: str, type: str | None, spec: kopf.Spec, **_: Any) -> None:
        diary.append(f"{type} {name} {spec['size']}")

    @kopf.on.delete(KIND, id="gone", **options)
    def gone(name: str, **_: Any) -> None:
        diary.append(f"delete {name}")

    with simulated(registry, example("a", size=1)) as run:
        assert {"create a", "ADDED a 1"} <= {*diary}
        diary.clear()
        run.edit("a", spec={"size": 2})
        assert {"update a", "MODIFIED a 2"} <= {*diary}
        run.delete("a")
        assert "delete a" in diary


def test_two_operators_in_one_process_do_not_see_each_other(diary: Diary) -> None:
    registries = {name: OperatorRegistry() for name in "ab"}
    for name, registry in registries.items():

        @kopf.index(KIND, id="sizes", registry=registry)
        def sizes(spec: kopf.Spec, own: str = name, **_: Any) -> Any:
            return {own: spec["size"]}

        @kopf.on.create(KIND, id="made", registry=registry)
        def made(memo: kopf.Memo, sizes: kopf.Index, own: str = name, **_: Any) -> Any:
            diary.append((own, memo.of, {k: [*v] for k, v in sizes.items()}))
            return own

    with author_loop() as loop:
        runs = {
            name: Simulated(registry, loop, memo=kopf.Memo(of=name))
            for name, registry in registries.items()
        }
        for size, run in enumerate(runs.values()):
            run.settle().apply(example(size=size)).settle()
        for run in runs.values():
            run.operator.settings.execution.executor.shutdown()
    assert diary == [("a", "a", {"a": [0]}), ("b", "b", {"b": [1]})]
    assert [run.status() for run in runs.values()] == [{"made": "a"}, {"made": "b"}]


def test_its_finalizer_is_that_of_its_settings(registry: OperatorRegistry) -> None:
    kopf.on.delete(KIND, registry=registry)(lambda **_: None)
    settings = OperatorSettings()
    settings.persistence.finalizer = "example.com/held"
    with simulated(registry, example(), settings=settings) as run:
        assert run.get()["metadata"]["finalizers"] == ["example.com/held"]
        assert run.delete().get() is None


def test_its_storages_are_those_of_its_settings(registry: OperatorRegistry) -> None:
    kopf.on.create(KIND, registry=registry)(lambda **_: None)
    settings = OperatorSettings()
    settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(name="own")
    with simulated(registry, example(size=1), settings=settings) as run:
        assert "annotations" not in run.get()["metadata"]
        stored = run.status()["own"]["last-handled-configuration"]
        assert stored == '{"spec":{"size":1}}'


# ------------------------------------------------------------------- views of daemons


def test_views_of_a_daemon_show_the_newest_object(registry: OperatorRegistry) -> None:
    with author_loop() as loop:
        operator = Operator(registry, OperatorSettings(), None, loop)
        old = {"metadata": {"name": "a", "uid": "u"}, "spec": {"size": 1}}
        new = {"metadata": {"name": "a", "uid": "u"}, "spec": {"size": 2}}
        cell, still = Cell(old), Cell(old)
        other = {"metadata": {"name": "b", "uid": "v"}, "spec": {"size": 9}}
        spec = Body(cell).spec
        with operator.live(cell):
            for each in (other, new):
                observe(operator, "MODIFIED", each)
            assert spec["size"] == 2
            assert Body(still).spec["size"] == 1
        observe(operator, "MODIFIED", old)
        assert spec["size"] == 2, "its daemon has ended"


def observe(operator: Operator, type: Any, data: dict[str, Any]) -> None:
    watched = WatchEvent(1, type, CoreBody(data))
    operator.observe(None, watched, ())  # type: ignore[arg-type]


def test_several_daemons_may_look_at_one_object(registry: OperatorRegistry) -> None:
    with author_loop() as loop:
        operator = Operator(registry, OperatorSettings(), None, loop)
        data = {"metadata": {"name": "a", "uid": "u"}, "spec": {"size": 1}}
        first, second = Cell(data), Cell(data)
        with operator.live(first):
            with operator.live(second):
                pass
            observe(operator, "MODIFIED", {**data, "spec": {"size": 2}})
            assert Body(first).spec["size"] == 2


def test_a_declaration_has_the_errors_of_its_kind_of_handler(
    registry: OperatorRegistry,
) -> None:
    kopf.on.event(KIND, registry=registry)(print)
    kopf.on.startup(registry=registry)(print)
    kopf.on.startup(errors=ErrorsMode.IGNORED, registry=registry)(print)
    with author_loop() as loop:
        operator = Operator(registry, OperatorSettings(), None, loop)
        assert [operator.errors_of(each) for each in registry.entries] == [
            ErrorsMode.IGNORED,
            ErrorsMode.TEMPORARY,
            ErrorsMode.IGNORED,
        ]
        assert operator.activity_logger(Role.STARTUP).name == "kopf.activities.startup"


def test_a_login_has_kopfs_name_of_its_activity(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.login(registry=registry)
    def login(activity: str, logger: logging.Logger, **_: Any) -> None:
        diary.append((activity, logger.name))

    with author_loop() as loop:
        operator = Operator(registry, OperatorSettings(), None, loop)
        work = run_activity(operator, registry.entries[0], 0, 0.0)
        asyncio.run_coroutine_threadsafe(work, loop).result()
    assert diary == [("authentication", "kopf.activities.authentication")]


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0


def handled_spec(run: Simulated) -> Any:
    """The spec in the last-handled object."""
    notes = run.get()["metadata"]["annotations"]
    return json.loads(notes["kopf.zalando.org/last-handled-configuration"])["spec"]


@pytest.mark.parametrize("decorator", ["create", "resume", "field", "update"])
def test_the_last_handled_object_is_renewed_whoever_looks_at_changes(
    registry: OperatorRegistry, decorator: str
) -> None:
    """Else an update handler that is added later would be called for old changes."""
    more = {"field": "spec.size"} if decorator == "field" else {}
    calls: list[str] = []

    def handle(reason: Any, **_: Any) -> None:
        calls.append(str(reason))

    getattr(kopf.on, decorator)(KIND, registry=registry, **more)(handle)
    with simulated(registry, example("example-1", size=1)) as run:
        seen = len(calls)
        run.edit(spec={"other": 2})
        assert handled_spec(run) == {"size": 1, "other": 2}
        assert len(calls) - seen == (decorator == "update")
        run.settle(3600)
        before = run.get()["metadata"]["resourceVersion"]
        assert run.settle(3600).get()["metadata"]["resourceVersion"] == before
