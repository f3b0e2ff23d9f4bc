"""A folder of recordings is one story, with its processes one after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.interpreters.runtime.machine import Machine
from tests.commands import fnop as run_fnop
from tests.recordings import TRACED, Recording
from tests.simulations import Scenario, example

OPERATOR = """
import fnop

@fnop.reconcile("fnopexamples", owns=["configmaps"])
def keep(name, spec, **_):
    if spec["n"] == 3:
        return fnop.again(after=10, because="it waits")
    return fnop.desired([{
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"n": str(spec["n"])},
    }])
"""

registry = fnop.Registry()


@fnop.reconcile("fnopexamples", owns=["configmaps"], registry=registry)
def keep(name: str, spec: Any, **_: object) -> Any:
    if spec["n"] == 3:
        return fnop.again(after=10, because="it waits")
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"n": str(spec["n"])},
    }
    return fnop.desired([config])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two recordings: the first process was killed, and has not ended its file."""
    killed, after = Recording(registry), Recording(registry)
    run = Scenario(
        registry, [example(n=1)], settings=TRACED, observers=(killed.recorder,)
    )
    run.wait(20)
    run.edit("fnopexamples", "example-1", spec={"n": 2})
    assert run.settle()
    # another client deletes it, and it is repaired
    run.delete("configmaps", "example-1")
    assert run.settle()
    killed.recorder.save()
    (tmp_path / "run.1.fnop").write_bytes(killed.written())
    run.crash()
    run.machine = Machine(after.program, (after.recorder,))
    run.edit("fnopexamples", "example-1", spec={"n": 3})
    run.settle(seconds=300.0)
    after.records()
    (tmp_path / "run.fnop").write_bytes(after.written())
    (tmp_path / "operator.py").write_text(OPERATOR)
    return tmp_path


def replayed(runs: Path, *more: str) -> tuple[int, list[str], str]:
    """The status of `fnop replay` for the folder, its lines, and its other ones."""
    done = run_fnop("replay", str(runs), *more, folder=runs)
    return done.status, done.out.splitlines(), done.err


def test_the_story_goes_on_over_a_kill(runs: Path) -> None:
    status, lines, err = replayed(runs)
    assert (status, err) == (0, "")
    starts = [each for each in lines if "the operator starts" in each]
    assert len(starts) == 2
    assert "the process before has ended without a stop" in starts[1]


def test_what_a_waiting_operator_repeats_is_told_twice_and_counted(runs: Path) -> None:
    _, lines, _ = replayed(runs)
    called = [each for each in lines if "keep is called: its own requeue" in each]
    assert len(called) <= 3
    (folded,) = [each for each in lines if "more times, until" in each]
    assert " ... the last " in folded


def test_why_looks_into_all_processes(runs: Path) -> None:
    status, lines, _ = replayed(
        runs, "--object", "configmaps/default/example-1", "--why", "data.n"
    )
    assert status == 0
    assert lines[0] == 'configmaps default/example-1: data.n = "2"'
    assert any("keep" in each for each in lines[1:])


def test_each_process_is_decided_again(runs: Path) -> None:
    status, lines, err = replayed(runs, str(runs / "operator.py"))
    assert (status, err) == (0, "")
    assert [each.partition(": ")[0] for each in lines if "identical" in each] == [
        "identical",
        "identical",
    ]


def test_a_page_is_of_the_whole_run(runs: Path) -> None:
    page = runs / "page.html"
    status, _, err = replayed(runs, "--html", str(page))
    assert (status, err) == (0, "")
    headlines = page.read_text().partition("What happened")[2].partition("</ol>")[0]
    assert headlines.count("the operator starts") == 2
    assert "repaired" in headlines


def test_a_test_of_a_part_passes(runs: Path) -> None:
    status, lines, err = replayed(runs, str(runs / "operator.py"), "--as-test")
    assert status == 0, err
    assert any(each.startswith("def test_") for each in lines)


def test_an_empty_folder_is_no_recording(tmp_path: Path) -> None:
    status, _, err = replayed(tmp_path)
    assert status == 3
    assert "has no recordings: no file ends with .fnop" in err


def test_processes_of_the_same_time_are_no_one_story(runs: Path) -> None:
    (runs / "run.2.fnop").write_bytes((runs / "run.1.fnop").read_bytes())
    status, _, err = replayed(runs)
    assert status == 3
    assert "two of the recordings are of the same time" in err
