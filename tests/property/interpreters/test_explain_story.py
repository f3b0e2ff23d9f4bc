"""`fnop explain` works for any object that an API server may show."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings as tried, strategies as st

from fnop.adapters.reports.explain_report import as_json, as_lines
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.observation import Observation, see
from fnop.core.memory.progress import Progress
from fnop.core.memory.storage import AnnotationStorage
from fnop.core.memory.stored_state import Stored, write_stored
from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.interpreters.explain.facts import (
    ChildFact,
    Evidence,
    HandlerFact,
    fields_within,
)
from fnop.interpreters.explain.recorded import recorded_of
from fnop.interpreters.explain.telling import explain
from tests.property.strategies import json_objects, json_values
from tests.thorough import examples

THINGS = Resource("e.com", "v1", "things", "Thing", "thing", subresources=("status",))
WALL = 1_800_000_000.0
MARKER = "fnop.dev/default"
times = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2027-01-15T08:00:10.5+00:00",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+23:59",
        "soon",
    ]
)
anything = (
    json_values | times | st.sampled_from(["\x1b[2J\r\nx", "True", "False", MARKER])
)


def sometimes(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mappings with some of the fields, each as it should be or anything."""
    return st.fixed_dictionaries(
        {}, optional={name: each | anything for name, each in fields.items()}
    )


trees: st.SearchStrategy[Any] = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(
        st.sampled_from([".", "f:spec", "f:a", 'k:{"n":1}', "v:2", "odd"]), inner
    ),
    max_leaves=6,
)
managed = st.lists(
    sometimes(
        manager=st.sampled_from([MARKER, "kubectl", "fnop.dev/b"]),
        operation=st.sampled_from(["Apply", "Update"]),
        time=times,
        fieldsV1=trees,
    )
    | anything,
    max_size=3,
)
progress = sometimes(
    aim=st.sampled_from(["", "create:1:0", "update:x", "delete:", "odd"]),
    retries=st.integers(0, 9),
    started=times,
    until=times,
    finished=st.sampled_from(["success", "failure"]),
    message=st.text(max_size=9),
    waits=st.booleans(),
)
states: st.SearchStrategy[Any] = (
    sometimes(
        v=st.integers(0, 3),
        uid=st.just("u"),
        seen=st.dictionaries(
            st.sampled_from(["", "/spec", "odd"]), st.text(max_size=4)
        ),
        was=st.dictionaries(st.sampled_from(["", "/spec"]), json_values),
        progress=st.dictionaries(st.text(max_size=5), progress | anything, max_size=2),
        creating=st.booleans(),
        ignoring=st.lists(st.sampled_from(["/spec/a", "odd", ""]), max_size=2),
    ).map(json.dumps)
    | anything
)
conditions = st.lists(
    sometimes(
        type=st.sampled_from([MARKER, "Ready", "Synced"]),
        status=st.sampled_from(["True", "False"]),
        reason=st.sampled_from(["CreateFailed", "UpdateWaiting", "Failing", "Pending"]),
        message=st.sampled_from(["a: failed for good: x; b: has timed out", ""]),
        lastTransitionTime=times,
        observedGeneration=st.integers(0, 3),
    )
    | anything,
    max_size=3,
)
metas = sometimes(
    name=st.just("x"),
    namespace=st.just("n"),
    uid=st.just("u"),
    generation=st.integers(0, 3),
    creationTimestamp=times,
    deletionTimestamp=times,
    finalizers=st.lists(
        st.sampled_from([MARKER, "fnop.dev/b", "x", "orphan"]) | anything, max_size=3
    ),
    ownerReferences=st.lists(sometimes(kind=st.text(), name=st.text()), max_size=2),
    annotations=st.dictionaries(st.sampled_from([MARKER, "a"]), states, max_size=2),
    labels=st.dictionaries(st.text(max_size=3), anything, max_size=2),
    managedFields=managed,
    resourceVersion=st.just("7"),
)
objects = st.builds(
    lambda rest, meta, status: {**rest, "metadata": meta, "status": status},
    json_objects,
    metas | anything,
    st.builds(
        lambda state, found: {MARKER: state, "conditions": found}, states, conditions
    )
    | anything,
)
children = st.builds(
    lambda body: ChildFact(THINGS, body),
    st.builds(lambda meta, body: {**body, "metadata": meta}, metas, json_objects),
)
events = sometimes(
    involvedObject=sometimes(uid=st.just("u"), kind=st.text(), name=st.text()),
    lastTimestamp=times,
    count=st.integers(),
    reason=st.text(max_size=5),
    message=st.text(max_size=5),
    series=sometimes(count=st.integers(), lastObservedTime=times),
)
leases = st.builds(
    lambda meta, spec: {"metadata": meta, "spec": spec},
    metas,
    sometimes(
        holderIdentity=st.text(max_size=3),
        leaseDurationSeconds=st.integers(-1, 10**400),
        renewTime=times,
    ),
)
peerings = st.builds(
    lambda meta, status: {"metadata": meta, "status": status},
    metas,
    st.dictionaries(
        st.text(max_size=3),
        sometimes(
            priority=st.integers(),
            lifetime=st.floats(allow_nan=False, allow_infinity=False)
            | st.integers(0, 10**400),
            lastseen=times,
            message=st.text(max_size=3),
        ),
        max_size=3,
    ),
)
settings = st.sampled_from(
    [
        Settings(),
        Settings(storage=AnnotationStorage("example.com")),
        Settings(state_keys=("k" * 32,)),
    ]
)


@tried(max_examples=examples(40))
@given(
    objects,
    st.lists(children, max_size=2),
    st.lists(events, max_size=3),
    st.lists(leases, max_size=2),
    st.lists(peerings, max_size=2),
    settings,
)
def test_a_story_is_told_of_anything(
    body: Any, some: Any, told: Any, memberships: Any, places: Any, given: Settings
) -> None:
    evidence = Evidence(
        THINGS,
        body,
        WALL,
        given,
        tuple(told),
        tuple(some),
        tuple(memberships),
        tuple(places),
        handlers=(HandlerFact("f", "create", None),),
        unread=("x",),
    )
    story = explain(evidence)
    assert story.advice
    assert story == explain(evidence)
    json.dumps(as_json(story), allow_nan=False)
    assert "What now" in [*as_lines(story)]


@tried(max_examples=examples(50))
@given(json_objects, json_objects)
def test_a_change_is_told_unless_there_is_none(was: Any, now: Any) -> None:
    observation = Observation(((),), ((),))
    before = {"metadata": {"uid": "u"}, **was}
    text = write_stored(Stored(see(Body(before), observation)), "u")
    meta = {"uid": "u", "name": "x", "annotations": {MARKER: text}}
    story = explain(Evidence(THINGS, {**now, "metadata": meta}, WALL, Settings()))
    same = see(Body({**now, "metadata": meta}), observation).digests
    differs = same != see(Body(before), observation).digests
    assert story.state.handled == "yes"
    assert bool(story.state.changed) == differs
    for path in story.state.changed:
        assert path.split(".")[0].strip("/") in {*was, *now, ""} or "/" in path


@given(st.sampled_from(["success", "failure", None]), st.booleans())
def test_a_record_is_told_of_as_it_stands(finished: Any, waits: bool) -> None:
    digest = see(Body({"spec": 1}), Observation(((),))).digests[""]
    until = None if finished else WALL + 90
    record = Progress(f"update:{digest}", 2, WALL - 9, until, waits=waits)
    record = replace(record, finished=finished, message=None if finished else "no")
    seen = see(Body({"spec": 0}), Observation(((),)))
    text = write_stored(Stored(seen, progress={"f": record}), "u")
    body = {"metadata": {"uid": "u", "annotations": {MARKER: text}}, "spec": 1}
    [found] = explain(Evidence(THINGS, body, WALL, Settings())).state.handlers
    waiting = "waiting" if waits else "retrying"
    stages = {"success": "done", "failure": "failed", None: waiting}
    assert (found.id, found.stage, found.reason) == ("f", stages[finished], "update")


@tried(max_examples=examples(50))
@given(trees | json_values)
def test_fields_of_any_tree_are_named(tree: Any) -> None:
    assert all(fields_within(tree))


records = sometimes(
    wall=st.floats(allow_nan=False) | st.integers(),
    input=sometimes(
        **{"in": st.sampled_from(["Started", "WatchEvent", "ListItem", "Answered"])},
        id=st.integers(0, 2),
        type=st.sampled_from(["ADDED", "DELETED"]),
        body=objects,
        outcome=sometimes(**{"is": st.sampled_from(["Applied", "Refused"])}),
    ),
    commands=st.lists(
        sometimes(
            do=st.sampled_from(["Say", "Perform"]),
            subject=st.sampled_from(["n/x", "x"]),
            id=st.integers(0, 2),
            handler=st.text(max_size=3),
            message=st.text(max_size=3),
            resource=st.just("things.v1.e.com"),
            effect=sometimes(
                **{"is": st.sampled_from(["Patch", "Call"])},
                function=st.just("m:f"),
                merge=json_objects,
                json=st.lists(sometimes(path=st.text()), max_size=2),
            ),
        )
        | anything,
        max_size=3,
    ),
)


@tried(max_examples=examples(50))
@given(st.lists(records.filter(lambda each: isinstance(each, dict)), max_size=5))
def test_a_recording_of_anything_is_told(found: Any) -> None:
    told = recorded_of(found, THINGS, "n", "x")
    assert all(isinstance(each.what, str) for each in told)
