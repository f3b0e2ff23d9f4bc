"""Impure daemons: their views of their objects, over scripts of a user.

Objects are edited, deleted and created again, the operator is killed, and watch events
come late. Everything runs in the simulated cluster, on virtual time.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.simulations import example
from tests.stories import Story
from tests.thorough import examples

KIND = "fnopexamples"

looks: list[dict[str, Any]] = []


def look(views: dict[str, Any]) -> None:
    """Note the object's state, on which all views agree."""
    body, meta = views["body"], views["meta"]
    assert views["spec"] == body.spec == body.get("spec", {})
    assert views["status"] == body.status
    assert meta == body.metadata
    assert views["labels"] == meta.labels
    assert views["annotations"] == meta.annotations
    looks.append(dict(body))


def looking(stopped: Any, **views: Any) -> None:
    look(views)
    while not stopped.wait(1):
        look(views)
    look(views)


async def looking_on_a_loop(stopped: Any, **views: Any) -> None:
    look(views)
    while not await stopped.wait(1):
        look(views)
    look(views)


EDITS = st.one_of(
    st.builds(lambda size: {"spec": {"size": size}}, st.none() | st.integers(0, 9)),
    st.builds(
        lambda key, text: {"metadata": {"labels": {key: text}}},
        st.sampled_from("ab"),
        st.none() | st.sampled_from("xy"),
    ),
    st.builds(lambda text: {"metadata": {"annotations": {"note": text}}}, st.text("a")),
)
ACTS = st.one_of(
    st.tuples(st.just("edit"), EDITS),
    st.tuples(st.just("wait"), st.sampled_from((0.0, 0.4, 1.0, 7.0))),
    st.tuples(st.sampled_from(("hold", "release", "crash", "delete")), st.none()),
)


def act(run: Story, what: str, how: Any) -> None:
    there = run.get(KIND)
    match what:
        case "edit" if there is not None:
            run.edit(KIND, **how)
        case "edit":
            run.apply(example(size=0))
        case "wait":
            run.wait(how)
        case "hold":
            run.late_events = True
        case "release":
            run.let_events_through()
        case "crash":
            run.crash()
        case "delete" if there is not None:
            run.delete(KIND)


@pytest.mark.parametrize("handler", [looking, looking_on_a_loop])
@settings(max_examples=examples(15))
@given(script=st.lists(ACTS, max_size=15))
def test_a_daemon_sees_its_object_as_it_is(
    handler: Any, script: list[tuple[str, Any]]
) -> None:
    """In the end the latest look is at the object as it is; none goes back in time."""
    looks.clear()
    registry = Registry()
    fnop.daemon(KIND, registry=registry, impure=True)(handler)
    models = {f"{__name__}:{handler.__name__}": handler}
    run = Story(registry, [example(size=1)], calls=models)
    for what, how in script:
        act(run, what, how)
    run.let_events_through()
    run.wait(30)
    there = run.get(KIND)
    if there is not None:
        assert looks[-1] == there
    versions: dict[str, int] = {}
    for each in looks:
        meta = each["metadata"]
        version = int(meta["resourceVersion"])
        assert versions.get(meta["uid"], 0) <= version
        versions[meta["uid"]] = version
    run.stop()
    run.settle(seconds=60)
    names = [each.name for each in threading.enumerate()]
    assert f"simulated {__name__}:{handler.__name__}" not in names
