"""One effect as several requests: the table of core/state/in_flight.py, by cells."""

from typing import Any

import pytest

import fnop
from fnop.core.api.ownership import with_token
from fnop.core.api.resources import Resource
from fnop.core.seam.effect_rules import Requested
from fnop.core.state.address import Address, Request
from fnop.core.state.in_flight import InFlight, in_flight_for, proceed
from fnop.core.state.splitting import cannot_split
from fnop.core.values.now import Now
from fnop.effects import (
    Answer,
    Applied,
    Apply,
    Call,
    Conflict,
    Create,
    Delete,
    Get,
    List,
    Missing,
    Outcome,
    Patch,
    Raised,
    Random,
    Refused,
    Target,
    Unknown,
    Unreachable,
)

NOW = Now(1000.0, 50.0)
PODS = Resource("", "v1", "pods", "Pod", subresources=("status",))
PLAIN = Resource("", "v1", "configmaps", "ConfigMap")
AT = Address(PODS, "ns", "p")
TARGET = Target("pods", "p")
POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
OURS: dict[str, Any] = {
    **POD,
    "metadata": {"name": "p", "ownerReferences": [{"uid": "u"}]},
}
THEIRS = POD

ADOPT, CREATE, APPLY = fnop.adopt(POD), Create(POD), Apply(POD)
PATCH, DELETE = fnop.patch(TARGET, labels={"a": "1"}), Delete(TARGET)
GET, LIST, CALL, RANDOM = Get(TARGET), List("pods"), Call("m:f", {}), Random(4)
LABELLED = {"metadata": {"labels": {"a": "1"}}}
UNLABELLED: dict[str, Any] = {"metadata": {"labels": {}}}

WRITES: list[Requested] = [ADOPT, CREATE, APPLY, PATCH]
REQUESTS: list[Requested] = [*WRITES, DELETE, GET, LIST]
OUTSIDE: list[Requested] = [CALL, RANDOM]


def begun(effect: Requested, at: Address = AT) -> InFlight:
    manifest = OURS if effect is ADOPT else None
    return in_flight_for(effect, at, manifest=manifest, owner_uid="u", token="t")


def after(effect: Requested, *outcomes: Outcome) -> InFlight | Outcome:
    """The state of an errand after these answers."""
    in_flight = begun(effect)
    for outcome in outcomes[:-1]:
        found = proceed(in_flight, outcome, NOW, 0.0)
        assert isinstance(found, InFlight), f"{outcome} has ended it: {found}"
        in_flight = found
    return proceed(in_flight, outcomes[-1], NOW, 0.0)


def going_on(effect: Requested, *outcomes: Outcome) -> InFlight:
    found = after(effect, *outcomes)
    assert isinstance(found, InFlight), found
    assert found.id is None
    return found


def is_due(in_flight: InFlight) -> bool:
    return in_flight.due is not None and in_flight.due <= NOW.mono


def named(effect: Requested) -> str:
    return effect.kind


# --------------------------------------------------------------------- answers


@pytest.mark.parametrize("effect", [*REQUESTS, *OUTSIDE], ids=named)
@pytest.mark.parametrize("answer", [Applied({"a": 1}), Answer([1]), Refused(403, "no")])
def test_a_clear_answer_is_the_answer(effect: Requested, answer: Outcome) -> None:
    assert after(effect, answer) == answer


def test_what_a_call_answers_is_final_whatever_it_is() -> None:
    for answer in (Raised("E", "m"), Unknown("?"), Unreachable("!"), Refused(501, "x")):
        assert after(CALL, answer) == answer


@pytest.mark.parametrize("effect", [PATCH, DELETE], ids=named)
def test_a_conflict_is_an_answer(effect: Requested) -> None:
    assert after(effect, Conflict("c", "AlreadyExists")) == Conflict(
        "c", "AlreadyExists"
    )


@pytest.mark.parametrize("effect", [CREATE, ADOPT], ids=named)
def test_creating_in_a_namespace_that_is_not_there_is_refused(
    effect: Requested,
) -> None:
    assert after(effect, Missing("namespaces x not found")) == Refused(
        404, "namespaces x not found", "NotFound"
    )


@pytest.mark.parametrize("effect", [PATCH, DELETE, GET], ids=named)
def test_what_is_missing_is_missing(effect: Requested) -> None:
    assert after(effect, Missing("gone")) == Missing("gone")


# --------------------------------------------- R28: unknown → look, then decide


@pytest.mark.parametrize("effect", WRITES, ids=named)
def test_r28_an_unknown_write_is_looked_at_at_once(effect: Requested) -> None:
    found = going_on(effect, Unknown("?"))
    assert found.looking
    assert is_due(found)
    assert isinstance(found.request.effect, Get)
    assert found.request.address == AT


@pytest.mark.parametrize(
    ("effect", "shown"),
    [(CREATE, with_token(POD, "t")), (PATCH, LABELLED), (ADOPT, OURS)],
    ids=["Create", "Patch", "Adopt"],
)
def test_r28_what_the_look_shows_is_done(effect: Requested, shown: Any) -> None:
    assert after(effect, Unknown("?"), Applied(shown)) == Applied(shown)


@pytest.mark.parametrize(
    ("effect", "answer"),
    [
        (CREATE, Missing("no")),
        (ADOPT, Missing("no")),
        (APPLY, Missing("no")),
        (APPLY, Applied(POD)),  # applying again does no harm
        (PATCH, Applied(UNLABELLED)),
    ],
    ids=["Create", "Adopt", "Apply-missing", "Apply-found", "Patch"],
)
def test_r28_what_the_look_does_not_show_is_sent_again(
    effect: Requested, answer: Outcome
) -> None:
    found = going_on(effect, Unknown("?"), answer)
    assert not found.looking
    assert found.due is not None
    assert NOW.mono < found.due < NOW.mono + 2, "not at once: it may be lost again"
    assert found.request == begun(effect).request


def test_r28_a_patched_object_that_is_gone_is_missing() -> None:
    assert after(PATCH, Unknown("?"), Missing("no")) == Missing("no")


def test_r28_json_operations_that_are_done_are_not_sent_again() -> None:
    steps = fnop.patch(TARGET, json=[{"op": "add", "path": "/spec/a", "value": 1}])
    done = {**POD, "spec": {"a": 1}}
    assert after(steps, Unknown("?"), Applied(done)) == Applied(done)
    assert not going_on(steps, Unknown("?"), Applied(LABELLED)).looking


# ------------------------------------ what adds once more when it is applied once more


def version(number: int, *items: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "resourceVersion": str(number)},
        "items": [*items],
    }


ADDS = fnop.patch(TARGET, json=[{"op": "add", "path": "/items/-", "value": 2}])


def test_a_patch_that_adds_is_for_the_version_that_was_read() -> None:
    first = begun(ADDS)
    assert isinstance(first.request.effect, Get)
    found = going_on(ADDS, Applied(version(7, 1)))
    assert isinstance(found.request.effect, Patch)
    assert found.request.effect.json[-1] == {
        "op": "replace",
        "path": "/metadata/resourceVersion",
        "value": "7",
    }


def test_a_patch_that_adds_reads_again_after_a_conflict() -> None:
    found = going_on(ADDS, Applied(version(7, 1)), Conflict("quicker"))
    assert isinstance(found.request.effect, Get)
    found = going_on(
        ADDS, Applied(version(7, 1)), Conflict("quicker"), Applied(version(8, 1))
    )
    assert found.request.effect.json[-1]["value"] == "8"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("shown", "is_done"),
    [
        (version(7, 1), False),  # nothing has been written
        (version(8, 1, 2), True),
        (version(9, 0, 1, 2), True),  # another has written, too
        (version(9, 0, 1), False),  # another alone
    ],
)
def test_what_a_patch_has_added_is_not_added_again(shown: Any, is_done: bool) -> None:
    found = after(ADDS, Applied(version(7, 1)), Unknown("?"), Applied(shown))
    if is_done:
        assert found == Applied(shown)
    else:
        assert isinstance(found, InFlight)
        number = shown["metadata"]["resourceVersion"]
        assert found.request.effect.json[-1]["value"] == number  # type: ignore[union-attr]


# --------------------------------------------------------------- created, and applied


def test_what_this_handler_has_created_is_a_success_and_others_a_conflict() -> None:
    exists = Conflict("exists", "AlreadyExists")
    assert isinstance(going_on(CREATE, exists).request.effect, Get)
    ours = with_token(POD, "t")
    assert after(CREATE, exists, Applied(ours)) == Applied(ours)
    assert isinstance(after(CREATE, exists, Applied(POD)), Conflict)
    other = with_token(POD, "another")
    assert isinstance(after(CREATE, exists, Applied(other)), Conflict)
    ending = with_token(
        {**POD, "metadata": {"name": "p", "deletionTimestamp": "x"}}, "t"
    )
    waiting = going_on(CREATE, exists, Applied(ending))
    assert not waiting.looking
    assert waiting.due == NOW.mono + 1


def test_of_two_that_apply_an_absent_object_the_second_is_sent_again() -> None:
    found = going_on(APPLY, Conflict("exists", "AlreadyExists"))
    assert is_due(found)
    assert found.request.effect == APPLY
    found = going_on(APPLY, *[Conflict("exists", "AlreadyExists")] * 2)
    assert not is_due(found), "not in a circle"


def test_what_is_waited_for_is_named_with_the_words_of_the_server() -> None:
    found = going_on(APPLY, Unknown("etcd says no"), Missing('pods "p" not found'))
    assert found.label == "Apply pods/p"
    assert found.why == "etcd says no"


@pytest.mark.parametrize("effect", [DELETE, GET, LIST, RANDOM], ids=named)
def test_r28_what_can_be_repeated_is_repeated_after_a_while(effect: Requested) -> None:
    found = going_on(effect, Unknown("?"))
    assert not found.looking
    assert found.due is not None
    assert found.due > NOW.mono


@pytest.mark.parametrize("effect", WRITES, ids=named)
def test_r28_a_look_that_fails_is_repeated_and_never_taken_for_an_answer(
    effect: Requested,
) -> None:
    for failed in (Unknown("?"), Unreachable("!")):
        found = going_on(effect, Unknown("?"), failed)
        assert found.looking
        assert found.due is not None
        assert found.due > NOW.mono


def test_r28_both_parts_of_a_split_patch_are_sent_whatever_was_looked_up() -> None:
    """The main part was applied, its answer lost: the status part still goes."""
    both = fnop.patch(TARGET, labels={"a": "1"}, status={"phase": "Ready"})
    found = going_on(both, Unknown("?"), Applied(LABELLED))
    assert not found.looking
    assert found.request.effect == Patch(
        TARGET, {"status": {"phase": "Ready"}}, (), "status"
    )


def test_only_a_call_may_answer_unknown() -> None:
    effects: list[Requested] = [*REQUESTS, RANDOM]
    for effect in effects:
        in_flight = begun(effect)
        for _ in range(40):
            found = proceed(in_flight, Unknown("?"), NOW, 0.0)
            assert isinstance(found, InFlight), (effect, found)
            in_flight = found


# ------------------------------------------------------------------ unreachable


@pytest.mark.parametrize("effect", REQUESTS, ids=named)
def test_what_was_not_done_is_tried_again_until_it_is(effect: Requested) -> None:
    """An absent server fails no handler: a timeout of the handler ends it."""
    in_flight, waits = begun(effect), []
    for _ in range(40):
        found = proceed(in_flight, Unreachable("no network"), NOW, 0.0)
        assert isinstance(found, InFlight)
        assert found.due is not None
        waits.append(found.due - NOW.mono)
        in_flight = found
    assert waits == sorted(waits)
    assert waits[0] < 1
    assert waits[-1] <= 10, "it is there again within 15 s of the server's return"


def test_the_server_s_word_on_when_to_come_back_is_kept() -> None:
    found = going_on(GET, Unreachable("busy", 30.0))
    assert found.due == NOW.mono + 30.0


@pytest.mark.parametrize("seconds", [99_999_999.0, float("inf")])
@pytest.mark.parametrize("effect", REQUESTS, ids=named)
def test_the_server_s_word_is_kept_for_five_minutes_at_most(
    effect: Requested, seconds: float
) -> None:
    found = going_on(effect, Unreachable("busy", seconds))
    assert found.due == NOW.mono + 300.0


# ---------------------------------------------------------------------- adopting


def test_an_apply_that_conflicts_with_the_operator_s_own_writes_is_forced() -> None:
    """Its own creations are its own as well, and the server distinguishes the two."""
    begun = in_flight_for(APPLY, AT, manager="fnop.dev/default")
    found = proceed(begun, Conflict("c", managers=("fnop.dev/default",)), NOW, 0.0)
    assert isinstance(found, InFlight)
    assert is_due(found)
    assert found.request == Request(Apply(POD, force=True), AT)


@pytest.mark.parametrize(
    "managers", [(), ("kubectl",), ("fnop.dev/default", "kubectl")], ids=str
)
def test_an_apply_takes_nothing_away_from_others(managers: tuple[str, ...]) -> None:
    begun = in_flight_for(APPLY, AT, manager="fnop.dev/default")
    conflict = Conflict("c", managers=managers)
    assert proceed(begun, conflict, NOW, 0.0) == conflict


TAKEN = Conflict("pods p already exists", "AlreadyExists")


def test_r10_a_name_that_is_taken_is_looked_at() -> None:
    found = going_on(ADOPT, TAKEN)
    assert found.looking
    assert is_due(found)


def test_r10_a_child_that_is_ours_already_is_a_success() -> None:
    assert after(ADOPT, TAKEN, Applied(OURS)) == Applied(OURS)


def test_r10_somebody_else_s_object_is_a_conflict_and_never_taken_over() -> None:
    found = after(ADOPT, TAKEN, Applied(THEIRS))
    assert isinstance(found, Conflict)
    assert found.reason == "NotOurs"
    assert "give the child another name" in found.message


def test_r10_a_child_that_is_ending_is_waited_for() -> None:
    meta = {**OURS["metadata"], "deletionTimestamp": "t"}
    found = going_on(ADOPT, TAKEN, Applied({"kind": "Pod", "metadata": meta}))
    assert not found.looking
    assert found.due == NOW.mono + 1.0
    assert found.request == begun(ADOPT).request


def test_r10_a_child_that_is_gone_by_then_is_created() -> None:
    assert not going_on(ADOPT, TAKEN, Missing("gone")).looking


# ------------------------------------------------------------- status endpoints

BOTH = fnop.patch(TARGET, labels={"a": "1"}, status={"phase": "Ready"})


def test_a_patch_of_both_endpoints_is_two_requests() -> None:
    in_flight = begun(BOTH)
    assert [request.effect for request in in_flight.requests] == [
        Patch(TARGET, {"metadata": {"labels": {"a": "1"}}}),
        Patch(TARGET, {"status": {"phase": "Ready"}}, (), "status"),
    ]
    second = going_on(BOTH, Applied(LABELLED))
    assert is_due(second)
    done = Applied({"status": {"phase": "Ready"}})
    assert proceed(second, done, NOW, 0.0) == done


def test_the_second_part_is_not_sent_when_the_first_was_refused() -> None:
    assert after(BOTH, Refused(422, "bad")) == Refused(422, "bad")


@pytest.mark.parametrize(
    ("patch", "at", "subresource"),
    [
        (fnop.patch(TARGET, status={"a": 1}), AT, "status"),
        (fnop.patch(TARGET, status={"a": 1}), Address(PLAIN, "ns", "p"), None),
        (fnop.patch(TARGET, labels={"a": "1"}), AT, None),
        (fnop.patch(TARGET, subresource="scale", spec={"a": 1}), AT, "scale"),
    ],
)
def test_a_patch_of_one_endpoint_is_one_request(
    patch: Patch, at: Address, subresource: str | None
) -> None:
    (request,) = begun(patch, at).requests
    assert isinstance(request.effect, Patch)
    assert request.effect.subresource == subresource


# --------------------------------------------------------- the object that is meant

MEANT = Target("pods", "p", uid="u-1")
BY_UID: list[Requested] = [
    fnop.patch(MEANT, labels={"a": "1"}),
    fnop.patch(MEANT, json=[{"op": "add", "path": "/spec/a", "value": 1}]),
    Apply({**POD, "metadata": {"name": "p", "uid": "u-1"}}),
]
INVALID = Refused(422, "no", "Invalid")


def pod(uid: str, **rest: Any) -> dict[str, Any]:
    return {
        **POD,
        "metadata": {"name": "p", "uid": uid, "resourceVersion": "7"},
        **rest,
    }


@pytest.mark.parametrize("effect", BY_UID)
def test_what_a_refused_change_with_a_uid_has_met_is_looked_at(
    effect: Requested,
) -> None:
    assert isinstance(going_on(effect, INVALID).request.effect, Get)
    assert after(effect, INVALID, Applied(pod("u-1"))) == INVALID
    another = after(effect, INVALID, Applied(pod("u-2")))
    assert isinstance(another, Conflict)
    assert after(effect, INVALID, Missing("gone")) == Missing("gone")
    # Without the right to read, it gets the API server's answer about the change.
    assert after(effect, INVALID, Refused(403, "no get")) == INVALID


@pytest.mark.parametrize("effect", BY_UID)
def test_an_unknown_change_of_another_object_is_a_conflict(effect: Requested) -> None:
    shown = pod("u-2", spec={"a": 1})
    assert isinstance(after(effect, Unknown("?"), Applied(shown)), Conflict)


def test_a_subresource_is_changed_by_the_version_with_the_uid() -> None:
    effect = fnop.patch(MEANT, status={"a": 1})
    assert isinstance(begun(effect).request.effect, Get)
    found = going_on(effect, Applied(pod("u-1")))
    assert found.request.effect == Patch(
        MEANT,
        {"status": {"a": 1}, "metadata": {"resourceVersion": "7"}},
        subresource="status",
    )
    assert isinstance(after(effect, Applied(pod("u-2"))), Conflict)
    again = going_on(effect, Applied(pod("u-1")), Conflict("quicker"))
    assert isinstance(again.request.effect, Get)
    done = pod("u-1", status={"a": 1})
    done["metadata"]["resourceVersion"] = "8"
    last = after(effect, Applied(pod("u-1")), Unknown("?"), Applied(done))
    assert last == Applied(done)


# ------------------------------------------------------ JSON patches of two endpoints

OF_SPEC = {"op": "add", "path": "/spec/a", "value": 1}
OF_STATUS = {"op": "add", "path": "/status/a", "value": 1}
TESTS_SPEC = {"op": "test", "path": "/spec/b", "value": 1}
TESTS_STATUS = {"op": "test", "path": "/status/b", "value": 1}
COPIES = {"op": "copy", "from": "/spec/a", "path": "/status/b"}


@pytest.mark.parametrize(
    ("steps", "main", "status"),
    [
        ([OF_SPEC, TESTS_STATUS], [OF_SPEC, TESTS_STATUS], []),
        ([TESTS_SPEC, OF_STATUS], [], [TESTS_SPEC, OF_STATUS]),
        ([COPIES], [], [COPIES]),
        ([{**OF_SPEC, "path": "/statuses"}], [{**OF_SPEC, "path": "/statuses"}], []),
        ([{**OF_STATUS, "path": "/status"}], [], [{**OF_STATUS, "path": "/status"}]),
        (
            [TESTS_STATUS, TESTS_SPEC, OF_STATUS, TESTS_STATUS, OF_SPEC],
            [TESTS_STATUS, TESTS_SPEC, OF_SPEC],
            [TESTS_STATUS, OF_STATUS, TESTS_STATUS],
        ),
    ],
)
def test_each_part_of_a_json_patch_goes_to_its_endpoint(
    steps: list[Any], main: list[Any], status: list[Any]
) -> None:
    sent = [each.effect for each in begun(fnop.patch(TARGET, json=steps)).requests]
    expected = [Patch(TARGET, None, tuple(main))] if main else []
    expected += [Patch(TARGET, None, tuple(status), "status")] if status else []
    assert sent == expected
    whole = begun(fnop.patch(TARGET, json=steps), Address(PLAIN, "ns", "p")).requests
    assert [each.effect for each in whole] == [Patch(TARGET, None, tuple(steps))]


@pytest.mark.parametrize(
    ("steps", "is_refused"),
    [
        ([COPIES], False),
        ([COPIES, OF_SPEC], True),
        ([{**COPIES, "op": "move"}], True),
        ([OF_SPEC, OF_STATUS], False),
    ],
)
def test_what_goes_to_two_endpoints_cannot_cross(
    steps: list[Any], is_refused: bool
) -> None:
    effect = fnop.patch(TARGET, json=steps)
    assert bool(cannot_split(effect, AT)) is is_refused
    assert cannot_split(effect, Address(PLAIN, "ns", "p")) is None
    named = fnop.patch(TARGET, json=steps, subresource="status")
    assert cannot_split(named, AT) is None
