"""Kubernetes Events that code outside of the steps posts, such as a thread."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.inputs import EventPosted
from fnop.core.seam.wire import input_from_wire, input_to_wire
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.simulations import Scenario, example

KIND = "fnopexamples"


def manifest(name: str = "example-1", **regarding: Any) -> dict[str, Any]:
    """An Event without a name and times, about an object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "type": "Normal",
        "reason": "Seen",
        "action": "Action?",
        "reportingComponent": "tests",
        "reportingInstance": "one",
        "message": "hello",
        "involvedObject": {
            "apiVersion": "fnop.dev/v1",
            "kind": "FnopExample",
            "name": name,
            "namespace": "default",
            **regarding,
        },
    }


@pytest.fixture
def run() -> Scenario:
    registry = Registry()
    fnop.on.create(KIND, id="created", registry=registry)(lambda **_: None)
    found = Scenario(registry, [example()])
    assert found.settle()
    return found


def post(run: Scenario, *manifests: dict[str, Any]) -> list[dict[str, Any]]:
    """The Events after these have been posted."""
    for each in manifests:
        run.inbox.add(EventPosted("created", each))
    run.settle()
    return run.objects("events")


def test_a_posted_event_is_created_with_a_name_and_times(run: Scenario) -> None:
    (found,) = post(run, manifest())
    assert found["metadata"]["name"].startswith("example-1.")
    assert found["metadata"]["namespace"] == "default"
    given = {k: v for k, v in manifest().items() if k not in ("apiVersion", "kind")}
    assert {name: found[name] for name in given} == given
    assert found["firstTimestamp"] == found["lastTimestamp"]
    assert found["firstTimestamp"].startswith("2026-01-01T00:00:0")
    assert found["eventTime"].startswith("2026-01-01T00:00:0")


def test_equal_events_are_created_each_for_itself(run: Scenario) -> None:
    found = post(run, *[manifest()] * 30)
    assert len({each["metadata"]["name"] for each in found}) == 30


def test_an_event_about_a_cluster_scoped_object_is_in_the_namespace_default(
    run: Scenario,
) -> None:
    (found,) = post(run, manifest("n.1:x", kind="Node", namespace=""))
    assert found["metadata"]["namespace"] == "default"
    assert found.get("eventTime") is None, "the server wants the object's namespace"


def test_an_event_about_an_event_is_dropped(run: Scenario) -> None:
    assert post(run, manifest(kind="Event", apiVersion="v1")) == []


def test_an_event_that_the_server_refuses_ends_nothing(run: Scenario) -> None:
    incomplete = manifest()
    del incomplete["reportingInstance"]
    assert len(post(run, incomplete, manifest())) == 1
    assert run.exit is None


def test_an_ended_operator_posts_nothing(run: Scenario) -> None:
    run.stop()
    run.settle()
    assert run.exit is not None
    run.inbox.add(EventPosted("created", manifest()))
    run.settle()
    answer = run.request(ApiRequest("GET", run.path("events")))
    assert answer.body["items"] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=40)
@given(st.text(max_size=8), st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_the_input_is_recorded_and_read_again(
    handler: str, found: dict[str, Any]
) -> None:
    given_input = EventPosted(handler, found)
    assert input_from_wire(input_to_wire(given_input)) == given_input
