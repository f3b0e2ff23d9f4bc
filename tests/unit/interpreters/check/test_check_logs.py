"""`fnop check` of handlers of logs: pods write, and what strikes their lines."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import fnop
from fnop.adapters.testing.cases import Subjects, cases_of, subjects_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Explorer
from fnop.interpreters.check.state.kinds import in_words
from fnop.interpreters.check.state.scripts import script_from_json, script_to_json
from fnop.testing import fault, log_line

MARK = "example.com/read"


def operator(*, has_mark: bool) -> Registry:
    """An operator that notes the last number in a log, with or without a mark."""
    registry = Registry()

    def since(annotations: fnop.Annotations, **_: Any) -> str:
        return annotations.get(MARK, "start")

    @fnop.on.log(
        "pods",
        labels={"model": fnop.PRESENT},
        regex=r"loss=(\d+)",
        since=since if has_mark else "now",
        registry=registry,
    )
    def loss(match: Any, name: str, time: Any, patch: fnop.Patch, **_: Any) -> Any:
        patch.meta["annotations"] = {MARK: time.isoformat()}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"loss": match[1]}}
        return fnop.apply({**manifest, "metadata": {"name": f"loss-{name}"}})

    return registry


def subjects(registry: Registry) -> tuple[Program, Subjects]:
    program = Program(registry.handlers, Settings())
    return program, subjects_of(program, [])


@cache
def explorer() -> Explorer:
    cases = cases_of(*subjects(operator(has_mark=True)))
    (case,) = [each for each in cases if each.name == "pods write logs"]
    return Explorer(case)


SINGLES = [each for (each,) in explorer().singles()]


def test_a_pod_is_made_up_that_writes_what_handlers_want() -> None:
    _, found = subjects(operator(has_mark=True))
    (pod,) = found.subjects
    assert pod["metadata"]["labels"] == {"model": "x"}
    assert "made up a pod that writes logs" in "\n".join(found.notes)
    script = [str(each) for each in explorer().case.script]
    assert script == [
        *("apply Pod writes", "pods/writes logs 2 lines"),
        "pods/writes logs 'loss=11'",
    ]


@pytest.mark.parametrize("name", ["F24:break", "F24:cut", "F24:late", "F24:crash"])
def test_faults_of_logs_come_about_and_hurt_no_operator_with_a_mark(name: str) -> None:
    faults = [each for each in SINGLES if each.kind.name == name]
    assert faults
    for each in faults:
        verdict = explorer().tried((each,))
        assert verdict.struck, in_words((each,))
        assert verdict.violations == (), in_words((each,))


def test_an_operator_without_a_mark_is_told_what_a_crash_loses() -> None:
    cases = cases_of(*subjects(operator(has_mark=False)))
    (case,) = [each for each in cases if each.name == "pods write logs"]
    found = Explorer(case)
    crashes = [e for (e,) in found.singles() if e.kind.name == "F24:crash"]
    verdict = found.tried((crashes[-1],))
    assert [each.property for each in verdict.violations] == ["same_end"]


def test_a_container_that_does_not_run_yet_writes_later() -> None:
    """A stuck kubelet does not raise an alarm."""
    stuck = [e for e in SINGLES if e.kind.name == "F14:stuck"]
    assert stuck
    for each in stuck:
        assert explorer().tried((each,)).violations == ()


def test_scripts_with_logs_are_json() -> None:
    actions = (log_line("pods/p", "a\nb", container="c", namespace="n"),)
    assert script_from_json(script_to_json(actions)) == actions


def test_an_author_names_lines_of_a_log() -> None:
    words = str(fault("F24:break", log="default/p/c"))
    assert words == "the log breaks behind lines of the log of `default/p/c` (1st)"
