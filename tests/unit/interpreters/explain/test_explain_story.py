"""The diagnosis and the text of `fnop explain`, case by case."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fnop.adapters.reports.explain_report import FORMAT_VERSION, as_json, as_lines
from fnop.core.api.resources import Resource
from fnop.core.children.marks import APPLIED_ANNOTATION, SET_LABEL
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.observation import ABSENT, Observation, Seen, see
from fnop.core.memory.progress import Progress
from fnop.core.memory.seals import seal_of
from fnop.core.memory.storage import StatusStorage
from fnop.core.memory.stored_state import Stored, write_stored
from fnop.core.values.body import Body
from fnop.core.values.now import wall_seconds
from fnop.effects.structs import replace
from fnop.interpreters.explain.facts import ChildFact, Evidence, HandlerFact, Recorded
from fnop.interpreters.explain.recorded import LINES_MAX, recorded_of
from fnop.interpreters.explain.story import Story
from fnop.interpreters.explain.telling import explain

THINGS = Resource("e.com", "v1", "things", "Thing", "thing", subresources=("status",))
SECRETS = Resource("", "v1", "secrets", "Secret", "secret")
MARKER = "fnop.dev/shop"
SETTINGS = Settings("shop")
WALL = 1_800_000_000.0
KEY = "k" * 32


def at(seconds: float) -> str:
    """The time this number of seconds from now."""
    return wall_seconds(WALL + seconds)


def thing(spec: Any = None, **meta: Any) -> dict[str, Any]:
    status = meta.pop("status", {})
    found = {
        "name": "x",
        "namespace": "n",
        "uid": "u",
        "generation": 3,
        "resourceVersion": "7",
        "creationTimestamp": at(-3600),
        **meta,
    }
    body = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": found}
    return {**body, "spec": spec or {"size": 1}, "status": status}


def state(spec: Any, *, keep: bool = True, **more: Any) -> str:
    """The state of an operator that has handled this spec."""
    scope: tuple[str, ...] = ()
    observation = Observation((scope,), (scope,) if keep else ())
    seen = see(Body({"spec": spec}), observation)
    return write_stored(Stored(seen, **more), "u")


def handled(*, now: Any = None, meta: Any = None, **more: Any) -> dict[str, Any]:
    """An object of that operator, which may have been changed since."""
    spec = {"size": 1}
    return thing(now or spec, status={MARKER: state(spec, **more)}, **(meta or {}))


def condition(
    type: str, status: str, reason: str, message: str = "", **more: Any
) -> Any:
    found = {"type": type, "status": status, "reason": reason, "message": message}
    return {**found, "lastTransitionTime": at(-60), **more}


def kept(condition: dict[str, Any]) -> dict[str, Any]:
    """An object of a reconcile handler, with this condition."""
    return thing(finalizers=[MARKER], status={"conditions": [condition]})


def entry(manager: str, fields: Any, seconds: float = 0, **more: Any) -> dict[str, Any]:
    """A managed fields entry of a manager."""
    found = {"manager": manager, "time": at(seconds), "fieldsV1": fields}
    return {**found, "operation": "Update", **more}


def lease(renewed: float, holder: str = "pod-1") -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    meta = {"name": "fnop-shop", "namespace": "ops"}
    return {"metadata": meta, "spec": {**spec, "renewTime": at(renewed)}}


def peering(**records: dict[str, Any]) -> dict[str, Any]:
    status = {
        name.replace("__", "/"): {"lifetime": 60, "lastseen": at(-5), **each}
        for name, each in records.items()
    }
    return {"metadata": {"name": "default"}, "status": status}


def told(body: dict[str, Any], **evidence: Any) -> Story:
    given = {"settings": SETTINGS, **evidence}
    return explain(Evidence(THINGS, body, WALL, **given))


def text_of(story: Story) -> str:
    return "\n".join(as_lines(story))


def advice(story: Story) -> list[str]:
    return [each.about for each in story.advice]


def indexed() -> dict[str, Any]:
    """A handled object whose handlers observe the values of two indices, too."""
    digests = see(Body({"spec": {"size": 1}}), Observation(((),))).digests
    entries = {f"/@index/{name}/configure~1{name} keys": ABSENT for name in ("a", "b")}
    stored = write_stored(Stored(Seen({**digests, **entries})), "u")
    return thing({"size": 1}, status={MARKER: stored})


CREATE = f"create:{see(Body({'spec': {'size': 1}}), Observation(((),))).digests['']}"
RETRY = Progress(CREATE, 4, WALL - 60, WALL + 12, message="TemporaryError: no")
DELETING = {"deletionTimestamp": at(-300)}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], list[str]]] = {
    "handled": (
        handled(),
        {},
        ["done"],
        ["Nothing to do: the object is handled as it is now for generation 3."],
    ),
    "handled, as far as is known without indices": (
        indexed(),
        {},
        ["done"],
        [
            "Its handlers observe a, b, too: the values of an index are unknown",
            "Use fnop plan to see whether the operator would call them.",
        ],
    ),
    "changed since": (
        handled(now={"size": 2, "mode": "a"}),
        {},
        ["pending"],
        [
            "A change of spec.mode, spec.size is not handled yet.",
            "If that lasts, either no operator named shop runs",
        ],
    ),
    "changed, by digests alone": (
        handled(now={"size": 2}, keep=False),
        {},
        ["pending"],
        ["A change of a part of it is not handled yet.", "changed since: something"],
    ),
    "retried": (
        handled(creating=True, progress={"price_of": RETRY}),
        {},
        ["waiting"],
        ["retry 4 of price_of in 12s (TemporaryError: no)", "4 attempts"],
    ),
    "begun for a former version": (
        handled(
            now={"size": 2},
            progress={"resize": replace(RETRY, aim="update:1:0")},
        ),
        {},
        ["pending"],
        [
            "A change of spec.size is not handled yet; begun: resize.",
            "resize  to be called for this version",
        ],
    ),
    "begun for this version, of a field": (
        handled(progress={"tell": replace(RETRY, aim="update:1:0")}),
        {},
        ["waiting"],
        ["retry 4 of tell in 12s"],
    ),
    "retried too late": (
        handled(creating=True, progress={"price_of": replace(RETRY, until=WALL - 600)}),
        {},
        ["overdue"],
        ["retry 4 of price_of was due 10m ago", "Does shop run?"],
    ),
    "retried by nobody": (
        handled(creating=True, progress={"price_of": RETRY}),
        {"leases": (lease(-900),)},
        ["no-operator", "waiting"],
        ["No operator named shop is alive (pod-1 has not renewed its lease in ops"],
    ),
    "failed, by the condition": (
        thing(
            status={
                MARKER: state({"size": 1}),
                "conditions": [
                    condition(
                        MARKER,
                        "False",
                        "CreateFailed",
                        "a: failed for good: no; sorry; b: has timed out after 3 s: x",
                    )
                ],
            }
        ),
        {},
        ["failed"],
        [
            "2 handlers of its creation failed for good, 60s ago:",
            "\n    a: no; sorry\n",
            "\n    b: has timed out after 3 s: x\n",
            "as it is now, and 2 handlers failed for good",
        ],
    ),
    "of a newer release": (
        thing(status={MARKER: '{"v":9,"uid":"u"}'}),
        {},
        ["unreadable"],
        ["it was written by a newer release (v9)"],
    ),
    "a state that is none": (
        thing(annotations={MARKER: "{"}),
        {},
        ["unreadable"],
        [
            "the state in an annotation cannot be read",
            "kubectl annotate things.e.com/x -n n fnop.dev/shop-",
        ],
    ),
    "a namesake's state": (
        thing(status={MARKER: '{"v":1,"uid":"other"}'}),
        {},
        ["unreadable"],
        ["it is of another object", "handles the object as a new one"],
    ),
    "being deleted, retried": (
        handled(
            progress={"drop": replace(RETRY, aim="delete:x")},
            meta={**DELETING, "finalizers": [MARKER]},
        ),
        {},
        ["deleting"],
        [
            "waiting to be deleted for 5m, held by fnop.dev/shop until its handlers",
            "retry 4 of drop in 12s",
        ],
    ),
    "being deleted, and nothing is known": (
        thing(**DELETING, finalizers=[MARKER]),
        {
            "children": (
                ChildFact(SECRETS, {"metadata": {"labels": {SET_LABEL: "s"}}}),
                ChildFact(
                    SECRETS,
                    {"metadata": {"labels": {SET_LABEL: "s"}, "namespace": "n"}},
                ),
            )
        },
        ["deleting"],
        [
            "held by fnop.dev/shop until 1 child and its deletion handlers are done.",
            "Does shop run?",
            "fnop uninstall operator.py --name shop",
        ],
    ),
    "being deleted, by nobody": (
        thing(**DELETING, finalizers=[MARKER]),
        {"leases": (lease(-900, holder=""),)},
        ["no-operator", "deleting"],
        ["is held by nobody", "fnop uninstall operator.py --name shop"],
    ),
    "being deleted, held by others": (
        thing(**DELETING, finalizers=["foregroundDeletion", "a.com/b", "fnop.dev/z"]),
        {},
        ["held", "held"],
        [
            "fnop.dev/z is of another operator of fnop, named z",
            "foregroundDeletion: the garbage collector deletes its children first",
            "\n    a.com/b\n",
            "Whoever has put it there has to take it off.",
        ],
    ),
    "frozen by a person": (
        handled(),
        {
            "peerings": (
                peering(
                    **{"ann@desk": {"priority": 100, "message": "moving"}},
                    **{"op__1": {"priority": 0}},
                ),
            )
        },
        ["frozen", "done"],
        ["The operators are frozen by ann@desk (moving), for 55s yet."],
    ),
    "frozen, but not by this person": (
        handled(),
        {
            "peerings": (
                peering(
                    **{"ann@desk": {"priority": 100}}, **{"op-1": {"priority": 200}}
                ),
            )
        },
        ["done"],
        ["peering object default: op-1 (priority 200), alive"],
    ),
    "an operator with the priority of a freeze": (
        handled(),
        {"peerings": (peering(**{"op-5d9f-x": {"priority": 100}}),)},
        ["done"],
        ["op-5d9f-x (priority 100), alive"],
    ),
    "tied": (
        handled(),
        {"peerings": (peering(op__1={"priority": 0}, op__2={"priority": 0}),)},
        ["frozen", "done"],
        ["several have the same priority: op/1, op/2"],
    ),
    "nobody in the peering object": (
        handled(),
        {"peerings": (peering(),)},
        ["no-operator", "done"],
        ["Nobody is in the peering object default: no operator runs, unless shop"],
    ),
    "standalone, beside an empty peering object": (
        handled(meta={"managedFields": [entry(MARKER, {}, -2)]}),
        {"peerings": (peering(),)},
        ["done"],
        ["shop: wrote last 2s ago", "runs: it has written without them since"],
    ),
    "alone, without a lease or a peering object": (
        handled(),
        {},
        ["done"],
        ["not known whether it runs: without leader election and peering, an operator"],
    ),
    "gone where one may look": (
        handled(),
        {"leases": (lease(-900),), "sees_operators": False},
        ["done"],
        ["not known whether it runs: not all leases and peering objects may be read"],
    ),
    "another tool's Synced": (
        thing(status={"conditions": [condition("Synced", "False", "Failing", "x")]}),
        {},
        ["unmarked"],
        ["Synced  False"],
    ),
    "alive": (
        handled(),
        {"leases": (lease(-2),)},
        ["done"],
        ["lease ops/fnop-shop: held by pod-1, renewed 2s ago"],
    ),
    "a reconcile handler fails": (
        kept(condition("Synced", "False", "HandlerFailed", "KeyError: 'size'")),
        {"leases": (lease(-2),)},
        ["failed"],
        [
            "The reconcile handler fails before it desires anything, for 60s:",
            "KeyError: 'size'",
            "shop tries again, with growing pauses.",
        ],
    ),
    "a reconcile handler has failed for good": (
        kept(condition("Synced", "False", "HandlerFailed", "PermanentError: x")),
        {},
        ["failed"],
        ["It is called again when the object or a child changes."],
    ),
    "children fail": (
        kept(condition("Synced", "False", "Failing", "pod/a no; yes; pod/b no")),
        {},
        ["children"],
        [
            "Children cannot be made as desired, for 60s:",
            "\n    pod/a no; yes\n",
            "\n    pod/b no\n",
        ],
    ),
    "not ready": (
        kept(condition("Ready", "False", "Replicas", "0/3")),
        {
            "children": (
                ChildFact(
                    THINGS,
                    {"metadata": {"name": "y"}, "spec": {"replicas": 3}, "status": {}},
                ),
            )
        },
        ["not-ready"],
        ["Ready is False: 0/3. Look at its children: thing.e.com/y: 0 of 3 ready."],
    ),
    "stale": (
        kept(condition("Synced", "True", "AsDesired", observedGeneration=2)),
        {},
        ["done", "stale"],
        ["Not about generation 3 yet: Synced (of generation 2)", "[of generation 2]"],
    ),
    "held, and not handled yet": (
        thing(finalizers=[MARKER]),
        {"leases": (lease(-2),)},
        ["unknown"],
        ["shop has left marks on it, and no state. Either a handler of its creation"],
    ),
    "never seen": (
        thing(),
        {},
        ["unmarked"],
        ["No operator named shop has left a mark on it"],
    ),
    "an operator's of Kopf": (
        thing(annotations={"kopf.zalando.org/last-handled-configuration": "{}"}),
        {},
        ["unmarked"],
        ["it keeps its state in the annotation kopf.zalando.org/last-handled-conf"],
    ),
    "another's": (
        thing(finalizers=["fnop.dev/billing"]),
        {},
        ["unmarked"],
        ["see fnop explain ... --name billing"],
    ),
    "a child": (
        thing(
            annotations={APPLIED_ANNOTATION: "x", "fnop.dev/owner": "Db.e.com/p/o/v"},
            managedFields=[{"manager": MARKER, "operation": "Apply"}],
        ),
        {},
        ["child"],
        ["It is a child of Db o", "fnop explain db.e.com/o -n p", "owned by Db o"],
    ),
    "no handler fits": (
        thing(),
        {"handlers": (HandlerFact("f", "create", False),)},
        ["unmarked"],
        ["the filters of no handler let it through", "f  create  its filters do not"],
    ),
    "handlers fit": (
        thing(),
        {"handlers": (HandlerFact("f", "create", True),)},
        ["unmarked"],
        ["though handlers fit: f."],
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_diagnosis_of(name: str) -> None:
    body, evidence, about, parts = CASES[name]
    story = told(body, **evidence)
    assert advice(story) == about
    text = text_of(story)
    flat = " ".join(text.split())
    for part in parts:
        assert part in text or part in flat, text


def test_a_signature_is_checked_where_a_key_is_given() -> None:
    seal = seal_of((KEY,), "shop")
    assert seal is not None
    signed = thing(status={MARKER: seal.sealed(state({"size": 1}))})
    forged = thing(status={MARKER: state({"size": 1})})
    keyed = replace(SETTINGS, state_keys=(KEY,))
    assert told(signed, settings=keyed).state.signature == "good"
    assert advice(told(signed, settings=keyed)) == ["done"]
    bad = told(forged, settings=keyed)
    assert (bad.state.signature, advice(bad)) == ("bad", ["unreadable"])
    unchecked = told(signed)
    assert unchecked.state.signature == "unchecked"
    assert "--state-key-file checks it" in text_of(unchecked)
    assert advice(unchecked) == ["done"]


def test_a_state_in_another_place_is_read() -> None:
    places = (StatusStorage("status.example.state"),)
    body = thing(status={"example": {"state": state({"size": 1})}})
    assert told(body).state.place == ""
    story = told(body, settings=replace(SETTINGS, former_storages=places))
    assert (story.state.place, story.state.handled) == ("status", "yes")


def test_of_a_secret_no_value_is_told() -> None:
    was, now = {"password": "SGVsbG8="}, {"password": "V29ybGQ="}
    observation = Observation(((),), ((),))
    stored = Stored(see(Body({"data": was}), observation))
    body = thing(annotations={MARKER: write_stored(stored, "u")})
    body = {**body, "kind": "Secret", "data": now}
    del body["spec"]
    story = told(body)
    assert story.state.changed == ("data.password",)
    printed = text_of(story) + json.dumps(as_json(story))
    assert "data.password" in printed
    assert "SGVsbG8" not in printed
    assert "V29ybGQ" not in printed


def test_who_has_written_a_child_after_fnop_is_told() -> None:
    edited: Any = {"f:spec": {"f:size": {}}, "f:status": {"f:x": {}}}
    entries = [
        entry(MARKER, {"f:spec": {"f:a": {}}}, -100, operation="Apply"),
        entry("kubectl-edit", edited, -50),
        entry("before", {"f:spec": {"f:old": {}}}, -500),
    ]
    meta = {
        "name": "y",
        "namespace": "other",
        "labels": {SET_LABEL: "s"},
        "managedFields": entries,
    }
    story = told(thing(), children=(ChildFact(SECRETS, {"metadata": meta}),))
    text = text_of(story)
    assert "secret/y in other  applied" in text
    assert f"lacks {APPLIED_ANNOTATION}" in text
    assert "kubectl-edit wrote spec.size 50s ago" in text
    assert "before" not in text
    assert "status.x" not in text


def test_what_a_controller_has_copied_from_a_child_is_not_applied() -> None:
    """A ReplicaSet has the annotations of its Deployment, and no label of fnop."""
    meta = {"name": "y", "annotations": {APPLIED_ANNOTATION: "a.b.c.d"}}
    copies, child = ChildFact(SECRETS, {"metadata": meta}, 1), thing()
    text = text_of(told(child, children=(copies,)))
    assert "secret/y" in text
    assert "applied" not in text
    assert "lacks" not in text


def test_events_that_say_the_same_are_one_and_the_newest_is_last() -> None:
    def event(message: str, seconds: float, **more: Any) -> dict[str, Any]:
        found = {"type": "Warning", "reason": "R", "message": message}
        about = {"uid": "u", "kind": "Thing", "name": "x"}
        times = {"lastTimestamp": at(seconds)}
        return {**found, "involvedObject": about, **times, **more}

    story = told(
        thing(),
        events=(
            event("late", -5),
            event("again", -100, count=3),
            event("again", -50),
            event("early", -900),
        ),
    )
    found = [(each.message, each.count) for each in story.events]
    assert found == [("early", 1), ("again", 4), ("late", 1)]
    assert "50s ago  x4  Warning  R  again" in text_of(story)


def test_a_reason_in_the_place_of_a_message_is_shown_once() -> None:
    """`fnop.condition` writes the reason as the message if there is no message."""
    conditions = [condition("Fine", "False", "NoDisk", "NoDisk")]
    story = told(thing(status={"conditions": conditions}))
    assert text_of(story).count("NoDisk") == 1
    assert as_json(story)["conditions"][0]["message"] == "NoDisk"


def test_what_others_have_written_cannot_act_on_a_terminal() -> None:
    evil = "\x1b[2J\nWhat now\u202e"
    body = thing(
        managedFields=[entry(evil, {"f:a": {}}, operation=evil)],
        finalizers=[evil],
        status={"conditions": [condition(evil, evil, evil, evil)]},
        **DELETING,
    )
    story = told(body, unread=(evil,), recorded=(Recorded(WALL, evil, evil),))
    printed = json.dumps(as_json(story))
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def test_the_json_form_has_a_version_and_times_that_programs_read() -> None:
    found = as_json(told(handled(), leases=(lease(-2),)))
    assert found["version"] == FORMAT_VERSION == 1
    assert found["subject"]["created"] == at(-3600)
    assert found["operator"]["leases"][0]["renewed"] == at(-2)
    assert found["operator"]["wrote"] is None
    assert found["advice"][0]["about"] == "done"
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(found))


def test_denials_of_writes_of_the_object_are_told() -> None:
    def review(name: str, plural: str = "things") -> dict[str, Any]:
        request = {
            "uid": "1",
            "operation": "UPDATE",
            "group": "e.com",
            "version": "v1",
            "plural": plural,
            "namespace": "n",
            "name": name,
            "user_info": {"username": "ann"},
        }
        denials = [{"handler": each, "message": "no"} for each in ("judge", "other")]
        decision = {"do": "Decided", "allowed": False, "denials": denials}
        found = {"in": "Reviewed", "request": request}
        return {"wall": 1.0, "input": found, "commands": [decision]}

    records = [review("x"), review("y"), review("x", "others")]
    found = recorded_of(records, THINGS, "n", "x", {"judge": "op.py:7"})
    assert [(each.who, each.what) for each in found] == [
        ("judge (op.py:7)", "denies the UPDATE by ann: no"),
        ("other", "denies the UPDATE by ann: no"),
    ]


def test_the_recording_of_one_object_is_told_and_no_other() -> None:
    def perform(number: int, **more: Any) -> dict[str, Any]:
        return {"do": "Perform", "id": number, "subject": "n/x", "handler": "f", **more}

    body = thing()
    records = [
        {"wall": 1.0, "input": {"in": "Started"}, "commands": []},
        {
            "wall": 2.0,
            "input": {"in": "WatchEvent", "type": "ADDED", "body": body},
            "commands": [
                perform(
                    1,
                    effect={"is": "Create", "manifest": {}},
                    resource="pods.v1.",
                    name="p",
                ),
                {"do": "Say", "subject": "n/other", "message": "not told"},
            ],
        },
        {
            "wall": 2.5,
            "input": {
                "in": "Answered",
                "id": 1,
                "outcome": {"is": "Refused", "message": "no quota"},
            },
            "commands": [
                {"do": "Say", "subject": "n/x", "handler": "f", "message": "f failed"},
                perform(2, effect={"is": "Call", "function": "cloud:make"}),
            ],
        },
        {
            "wall": 3.0,
            "input": {
                "in": "WatchEvent",
                "type": "MODIFIED",
                "body": thing({"size": 2}, generation=4),
            },
            "commands": [
                perform(
                    3,
                    effect={"is": "Patch", "merge": {"status": {"a": 1}}},
                    resource="things.v1.e.com",
                    name="x",
                )
            ],
        },
        {"wall": 4.0, "input": {"in": "WatchEvent", "type": "DELETED", "body": body}},
        None,
        {"wall": 5.0, "input": {"in": "Started"}},
    ]
    found = recorded_of(records, THINGS, "n", "x")
    assert [(each.at, each.who, each.what) for each in found] == [
        (1.0, "fnop", "the operator starts"),
        (2.0, "cluster", "it is there, generation 3"),
        (2.0, "f", "create pods/p → refused: no quota (500 ms)"),
        (2.5, "f", "f failed"),
        (2.5, "f", "call cloud:make"),
        (3.0, "cluster", "changed: spec, generation 4"),
        (3.0, "f", "writes status.a"),
        (4.0, "cluster", "it is gone"),
    ]


def test_of_a_long_recording_the_end_is_told() -> None:
    said = {"do": "Say", "subject": "n/x", "message": "again"}
    records = [{"wall": float(n), "commands": [said]} for n in range(LINES_MAX + 50)]
    found = recorded_of(records, THINGS, "n", "x")
    assert len(found) == LINES_MAX
    assert found[-1].at == LINES_MAX + 49
    text = text_of(told(thing(), recorded=found))
    assert "170 earlier lines: see -o json" in text


def test_an_object_of_any_depth_is_told_of() -> None:
    deep: Any = {}
    for _ in range(20_000):
        deep = {"f:a": deep}
    meta = {"managedFields": [entry("x", deep)]}
    story = told(handled(now={"size": deep}, meta=meta))
    assert story.state.problem.startswith("it cannot be compared with the object")
    assert story.writers[0].fields == 1
    assert "What now" in text_of(story)
