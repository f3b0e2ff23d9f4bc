"""What `fnop plan --kopf --takeover` lists is what the operator then calls.

Each object has a state that Kopf may leave. One plan is made for all of them, and then
the operator runs. Daemons and timers are only planned: `test_kopf_switch.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from fnop import kopf
from fnop.adapters.kopf.arguments.patches import Patch
from fnop.adapters.kopf.commands.planning import planned_by
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.declaring.storages import (
    AnnotationsDiffBaseStorage,
    AnnotationsProgressStorage,
    ProgressRecord,
    SmartProgressStorage,
    StatusDiffBaseStorage,
    StatusProgressStorage,
)
from fnop.adapters.kopf.running.operator import Operator
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.now import wall_text
from fnop.core.values.table import NOTHING, Table
from fnop.effects.values import thaw_json
from fnop.interpreters.plan.facts import Plan
from fnop.interpreters.plan.planner import Planner
from fnop.interpreters.runtime.clock import EPOCH
from tests.plans import Served, due_of, planned
from tests.simulations import Scenario
from tests.unit.adapters.kopf.simulated import KIND, Simulated, author_loop, example

PREFIX = "my.example.com"
FINALIZER = "my.example.com/held"
OTHER = "example.com/other"
Json = dict[str, Any]


def storages(name: str) -> OperatorSettings:
    """Settings with storages of one kind."""
    settings = OperatorSettings()
    found = settings.persistence
    found.finalizer = FINALIZER
    match name:
        case "status":
            found.progress_storage = StatusProgressStorage(name="mine")
            found.diffbase_storage = StatusDiffBaseStorage(name="mine")
        case "annotations":
            found.progress_storage = AnnotationsProgressStorage(prefix=PREFIX)
            found.diffbase_storage = AnnotationsDiffBaseStorage(prefix=PREFIX)
        case _:
            found.progress_storage = SmartProgressStorage(prefix=PREFIX)
            found.diffbase_storage = AnnotationsDiffBaseStorage(prefix=PREFIX)
    return settings


def record(purpose: str, **more: Any) -> ProgressRecord:
    """A record as Kopf stores it, of a handler that began ten seconds ago."""
    given = {"started": moment(-10), "retries": 1, "success": False, "failure": False}
    found: ProgressRecord = {"purpose": purpose, **given, **more}  # type: ignore[typeddict-item]
    return found


def moment(seconds: float) -> str:
    return wall_text(EPOCH + seconds).replace("Z", "+00:00")


SIZE = Table({"size": 1})


class State(NamedTuple):
    """The state of an object, and the calls that are due, by their reasons.

    `handled` is its spec when it was handled; None if it never was.
    """

    due: Mapping[str, str] = NOTHING
    spec: Mapping[str, Any] = SIZE
    handled: Mapping[str, Any] | None = None
    records: Mapping[str, ProgressRecord] = NOTHING
    held: tuple[str, ...] = (FINALIZER,)
    is_deleting: bool = False
    annotations: Mapping[str, str] = NOTHING
    is_selected: bool = True


FIELDS = ("sized/spec.size", "phased/status.phase")
CREATED = ("created", "other", *FIELDS, "created_or_resumed")
UPDATED = ("updated", "sized/spec.size", "updated_or_resumed")
RESUMED = ("resumed", "created_or_resumed")
DELETED = ("deleted", "deleted_too")
GIVES_UP = record("create", failure=True)
SUCCEEDS = record("create", success=True)
RETRIES = record("create", delayed=moment(30))


def due(**whys: tuple[str, ...]) -> dict[str, str]:
    return {name: why for why, names in whys.items() for name in names}


STATES: Mapping[str, State] = {
    "never-seen": State(due(first=CREATED), held=()),
    "handled": State(due(start=(*RESUMED, "updated_or_resumed")), handled=SIZE),
    "edited-while-down": State(
        due(first=UPDATED, start=RESUMED), spec={"size": 2}, handled=SIZE
    ),
    "edited-elsewhere": State(
        due(first=("updated", "updated_or_resumed"), start=RESUMED),
        spec={"size": 1, "more": 1},
        handled=SIZE,
    ),
    "half-retried": State(
        due(retry=("created",), first=("other", "created_or_resumed")),
        records={"created": RETRIES, **dict.fromkeys(FIELDS, SUCCEEDS)},
    ),
    "failed-and-retried": State(
        due(retry=("other",)),
        records={
            "created": GIVES_UP,
            "other": RETRIES,
            **dict.fromkeys(FIELDS, SUCCEEDS),
            "created_or_resumed": SUCCEEDS,
        },
    ),
    "failed-in-part": State(
        due(retry=("updated",), start=RESUMED),
        spec={"size": 2},
        handled=SIZE,
        records={
            "updated": record("update"),
            "sized/spec.size": record("update", failure=True),
            "updated_or_resumed": record("update", success=True),
        },
    ),
    "reverted": State(
        due(start=(*RESUMED, "updated_or_resumed")),
        handled=SIZE,
        records={"updated": record("update")},
    ),
    "timed-out": State(
        due(first=(*CREATED,)),
        spec={"size": 1, "hurries": True},
        records={"in_time": record("create", started=moment(-1000))},
    ),
    "deleted": State(due(first=DELETED), handled=SIZE, is_deleting=True),
    "deleted-and-retried": State(
        due(retry=("deleted",)),
        handled=SIZE,
        is_deleting=True,
        records={
            "deleted": record("delete"),
            "deleted_too": record("delete", success=True),
        },
    ),
    "deleted-unhandled": State(due(first=(*DELETED, *FIELDS)), is_deleting=True),
    "held-by-others": State(handled=SIZE, held=(OTHER,), is_deleting=True),
    "stored-elsewhere": State(
        due(again=CREATED),
        held=(),
        annotations={"other.example.com/last-handled-configuration": "{}"},
    ),
    "held-and-stored-elsewhere": State(
        due(start=(*RESUMED, "updated_or_resumed")),
        annotations={"other.example.com/last-handled-configuration": "{}"},
    ),
    "of-two-operators": State(
        due(retry=("created",), first=("other", "created_or_resumed")),
        records={"created": RETRIES, **dict.fromkeys(FIELDS, SUCCEEDS)},
        annotations={"other.example.com/last-handled-configuration": "{}"},
    ),
    "with-parts": State(
        due(retry=("parent", "parent/b")),
        spec={"size": 1, "parts": True},
        records={
            "parent": record("create", subrefs=["parent/a", "parent/b"]),
            "parent/a": SUCCEEDS,
            "parent/b": record("create", retries=0, started=moment(-5)),
            **dict.fromkeys(CREATED, SUCCEEDS),
        },
    ),
    "unselected": State(held=(), is_selected=False),
}


def always(state: State) -> set[str]:
    """The handlers that each start calls for an object, whatever it has handled."""
    if not state.is_selected:
        return set()
    return {"looks"} if state.is_deleting else {"looks", "ticks", "stays"}


def operator(
    diary: set[tuple[str, str]], *, resumes_first: bool, has_background: bool
) -> OperatorRegistry:
    """An operator that notes its calls."""
    registry = OperatorRegistry()
    selected = {"labels": {"served": "yes"}, "registry": registry}

    def noting(id: str) -> Callable[..., None]:
        def handler(name: str, **_: Any) -> None:
            diary.add((id, name))

        return handler

    def declare(id: str, *decorators: Any, **options: Any) -> None:
        fn, options = noting(id.partition("/")[0]), {"id": id, **selected, **options}
        for each in decorators:
            each(KIND, **options)(fn)

    on = kopf.on
    both = ([on.resume] * resumes_first, [on.resume] * (not resumes_first))
    declare("created", on.create)
    declare("other", on.create)
    declare("created_or_resumed", *both[0], on.create, *both[1])
    declare("updated", on.update)
    declare("updated_or_resumed", *both[0], on.update, *both[1])
    declare("sized", on.field, field="spec.size")
    declare("phased", on.field, field="status.phase")
    declare("resumed", on.resume)
    declare("deleted", on.delete)
    declare("deleted_too", on.delete)
    declare("in_time", on.create, timeout=100, when=_asks_for("hurries"))
    declare("looks", on.event)
    if has_background:
        declare("ticks", kopf.timer, interval=1e6, initial_delay=60)
        declare("stays", kopf.daemon)

    @on.create(KIND, id="parent", when=_asks_for("parts"), **selected)
    def parent(name: str, **_: Any) -> None:
        diary.add(("parent", name))
        for each in "ab":
            kopf.register(noting(f"parent/{each}"), id=each)

    return registry


def _asks_for(word: str) -> Callable[..., bool]:
    def asks(spec: Mapping[str, Any], **_: Any) -> bool:
        return bool(spec.get(word))

    return asks


def cluster_with(settings: OperatorSettings) -> Any:
    """A simulated cluster in which each object has its state."""
    run = Scenario(Registry())
    for name, state in STATES.items():
        thing = example(name, **state.spec)
        thing["metadata"] |= {
            "finalizers": [*state.held],
            "annotations": {**state.annotations},
            "labels": {"served": "yes" if state.is_selected else "no"},
        }
        run.apply(thing)
        patch = stored(settings, thing, state)
        status = {"phase": "Ready", **patch.pop("status", {})}
        run.edit(KIND, name, **patch).edit(KIND, f"{name}/status", status=status)
        if state.is_deleting:
            run.delete(KIND, name)
    return run.cluster


def stored(settings: OperatorSettings, thing: Json, state: State) -> Json:
    """The patch by which Kopf's storages keep the state."""
    patch, found = Patch(), settings.persistence
    for name, each in state.records.items():
        found.progress_storage.store(key=name, record=each, body=thing, patch=patch)
    if state.handled is not None:
        was = {**thing, "spec": {**state.handled}, "status": {"phase": "Ready"}}
        essence = found.diffbase_storage.build(
            body=was, extra_fields=["spec.size", "status.phase"]
        )
        found.diffbase_storage.store(body=thing, patch=patch, essence=essence)
    plain: Json = thaw_json(dict(patch))
    return plain


def plan_for(registry: OperatorRegistry, storage: str, cluster: Any) -> Plan:
    settings = storages(storage)
    with author_loop() as loop:
        mine = Operator(registry, settings, None, loop)
        program, begins = planned_by(mine, ())
        api = Served(cluster, EPOCH)
        planner = Planner(program, api, wall=EPOCH, begins=begins)
        try:
            return planned(planner, takeover=True)
        finally:
            settings.execution.executor.shutdown()


def calls_of(registry: OperatorRegistry, storage: str, cluster: Any) -> None:
    """Let the operator do what is due within two minutes."""
    settings = storages(storage)
    with author_loop() as loop:
        try:
            Simulated(registry, loop, settings=settings, cluster=cluster).settle(120.0)
        finally:
            settings.execution.executor.shutdown()


@pytest.mark.parametrize(
    ("storage", "resumes_first"),
    [("smart", True), ("annotations", False), ("status", True)],
)
def test_the_listed_calls_are_those_that_a_run_begins_with(
    storage: str, resumes_first: bool
) -> None:
    diary: set[tuple[str, str]] = set()
    cluster = cluster_with(storages(storage))
    for_plan, for_run = (
        operator(diary, resumes_first=resumes_first, has_background=each)
        for each in (True, False)
    )
    plan = plan_for(for_plan, storage, cluster)
    assert diary == set(), "a plan calls no handler"
    listed: dict[str, dict[str, str]] = {name: {} for name in STATES}
    for why, _, id, name in due_of(plan):
        listed[name][id] = why
    for name, state in STATES.items():
        every = dict.fromkeys(always(state), "start")
        assert (name, listed[name]) == (name, {**state.due, **every})
    made = {each.subject.name for each in plan.calls if each.subject is not None}
    assert made == {name for name, ids in listed.items() if ids}
    calls_of(for_run, storage, cluster)
    assert {
        name: {_word_of(id) for id in ids} - {"ticks", "stays"}
        for name, ids in listed.items()
    } == {name: {word for word, other in diary if other == name} for name in STATES}


def _word_of(id: str) -> str:
    """The id of a handler, without its field."""
    return id if id.startswith("parent") else id.partition("/")[0]
