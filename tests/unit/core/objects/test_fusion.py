"""The write of an object's own changes: the requests, their content, and order."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.observation import Seen
from fnop.core.memory.storage import Place
from fnop.core.memory.stored_state import Stored
from fnop.core.state.fusion import next_write, was_pruned
from fnop.core.state.writing import Contents
from fnop.core.values.body import Body
from fnop.core.values.finalizers import Duty
from fnop.core.values.merge import OperationFailed, applied
from fnop.effects import Patch
from tests.property.strategies import json_values
from tests.thorough import examples

MARKER = "fnop.dev/default"
STATUSED = Resource(
    "fnop.dev", "v1", "fnopexamples", "FnopExample", subresources=("status",)
)
PLAIN = Resource("fnop.dev", "v1", "plains", "Plain")
PODS = Resource("", "v1", "pods", "Pod", subresources=("status",))
SEEN = Stored(Seen({"": "1:abc"}))
SETTINGS = Settings()
PLACES = SETTINGS.places
STATUS, ANNOTATION = PLACES.present


def body(status: Any = None, **meta: Any) -> Body:
    found: dict[str, Any] = {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "metadata": {"name": "x", "uid": "u", "resourceVersion": "7", **meta},
        "spec": {"size": 1, "items": ["a"]},
    }
    if status is not None:
        found["status"] = status
    return Body(found)


def writing(*patches: Patch, **options: Any) -> Contents:
    authored = tuple((f"h{number}", each) for number, each in enumerate(patches))
    return Contents(patches=authored, **options)


def requests(
    found: Contents,
    on: Body | None = None,
    resource: Resource = STATUSED,
    home: Place = STATUS,
) -> list[tuple[str, Mapping[str, Any] | None]]:
    """All requests of a write, each answered as a server would, undisturbed."""
    at = on or body()
    sent: list[tuple[str, Mapping[str, Any] | None]] = []
    taken: set[str] = set()
    follows = True
    while True:
        own = (SETTINGS.marker,)
        step = next_write(
            found, at, resource, SETTINGS, home, own=own, taken=frozenset(taken)
        )
        if step is None:
            assert not (sent and follows), "another request was announced"
            return sent
        assert follows, "it was not told that another request follows"
        endpoint, patch, follows = step
        assert patch.target is None
        assert not patch.json, "what is sent is always a merge patch"
        assert patch.subresource == (endpoint or None)
        assert patch.merge is not None
        assert patch.merge["metadata"]["resourceVersion"] == at.version
        sent.append((endpoint, patch.merge))
        next_version = {"metadata": {"resourceVersion": f"{at.version}+"}}
        at = Body(applied(next_version, applied(patch.merge, at.data)))
        taken.add(endpoint)


def text_in(merge: Mapping[str, Any] | None) -> Any:
    assert merge is not None
    home = merge.get("status") or merge["metadata"]["annotations"]
    return orjson.loads(home[MARKER])


# ------------------------------------------------------------------------ homes


@pytest.mark.parametrize(
    ("resource", "prunes", "home"),
    [
        (STATUSED, False, STATUS),
        (STATUSED, True, ANNOTATION),
        (PLAIN, False, ANNOTATION),
        (PODS, False, ANNOTATION),
    ],
)
def test_r25_where_state_lives(resource: Resource, prunes: bool, home: Place) -> None:
    assert PLACES.on(resource, refused=prunes) is home


def test_r25_state_is_found_in_either_place_and_status_counts_first() -> None:
    assert PLACES.text(body()) is None
    assert PLACES.text(body({MARKER: "s"})) == "s"
    assert PLACES.text(body(annotations={MARKER: "a"})) == "a"
    assert PLACES.text(body({MARKER: "s"}, annotations={MARKER: "a"})) == "s"


# ----------------------------------------------------------------------- fusing


def test_all_changes_of_a_pass_are_one_request_per_endpoint() -> None:
    found = requests(
        writing(
            Patch(merge={"status": {"a": 1}, "metadata": {"labels": {"l": "1"}}}),
            Patch(merge={"status": {"b": 2}}),
            results={"h": {"done": True}},
            after=SEEN,
        )
    )
    assert [endpoint for endpoint, _ in found] == ["", "status"]
    main, status = (merge for _, merge in found)
    assert main is not None
    assert status is not None
    assert main["metadata"]["labels"] == {"l": "1"}
    assert {k: v for k, v in status["status"].items() if k != MARKER} == {
        "a": 1,
        "b": 2,
        "h": {"done": True},
    }
    assert text_in(status)["seen"] == {"": "1:abc"}


def test_what_changes_nothing_is_not_sent() -> None:
    same = Patch(merge={"spec": {"size": 1}, "status": {"a": 1}})
    assert requests(writing(same), body({"a": 1})) == []
    assert requests(writing()) == []
    assert requests(writing(Patch(merge={"spec": {"absent": None}}))) == []


def test_a_change_and_its_reversal_are_none() -> None:
    there = Patch(merge={"spec": {"size": 2}})
    back = Patch(merge={"spec": {"size": 1}})
    assert requests(writing(there, back)) == []


def test_the_later_patch_wins() -> None:
    one = Patch(merge={"spec": {"size": 2, "colour": "red"}})
    two = Patch(merge={"spec": {"size": 3}})
    ((_, merge),) = requests(writing(one, two))
    assert merge is not None
    assert merge["spec"] == {"size": 3, "colour": "red"}


def test_json_operations_work_on_what_the_patches_before_have_made() -> None:
    one = Patch(merge={"spec": {"items": ["x"]}})
    two = Patch(json=({"op": "add", "path": "/spec/items/-", "value": "y"},))
    ((_, merge),) = requests(writing(one, two))
    assert merge is not None
    assert merge["spec"] == {"items": ["x", "y"]}


def test_json_operations_bind_to_the_version_they_were_computed_from() -> None:
    step = Patch(json=({"op": "add", "path": "/spec/items/-", "value": "y"},))
    ((_, merge),) = requests(writing(step))
    assert merge is not None
    assert merge["metadata"]["resourceVersion"] == "7"


def test_json_operations_that_do_not_fit_fail() -> None:
    step = Patch(json=({"op": "remove", "path": "/spec/nothing"},))
    with pytest.raises(OperationFailed, match="nothing at /spec/nothing"):
        requests(writing(step))


def test_a_kind_without_a_status_endpoint_takes_it_on_the_main_one() -> None:
    found = requests(
        writing(Patch(merge={"status": {"a": 1}}), after=SEEN),
        resource=PLAIN,
        home=ANNOTATION,
    )
    assert [endpoint for endpoint, _ in found] == [""]
    ((_, merge),) = found
    assert merge is not None
    assert merge["status"] == {"a": 1}
    assert orjson.loads(merge["metadata"]["annotations"][MARKER])["uid"] == "u"


# ----------------------------------------------------------- R20: what is the last

BOTH = Patch(merge={"status": {"a": 1}, "metadata": {"labels": {"l": "1"}}})


@pytest.mark.parametrize(
    ("home", "order"),
    [(STATUS, ["", "status"]), (ANNOTATION, ["status", ""])],
)
def test_r20_the_request_that_says_done_is_the_last(
    home: Place, order: list[str]
) -> None:
    found = requests(writing(BOTH, after=SEEN), home=home)
    assert [endpoint for endpoint, _ in found] == order
    assert text_in(found[-1][1])["uid"] == "u"


@pytest.mark.parametrize(
    ("finalizer", "before", "after"),
    [
        (Duty.ADD, [], [MARKER]),
        (Duty.ADD, ["other"], ["other", MARKER]),
        (Duty.REMOVE, [MARKER], None),
        (Duty.REMOVE, ["other", MARKER], ["other"]),
    ],
)
def test_r20_a_finalizer_is_written_as_a_list_with_the_version(
    finalizer: Duty, before: list[str], after: list[str] | None
) -> None:
    on = body(finalizers=before)
    ((endpoint, merge),) = requests(writing(finalizer=finalizer), on)
    assert endpoint == ""
    assert merge is not None
    assert set(merge) == {"metadata"}
    assert merge["metadata"]["resourceVersion"] == "7"
    assert (merge["metadata"]["finalizers"] or None) == after


@pytest.mark.parametrize(
    ("finalizer", "there"), [(Duty.ADD, [MARKER]), (Duty.REMOVE, ["other"])]
)
def test_r20_a_finalizer_that_is_as_it_shall_be_costs_nothing(
    finalizer: Duty, there: list[str]
) -> None:
    assert requests(writing(finalizer=finalizer), body(finalizers=there)) == []


# ---------------------------------------------------------------- R21: binding


@pytest.mark.parametrize("home", PLACES.present)
def test_r21_state_is_bound_to_the_version_and_names_the_uid(home: Place) -> None:
    ((_, merge),) = requests(writing(after=SEEN), home=home)
    assert merge is not None
    assert merge["metadata"]["resourceVersion"] == "7"
    assert text_in(merge)["uid"] == "u"


def test_state_that_is_there_already_is_not_written_again() -> None:
    ((_, merge),) = requests(writing(after=SEEN))
    assert merge is not None
    there = body(merge["status"])
    assert requests(writing(after=SEEN), there) == []


# ----------------------------------------------------------- R25: verification


@pytest.mark.parametrize(
    ("answer", "lost"),
    [
        ({MARKER: "s", "h": 1}, (False, set())),
        ({"h": 1}, (True, set())),
        ({MARKER: "s"}, (False, {"h"})),
        ({}, (True, {"h"})),
        (None, (True, {"h"})),
    ],
)
def test_r25_what_a_schema_has_pruned(answer: Any, lost: tuple[bool, set[str]]) -> None:
    found = writing(results={"h": 1}, after=SEEN)
    assert was_pruned(found, body(answer), STATUS) == lost


def test_r25_what_was_not_written_is_not_missed() -> None:
    assert was_pruned(writing(), body({}), STATUS) == (False, set())


# ------------------------------------------------------------------ as a property

stanzas = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)
merges = st.fixed_dictionaries({}, optional={"spec": stanzas, "status": stanzas})
patches = merges.filter(bool).map(lambda merge: Patch(merge=merge))


@settings(max_examples=examples(50))
@given(st.lists(patches, max_size=4))
def test_the_requests_do_what_the_patches_would_one_after_the_other(
    found: list[Patch],
) -> None:
    on = body({"a": 0, "b": {"x": 1}})
    expected: Any = on.data
    for each in found:
        expected = applied(each.merge, expected)
    made: Any = on.data
    for _, merge in requests(writing(*found), on):
        made = applied(merge, made)
    made = applied({"metadata": {"resourceVersion": "7"}}, made)
    assert _plain(made) == _plain(expected)


def _plain(value: Any) -> Any:
    """Without empty mappings and nulls: what a server has no difference for."""
    if isinstance(value, dict):
        found = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item not in (None, {})}
    if isinstance(value, bool):
        return str(value)
    return value
