"""`fnop replay --shadow`: each recorded attempt, by the same handlers and others."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.history import History, Step
from tests.property.recorded_scripts import Script, keeping
from tests.property.scripts import Operator, Way, moved, scripts, ways
from tests.recordings import TRACED, Recording
from tests.simulations import Scenario, example
from tests.thorough import examples


def played(registry: Registry, script: Script) -> Recording:
    """The recording of a run."""
    recording = Recording(registry)
    run = Scenario(
        registry,
        [example(n=0, m=0)],
        settings=TRACED,
        observers=(recording.recorder,),
    )
    moved(run, script)
    assert run.settle()
    return recording


@settings(max_examples=examples(15))
@given(ways, ways, ways, scripts)
def test_the_same_handlers_decide_the_same(
    update: Way, field: Way, create: Way, script: Script
) -> None:
    recording = played(Operator(update, field, create).registry, script)
    found = recording.shadow(Operator(update, field, create).registry)
    assert found.attempts
    assert not found.changed
    assert not found.untold
    assert not found.missing


@settings(max_examples=examples(10))
@given(st.lists(st.integers(0, 3), max_size=6), st.integers(0, 4), st.booleans())
def test_exactly_the_decisions_change_that_another_version_makes_otherwise(
    sizes: list[int], from_size: int, crashes: bool
) -> None:
    script: Script = [("wait", 20, 0)]
    for size in sizes:
        script += [("edit", size, 0), ("wait", 20, 0)]
        script += [("crash", 0, 0)] if crashes else []
    recording = played(keeping(80), script)
    same = recording.shadow(keeping(80))
    assert (same.changed, same.untold) == ([], {})
    found = recording.shadow(keeping(81, from_size=from_size))
    concerned = {
        each.number
        for each in attempts_of(recording)
        if each.handler == "kept" and each.desires and size_of(each) >= from_size
    }
    assert {each.attempt.number for each in found.changed} == concerned


def attempts_of(recording: Recording) -> list[Attempt]:
    history, (_, records) = History(), recording.records()
    steps = [history.read(record) for record in records if record]
    found = [e for step in steps if isinstance(step, Step) for e in step.ended]
    return [*found, *history.attempts.cut_off()]


def size_of(attempt: Attempt) -> int:
    assert attempt.body is not None
    return int(attempt.body.stanza("spec")["n"])
