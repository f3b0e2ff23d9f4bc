"""States in Kopf's form: either framework continues what the other has begun."""

from __future__ import annotations

import doctest
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.kopf.arguments.bodies import Body as KopfBody
from fnop.adapters.kopf.declaring.settings import PersistenceSettings
from fnop.adapters.kopf.declaring.storages import (
    AnnotationsDiffBaseStorage,
    AnnotationsProgressStorage,
    MultiDiffBaseStorage,
    MultiProgressStorage,
    StatusDiffBaseStorage,
    StatusProgressStorage,
)
from fnop.adapters.kopf.running import states as module
from fnop.adapters.kopf.running.states import KopfStates, record_of, wall_of
from fnop.core.handlers.declare.declaring import handler_outside
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Role
from fnop.core.memory.observation import Essence, Observation, see
from fnop.core.memory.progress import Progress
from fnop.core.memory.stored_state import Stored, Unreadable
from fnop.core.values.body import Body
from fnop.core.values.merge import applied
from fnop.effects.structs import replace

theirs = pytest.importorskip("kopf")

FINALIZER = PersistenceSettings().finalizer
SIZE = ("spec", "size")
PHASE = ("status", "phase")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "shop",
        "uid": "u",
        "labels": {"app": "db"},
        "annotations": {"note": "x"},
    },
    "spec": {"size": 1},
    "status": {"phase": "Ready", "other": 1},
}


def handler(role: Role, id: str, **options: Any) -> Handler:
    def fn(**_: Any) -> None: ...

    return handler_outside(role, ("pods",), {"id": id, **options}, fn, "", fn)


HANDLERS = (
    handler(Role.CREATE, "made"),
    handler(Role.UPDATE, "sized", field="spec.size"),
    handler(Role.DELETE, "gone"),
    handler(Role.EVENT, "seen"),
)
IDS = ["made", "sized/spec.size", "gone"]


def states_of(
    persistence: PersistenceSettings | None = None,
    fields: tuple[Any, ...] = (SIZE,),
    handlers: Iterable[Handler] = HANDLERS,
) -> KopfStates:
    found = persistence or PersistenceSettings()
    return KopfStates(found, lambda *_: fields, handlers)


def observation(states: KopfStates, *fields: Any) -> Observation:
    scopes = ((), SIZE, *fields)
    return Observation(scopes, scopes, hidden=Essence(states.essence))


def changed(body: dict[str, Any], patch: Any) -> dict[str, Any]:
    found: dict[str, Any] = applied(patch, body)
    return found


def written(
    states: KopfStates, stored: Stored, body: dict[str, Any] = POD
) -> dict[str, Any]:
    """The object after a write of this state."""
    return changed(body, states.write(stored, Body(body)))


def read(states: KopfStates, body: dict[str, Any]) -> Any:
    return states.read(Body(body), observation(states))


def handled(states: KopfStates, body: dict[str, Any] = POD, **progress: Any) -> Stored:
    return Stored(see(Body(body), observation(states)), progress=progress)


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0


# ------------------------------------------------------------- last-handled object


def test_kopf_reads_the_object_that_fnop_has_handled() -> None:
    states = states_of()
    after = theirs.Body(written(states, handled(states)))
    storage = theirs.AnnotationsDiffBaseStorage()
    found = storage.fetch(body=after)
    assert found == storage.build(body=theirs.Body(POD))
    assert found == storage.build(body=after), "its own traces are no change"


def test_fnop_reads_the_object_that_kopf_has_handled() -> None:
    states, storage, patch = (
        states_of(),
        theirs.AnnotationsDiffBaseStorage(),
        theirs.Patch(),
    )
    body = theirs.Body(POD)
    storage.store(body=body, patch=patch, essence=storage.build(body=body))
    after = changed(POD, dict(patch))
    found = read(states, after)
    assert found.seen == see(Body(after), observation(states))
    changed_since = changed(after, {"spec": {"size": 2}})
    assert read(states, changed_since).seen == found.seen
    assert found.seen.values.parsed[""]["spec"] == {"size": 1}


def test_a_state_that_is_written_is_read() -> None:
    states = states_of()
    stored = handled(states)
    assert read(states, written(states, stored)) == stored


def test_an_object_without_traces_is_new() -> None:
    states = states_of()
    assert read(states, POD) is None
    assert read(states, {"metadata": {}}) is None


def test_a_write_of_what_is_there_is_empty() -> None:
    states = states_of()
    after = written(states, handled(states))
    assert states.write(handled(states, after), Body(after)) == {}


def test_only_changes_of_the_essence_write_it_again() -> None:
    states = states_of()
    after = written(states, handled(states))
    other = changed(after, {"status": {"phase": "Gone"}, "metadata": {"name": "b"}})
    assert states.write(handled(states, other), Body(other)) == {}
    other = changed(after, {"spec": {"size": 2}})
    assert states.write(handled(states, other), Body(other)) != {}


def test_a_creation_that_is_under_way_has_no_last_handled_object() -> None:
    states = states_of()
    stored = Stored(
        see(Body(POD), observation(states)),
        creating=True,
        progress={"made": Progress("create:", 1, 5.0, 9.0)},
    )
    after = written(states, stored)
    assert theirs.AnnotationsDiffBaseStorage().fetch(body=theirs.Body(after)) is None
    found = read(states, after)
    assert found.creating
    assert found.progress == stored.progress


@pytest.mark.parametrize("fields", [(), (PHASE,)])
def test_fields_of_the_status_are_in_the_essence_if_handlers_name_them(
    fields: tuple[Any, ...],
) -> None:
    states = states_of(fields=fields)
    found = states.essence(POD)
    wanted = theirs.AnnotationsDiffBaseStorage().build(
        body=theirs.Body(POD), extra_fields=fields
    )
    assert found == wanted
    assert ("status" in found) is bool(fields)
    stored = Stored(see(Body(POD), observation(states, *fields)))
    after = written(states, stored)
    kept = theirs.AnnotationsDiffBaseStorage().fetch(body=theirs.Body(after))
    assert kept == wanted


def test_a_kind_that_is_not_known_yet_is_asked_for_again() -> None:
    found: list[Any] = [None, (PHASE,), ()]
    states = KopfStates(PersistenceSettings(), lambda *_: found.pop(0), HANDLERS)
    assert "status" not in states.essence(POD)
    assert "status" in states.essence(POD)
    assert "status" in states.essence(POD)
    assert found == [()], "what is known is kept"


# ------------------------------------------------------------------------- progress

PURPOSES = {"made": "create", "sized/spec.size": "update", "gone": "delete"}
WALLS = st.integers(0, 2_000_000_000_000_000).map(lambda micro: micro / 1_000_000)


@st.composite
def progresses(draw: st.DrawFn) -> tuple[str, Progress]:
    id = draw(st.sampled_from(IDS))
    finished = draw(st.sampled_from([None, "success", "failure"]))
    return id, Progress(
        f"{PURPOSES[id]}:",
        draw(st.integers(0, 20)),
        draw(WALLS),
        None if finished else draw(st.none() | WALLS),
        finished=finished,
        message=draw(st.none() | st.text(max_size=5)),
    )


def facts(progress: Progress) -> tuple[Any, ...]:
    """All that a record keeps; times to the microsecond."""
    times = (progress.started, progress.until)
    return (
        progress.aim.partition(":")[0],
        progress.retries,
        *(None if each is None else round(each, 5) for each in times),
        progress.finished,
        progress.message,
    )


FEW = settings(max_examples=30)


def about(states: KopfStates, progress: Mapping[str, Progress]) -> Stored:
    return replace(handled(states), progress=progress)


@FEW
@given(progresses())
def test_progress_that_is_written_is_read(case: tuple[str, Progress]) -> None:
    id, progress = case
    states = states_of()
    after = written(states, about(states, {id: progress}))
    (found,) = read(states, after).progress.items()
    assert found[0] == id
    assert facts(found[1]) == facts(progress)
    again = Stored(read(states, after).seen, progress={id: found[1]})
    assert states.write(again, Body(after)) == {}


@FEW
@given(progresses())
def test_kopf_reads_the_progress_that_fnop_has_written(
    case: tuple[str, Progress],
) -> None:
    id, progress = case
    states = states_of()
    after = written(states, about(states, {id: progress}))
    record = theirs.SmartProgressStorage().fetch(key=id, body=theirs.Body(after))
    assert record["purpose"] == PURPOSES[id]
    assert record["retries"] == progress.retries
    assert record.get("message") == progress.message
    assert record["success"] is (progress.finished == "success")
    assert record["failure"] is (progress.finished == "failure")
    for name, wall in (("started", progress.started), ("delayed", progress.until)):
        assert (name in record) is (wall is not None)
        assert wall_of(record.get(name)) == pytest.approx(wall)


@FEW
@given(progresses())
def test_fnop_reads_the_progress_that_kopf_has_written(
    case: tuple[str, Progress],
) -> None:
    id, progress = case
    states, patch = states_of(), theirs.Patch()
    theirs.SmartProgressStorage().store(
        key=id, record=record_of(progress), body=theirs.Body(POD), patch=patch
    )
    found = read(states, changed(POD, dict(patch)))
    assert found.creating, "nothing has been handled yet"
    assert facts(found.progress[id]) == facts(progress)


def test_progress_belongs_to_one_handling_whatever_changes() -> None:
    states = states_of()
    after = written(
        states, handled(states, made=Progress("update:", finished="success"))
    )
    found = read(states, after).progress["made"]
    assert (found.aim, found.acted) == ("update:", "")


def test_a_record_without_a_purpose_is_about_a_creation() -> None:
    states, patch = states_of(), theirs.Patch()
    storage = theirs.AnnotationsProgressStorage()
    storage.store(key="made", record={"retries": 3}, body=theirs.Body(POD), patch=patch)
    found = read(states, changed(POD, dict(patch))).progress["made"]
    assert found.aim.startswith("create:")
    assert (found.retries, found.started, found.until) == (3, None, None)


def test_a_record_of_a_resumption_counts_in_the_next_process() -> None:
    states, patch = states_of(), theirs.Patch()
    record = {"purpose": "resume", "retries": 2}
    storage = theirs.AnnotationsProgressStorage()
    storage.store(key="made", record=record, body=theirs.Body(POD), patch=patch)
    found = read(states, changed(POD, dict(patch))).progress["made"]
    assert (found.aim, found.retries) == ("resume:", 2)


def test_finished_progress_is_purged_with_its_cycle() -> None:
    states = states_of()
    busy = written(
        states, handled(states, made=Progress("update:", finished="success"))
    )
    after = written(states, handled(states), busy)
    assert read(states, after).progress == {}
    names = [*after["metadata"]["annotations"]]
    assert names == ["note", "kopf.zalando.org/last-handled-configuration"]


def test_a_touch_of_kopf_is_removed() -> None:
    states, patch = states_of(), theirs.Patch()
    theirs.SmartProgressStorage().touch(body=theirs.Body(POD), patch=patch, value="now")
    touched = changed(POD, dict(patch))
    assert "touch-dummy" in str(touched)
    assert "touch-dummy" not in str(written(states, handled(states), touched))


@pytest.mark.parametrize("parent", ["made", "sized/spec.size"])
def test_records_of_sub_handlers_stay_as_long_as_their_parent(parent: str) -> None:
    states = states_of()
    storage, patch = AnnotationsProgressStorage(), theirs.Patch()
    child, grandchild = f"{parent}/a", f"{parent}/a/b"
    children = {parent: [child], child: [grandchild], grandchild: None}
    for key, names in children.items():
        record: Any = {"retries": 1, "subrefs": names}
        storage.store(key=key, record=record, body=theirs.Body(POD), patch=patch)
    busy = written(
        states,
        replace(handled(states), progress={parent: Progress("update:", 1)}),
        changed(POD, dict(patch)),
    )
    assert storage.fetch(key=grandchild, body=KopfBody(busy))
    removal = states.remove(Body(busy))
    assert set(removal["metadata"]["annotations"].values()) == {None}
    for after in (written(states, handled(states), busy), changed(busy, removal)):
        for key in children:
            assert storage.fetch(key=key, body=KopfBody(after)) is None


def test_a_record_names_no_handlers_of_others() -> None:
    states, storage = states_of(), AnnotationsProgressStorage()
    patch = theirs.Patch()
    for key, names in {"made": ["other", 5, "madeup"], "other": None}.items():
        record: Any = {"retries": 1, "subrefs": names}
        storage.store(key=key, record=record, body=theirs.Body(POD), patch=patch)
    after = written(states, handled(states), changed(POD, dict(patch)))
    assert "other" in str(after["metadata"]["annotations"])


def test_a_removal_leaves_the_last_handled_object_as_kopf_does() -> None:
    states = states_of()
    after = written(states, handled(states, gone=Progress("delete:", 1)))
    patch = states.remove(Body(after))
    assert patch == {"metadata": {"annotations": {"kopf.zalando.org/gone": None}}}
    assert states.remove(Body(changed(after, patch))) == {}


# ------------------------------------------------------------------- own storages


@pytest.mark.parametrize(
    "storage",
    [
        StatusProgressStorage(),
        StatusProgressStorage(field="status.kopf.progress"),
        StatusProgressStorage(field="status.operator.deep.progress"),
        AnnotationsProgressStorage(prefix="x.example.com"),
        MultiProgressStorage([StatusProgressStorage(), AnnotationsProgressStorage()]),
    ],
    ids=range(5),
)
def test_removed_records_leave_nothing_to_compare(storage: Any) -> None:
    """A check compares the ends of runs: in some of them a handler was retried."""
    persistence = PersistenceSettings(progress_storage=storage)
    states = states_of(persistence)
    retried = handled(states, made=Progress(retries=1, started=0.0, aim="create:"))
    body = written(states, replace(retried, creating=True))
    body = written(states, replace(handled(states), creating=True), body)
    assert changed(body, states.clears(Body(body))) == POD


def test_the_author_selects_the_storages() -> None:
    class Labelled(StatusDiffBaseStorage):
        """Only labels count."""

        def build(self, *, body: Any, extra_fields: Any = None) -> Any:
            return {"labels": dict(body.meta.labels)}

    persistence = PersistenceSettings(
        diffbase_storage=Labelled(name="own"),
        progress_storage=StatusProgressStorage(name="own"),
    )
    states = states_of(persistence)
    assert states.essence(POD) == {"labels": {"app": "db"}}
    patch = states.write(handled(states, made=Progress("update:", 1, 0.0)), Body(POD))
    assert patch.keys() == {"status"}
    assert patch["status"]["own"]["progress"]["made"]["retries"] == 1
    found = read(states, changed(POD, patch))
    assert found.progress["made"].retries == 1
    assert found.seen.values.parsed[""] == {"labels": {"app": "db"}}


@pytest.mark.parametrize("taken", ["status", "metadata"])
@pytest.mark.parametrize("step", [1, -1])
def test_all_members_of_a_storage_are_written_by_two_requests(
    taken: str, step: int
) -> None:
    """Those of the status are written by a request of their own, before or after."""
    diffbases = [StatusDiffBaseStorage(), AnnotationsDiffBaseStorage()]
    progresses = [StatusProgressStorage(), AnnotationsProgressStorage()]
    persistence = PersistenceSettings(
        diffbase_storage=MultiDiffBaseStorage(diffbases[::step]),
        progress_storage=MultiProgressStorage(
            [progresses[0], MultiProgressStorage(progresses[1:])][::step]
        ),
    )
    states = states_of(persistence)
    stored = handled(states, made=Progress("update:", 1, 0.0))
    patch = states.write(stored, Body(POD))
    assert patch.keys() == {"status", "metadata"}
    between = changed(POD, {taken: patch.pop(taken)})
    assert states.write(stored, Body(between)) == patch
    after = changed(between, patch)
    assert states.write(stored, Body(after)) == {}
    for diffbase in diffbases:
        assert diffbase.fetch(body=KopfBody(after)) == states.essence(POD)
    for progress in progresses:
        assert progress.fetch(key="made", body=KopfBody(after))


@pytest.mark.parametrize("field", ["spec.size", "spec"])
def test_changes_that_the_storage_ignores_are_none_of_a_field(field: str) -> None:
    ignoring = AnnotationsDiffBaseStorage(ignored_fields=["spec.size"])
    path = tuple(field.split("."))
    states = states_of(PersistenceSettings(diffbase_storage=ignoring), (path,))
    look = Observation(((), path), ((), path), hidden=Essence(states.essence))
    first = changed(POD, {"spec": {"kept": 1}})
    after = written(states, Stored(see(Body(first), look)), first)
    storage = theirs.AnnotationsDiffBaseStorage(ignored_fields=["spec.size"])
    stored = storage.fetch(body=theirs.Body(after))
    assert stored == storage.build(body=theirs.Body(first))

    def is_change(later: dict[str, Any]) -> bool:
        found: Any = states.read(Body(later), look)
        digests: bool = found.seen.digests != see(Body(later), look).digests
        return digests

    for size in (1, 2, None):
        assert not is_change(changed(after, {"spec": {"size": size}}))
    assert is_change(changed(after, {"spec": {"size": 2, "kept": 2}}))


def test_storages_may_be_replaced_before_the_first_use() -> None:
    persistence = PersistenceSettings()
    states = states_of(persistence)
    persistence.diffbase_storage = AnnotationsDiffBaseStorage(prefix="example.com")
    persistence.progress_storage = AnnotationsProgressStorage(prefix="example.com")
    after = written(states, handled(states))
    assert sorted(after["metadata"]["annotations"]) == [
        "example.com/kopf-managed",
        "example.com/last-handled-configuration",
        "note",
    ]


# -------------------------------------------------------------- objects of others


def held(**more: Any) -> dict[str, Any]:
    """An object with the finalizer of this operator."""
    meta = {**POD["metadata"], "finalizers": [FINALIZER]}
    return changed({**POD, "metadata": meta}, more)


FOREIGN = {
    "annotation": {
        "metadata": {"annotations": {"x.io/last-handled-configuration": "{}"}}
    },
    "status": {"status": {"own": {"last-handled-configuration": "{}"}}},
}


@pytest.mark.parametrize("place", FOREIGN)
def test_an_object_that_was_handled_with_other_storages_is_refused(place: str) -> None:
    states = states_of()
    found = read(states, held(**FOREIGN[place]))
    assert isinstance(found, Unreadable)
    assert "settings.persistence.diffbase_storage" in found.problem
    assert read(states, changed(POD, FOREIGN[place])) is None, "it is not held by it"


def test_an_object_with_the_finalizer_alone_is_new() -> None:
    assert read(states_of(), held()) is None


def test_a_time_is_read_with_and_without_a_zone() -> None:
    for text in ("1970-01-01T00:00:01.500000+00:00", "1970-01-01T00:00:01.500000"):
        assert wall_of(text) == 1.5
    assert wall_of(None) is None
    assert wall_of(5) is None
