"""`--record-mode=ring`: the last steps of a run, in files, when something fails."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.recordings.recording_files import RingFiles, opened
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import AttemptEnded, Command, Exit, Perform, Say, Subject
from fnop.core.seam.inputs import AlarmRang, Answered, Started
from fnop.core.values.now import Now
from fnop.effects import Answer, Random
from fnop.effects.structs import replace
from fnop.interpreters.recording.format.ring import Ring
from tests.commands import Done, fnop
from tests.simulations import ROOT

FAILING = ROOT / "examples" / "03-exceptions"
FINE = ROOT / "examples" / "01-minimal"
ONE, OTHER = (
    Subject("fnopexamples", "default", each, f"uid-of-{each}") for each in ("a", "b")
)
RANG = AlarmRang()


def run(example: Path, folder: Path) -> Done:
    return fnop(
        *("run", example / "example.py", "--simulate", example / "object.yaml"),
        *("--record", "runs", "--record-mode", "ring"),
        folder=folder,
    )


def test_a_handler_that_fails_for_good_leaves_a_recording(tmp_path: Path) -> None:
    done = run(FAILING, tmp_path)
    assert done.status == 1
    (file,) = (tmp_path / "runs").glob("default-*-failed.fnop")
    assert f"steps of the run are recorded in runs/{file.name}" in done.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shadow = fnop("replay", file, FAILING / "example.py", "--shadow", folder=tmp_path)
    assert (shadow.status, shadow.err) == (0, "")
    assert shadow.out.startswith("0 of ")


def test_a_run_that_goes_well_leaves_none(tmp_path: Path) -> None:
    done = run(FINE, tmp_path)
    assert done.status == 0
    assert [*(tmp_path / "runs").iterdir()] == []


def test_a_full_recording_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "run.fnop"
    file.touch()
    file.chmod(0o666)
    done = fnop(
        *("run", FINE / "example.py", "--simulate", FINE / "object.yaml"),
        *("--record", file),
        folder=tmp_path,
    )
    assert done.status == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_is_no_file_is_written_to_as_it_is() -> None:
    with opened(Path("/dev/null")) as file:
        file.write(b"x")
    assert Path("/dev/null").is_char_device()


@pytest.fixture
def told() -> list[str]:
    return []


def files(folder: Path, told: list[str], ring: Ring | None = None) -> RingFiles:
    return RingFiles(folder, Program(()), (), told.append, ring)


FAILED = Say("error", "it failed", ended=AttemptEnded("error"))
RETRIED = Say("error", "it failed", ended=AttemptEnded("error", retried=True))


def test_failures_in_a_row_are_one_file_a_minute(
    tmp_path: Path, told: list[str]
) -> None:
    ring = files(tmp_path, told)
    for seconds in (0, 1, 59, 61, 100, 130):
        ring.observe(Now(seconds, seconds), AlarmRang(), (FAILED,))
        ring.observe(Now(seconds, seconds), AlarmRang(), (RETRIED,))
    ring.close()
    assert len([*tmp_path.iterdir()]) == len(told) == 3


def test_a_failure_is_written_down_with_the_answers_to_its_requests(
    tmp_path: Path,
) -> None:
    """So a recorded failure shows its status, and becomes a test that passes."""
    done = run(FAILING, tmp_path)
    (file,) = (tmp_path / "runs").glob("*-failed.fnop")
    story = fnop("replay", file, folder=tmp_path).out
    failed = story.index("failed for good")
    assert "status.conditions) -> version" in story[failed:], done


def asks(id: int, subject: Subject | None) -> tuple[Command, ...]:
    return (Perform(id, Random(8), subject=subject),)


@pytest.mark.parametrize(
    ("then", "steps"),
    [
        ([(0.0, RANG, asks(7, ONE)), (1.0, Answered(7, Answer()), ())], 3),
        ([(0.0, RANG, asks(7, OTHER)), (1.0, Answered(7, Answer()), ())], 5),
        ([(0.0, RANG, asks(7, ONE)), (1.0, RANG, asks(8, ONE))], 5),
        ([], 3),
    ],
    ids=["answered", "of another object", "never answered", "not asked"],
)
def test_a_file_waits_for_the_answers_but_not_for_ever(
    then: list[tuple[float, Any, tuple[Command, ...]]],
    steps: int,
    tmp_path: Path,
    told: list[str],
) -> None:
    ring = files(tmp_path, told)
    failed = replace(FAILED, subject=ONE)
    late = [(each, RANG, ()) for each in (2.0, 6.0, 7.0)]
    for seconds, input, commands in [(0.0, RANG, (failed,)), *then, *late]:
        ring.observe(Now(seconds, seconds), input, commands)
    ring.close()
    assert len(told) == 1
    assert f"the last {steps} steps" in told[0]


def test_what_is_not_answered_at_the_end_is_written_then(
    tmp_path: Path, told: list[str]
) -> None:
    ring = files(tmp_path, told)
    ring.observe(Now(0, 0), RANG, (replace(FAILED, subject=ONE),))
    ring.close()
    assert len(told) == 1


def test_an_operator_that_ends_with_an_error_leaves_its_end(
    tmp_path: Path, told: list[str]
) -> None:
    ring = files(tmp_path, told)
    ring.observe(Now(0, 0), Started("seed"), ())
    ring.observe(Now(0, 0), AlarmRang(), (FAILED,))
    ring.observe(Now(1, 1), AlarmRang(), (Exit(1, "refused"),))
    ring.close()
    names = sorted(each.name.rpartition("-")[2] for each in tmp_path.iterdir())
    assert names == ["ended.fnop", "failed.fnop"]


def test_the_last_of_a_run_cannot_be_decided_again(
    tmp_path: Path, told: list[str]
) -> None:
    ring = files(tmp_path, told, Ring(age=10))
    for seconds in range(30):
        ring.observe(Now(seconds, seconds), AlarmRang(), ())
    ring.dump("asked")
    ring.close()
    (file,) = tmp_path.iterdir()
    done = fnop("replay", file, FINE / "example.py", folder=tmp_path)
    assert done.status == 4
    assert "has only the last of a run, without its first 19 steps" in done.complaint


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path, told: list[str]) -> None:
    folder = tmp_path / "runs"
    ring = files(folder, told)
    folder.rmdir()
    ring.observe(Now(0, 0), AlarmRang(), (FAILED,))
    ring.close()
    assert len([*folder.iterdir()]) == 1


def test_a_folder_that_cannot_be_written_to_hurts_no_run(
    tmp_path: Path, told: list[str]
) -> None:
    folder = tmp_path / "runs"
    ring = files(folder, told)
    folder.rmdir()
    folder.write_text("a file is in its place")
    ring.observe(Now(0, 0), AlarmRang(), (FAILED,))
    ring.dump("asked")
    ring.close()
    assert [each.partition(":")[0] for each in told] == [
        "the recording cannot be written",
        "the recording cannot be written",
    ]


def test_a_mode_of_recording_needs_a_recording(tmp_path: Path) -> None:
    done = fnop(*("run", FINE / "example.py", "--record-mode", "ring"), folder=tmp_path)
    assert done.status == 2
    assert "--record-mode needs --record" in done.err
