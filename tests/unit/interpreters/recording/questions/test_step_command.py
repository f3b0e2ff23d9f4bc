"""`fnop replay --step`: its commands, and what it says a recording lacks."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.cli import step as step_command
from fnop.adapters.cli.step import Session
from fnop.adapters.recordings.recorded import Recording, Unfolding, account_in
from fnop.interpreters.recording.format.reader import (
    UNLIMITED,
    RecordingProblem,
    read_header,
    read_records,
)
from fnop.interpreters.recording.questions.cursor import Cursor
from fnop.interpreters.recording.questions.steps import Reading
from tests.checks import failure
from tests.commands import Done, fnop
from tests.recorded_examples import record
from tests.recordings import HEADER, STEP, bomb, compressed, lines_of
from tests.simulations import ROOT


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record("19-database", tmp_path_factory.mktemp("step"))


def stepped(file: Path, folder: Path, *lines: str, **given: str) -> Done:
    """A session with these commands."""
    options = [each for name, value in given.items() for each in (f"--{name}", value)]
    text = "".join(f"{each}\n" for each in lines)
    return fnop("replay", file, "--step", *options, folder=folder, stdin=text)


def test_a_session_by_standard_input(recording: Path, tmp_path: Path) -> None:
    done = stepped(
        *(recording, tmp_path, "call", "saw", "# a comment", ""),
        *(
            "when status.endpoint exists",
            "next",
            "why status.endpoint",
            "quit",
            "bogus",
        ),
    )
    assert (done.status, done.err) == (0, "")
    title, first, *rest = done.out.splitlines()
    assert title.startswith("run.fnop: 35 steps, 9 objects, 2026-01-01 00:00:00 UTC to")
    assert first == "#1, 00:00:00.000"
    assert "  the operator starts" in rest
    assert "  [default/example-1] database is called: version 108" in rest
    told = (
        "status.endpoint exists of databases/default/example-1 holds from #20 to the "
        "end"
    )
    assert told in rest
    asked = ("--object", "databases/example-1", "--why", "status.endpoint")
    why = fnop("replay", recording, *asked, "--at", "21", folder=tmp_path)
    assert why.status == 0
    assert done.out.endswith(why.out)


def test_commands_without_an_answer_leave_the_session_alive(
    recording: Path, tmp_path: Path
) -> None:
    done = stepped(recording, tmp_path, "bogus", "back", "next")
    assert done.status == 1
    assert done.err.splitlines() == [
        "fnop: there is no command 'bogus': help lists them",
        "fnop: #1 is the first step",
    ]
    assert "#2, 00:00:00.000" in done.out


def test_where_it_begins(recording: Path, tmp_path: Path) -> None:
    there = stepped(recording, tmp_path, "get", object="databases/example-1")
    assert "#5, 00:00:00.000" in there.out
    assert "kind: Database" in there.out
    assert "\n#17, 00:00:00.000" in stepped(recording, tmp_path, at="17").out
    nowhere = stepped(recording, tmp_path, at="1700")
    assert (nowhere.status, nowhere.complaint) == (
        1,
        "fnop: there is no step #1700: the recording has #1 to #35",
    )
    assert stepped(recording, tmp_path, object="nobody").status == 1


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failure(tmp_path_factory.mktemp("failed"))


def test_a_failure_of_a_check_has_its_users_and_faults(
    failed: Path, tmp_path: Path
) -> None:
    done = stepped(failed, tmp_path, "failed", "list 100", "goto last", "objects")
    assert done.status == 0, done.err
    assert "after it, apply X x" in done.out
    assert "crash" in done.out
    assert "xs/default/x " in done.out


def test_the_truth_in_a_failure_of_a_check_is_what_its_cluster_has(
    failed: Path,
) -> None:
    header, *records = records_of(failed)
    reading = Reading(account_in(header))
    for each in records:
        reading.add(each)
    reading.end()
    steps, changes = reading.steps(), reading.account.changes
    assert len(changes) >= 3
    for number in steps.numbers:
        there: dict[tuple[str, ...], str] = {}
        for change in changes:
            place = change.kind, change.namespace, change.name
            if change.since <= number:
                there[place] = str(change.version)
                if change.type == "DELETED":
                    del there[place]
        found = {tuple(e.ref): e.version for e in Cursor(steps, number).present()}
        assert found == there


# ------------------------------------------------------------ what a recording lacks


def test_a_recording_of_an_earlier_release(tmp_path: Path) -> None:
    old = ROOT / "tests" / "replays" / "format-2" / "simulated-01-minimal.fnop"
    done = stepped(old, tmp_path, "write", "goto last", "objects", "call")
    assert done.status == 1
    assert "it does not hold what handlers were shown and decided" in done.err
    assert done.complaint.startswith("fnop: there is no call of a handler after #")
    assert "fnopexamples/default/example-1" in done.out


def test_one_that_is_cut_off(recording: Path, tmp_path: Path) -> None:
    whole = recording.read_bytes()
    (tmp_path / "cut.fnop").write_bytes(whole[: len(whole) * 2 // 3])
    done = stepped(tmp_path / "cut.fnop", tmp_path, "goto last")
    assert done.status == 0
    assert done.err == "fnop: the recording is cut off: its end was never written\n"
    assert done.out.startswith("cut.fnop: ")


def test_the_last_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "r.fnop").write_bytes(
        compressed(lines_of({**HEADER, "dropped": 7, "traces": True}, STEP))
    )
    done = stepped(tmp_path / "r.fnop", tmp_path)
    assert done.status == 0
    assert "has only the last of a run, without its first 7 steps" in done.err


def records_of(file: Path) -> Iterator[dict[str, Any]]:
    with file.open("rb") as opened:
        records = read_records(opened)
        yield read_header(records)
        yield from (each for each in records if each is not None)


def test_one_with_a_gap(recording: Path, tmp_path: Path) -> None:
    header, *records = records_of(recording)
    with_gap = [*records[:9], {"gap": 6}, *records[15:]]
    file = tmp_path / "gap.fnop"
    file.write_bytes(compressed(lines_of({**header, "format": 2}, *with_gap)))
    done = stepped(file, tmp_path, "goto 12", "next", "back 2", "goto 9", "next")
    assert (done.status, done.err) == (0, "")
    heads = [each for each in done.out.splitlines() if each.startswith("#")]
    numbers = [each.partition(",")[0] for each in heads]
    assert numbers == ["#1", "#15", "#16", "#9", "#9", "#15"]
    assert "  #10 to #15: 6 steps are missing" in done.out
    chosen = "object databases/example-1"
    why = stepped(file, tmp_path, chosen, "goto last", "why spec", "who spec")
    assert why.status == 0, why.err


@pytest.mark.parametrize("gap", [0, -3, True, "many", None, 1.5])
def test_a_gap_that_is_none(tmp_path: Path, gap: Any) -> None:
    file = tmp_path / "gap.fnop"
    file.write_bytes(compressed(lines_of(HEADER, STEP, {"gap": gap})))
    done = stepped(file, tmp_path, "next")
    assert (done.status, done.out) == (3, "")
    assert "record 2 of the recording cannot be understood" in done.complaint


HUGE = {"gap": 10**15}
ODD = {
    **STEP,
    "input": {
        "in": "WatchEvent",
        "stream": [],
        "type": "ADDED",
        "body": {"metadata": {"name": "\x1b[2J", "uid": 7, "finalizers": {}}},
    },
}


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ((), 1),
        ((STEP, HUGE, STEP), 0),
        ((STEP, {**STEP, "commands": [{"do": "Perform"}]}), 3),
        ((STEP, {**STEP, "wall": 1e300}), 3),
        ((STEP, ODD), 3),
        ((STEP, {"input": {"in": "Started"}}), 3),
    ],
)
def test_whatever_is_in_it_there_is_a_sentence(
    tmp_path: Path, records: tuple[Any, ...], status: int
) -> None:
    file = tmp_path / "odd.fnop"
    file.write_bytes(compressed(lines_of({**HEADER, "traces": True}, *records)))
    done = stepped(file, tmp_path, "next", "next", "goto first")
    assert done.status in ((0, 1) if status == 0 else (status,)), done
    assert "Traceback" not in done.err
    assert "\x1b" not in done.out + done.err
    assert all(each.startswith("fnop: ") for each in done.err.splitlines())


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"apiVersion: v1\n", 3, "not a recording of fnop"),
        (compressed(lines_of({**HEADER, "format": 4})), 5, "format 4"),
        (compressed(lines_of(HEADER)) + b"hello", 3, "damaged after step 0"),
        (bomb(60), 3, "more than 200 times"),
    ],
)
def test_what_is_no_recording_or_a_damaged_one(
    tmp_path: Path, content: bytes, status: int, sentence: str
) -> None:
    (tmp_path / "file.fnop").write_bytes(content)
    done = stepped(tmp_path / "file.fnop", tmp_path, "next")
    assert (done.status, done.out) == (status, "")
    assert sentence in done.complaint
    assert done.err.count("\n") == 1


def test_an_account_that_is_damaged(tmp_path: Path) -> None:
    header = {**HEADER, "check": {"account": {"marks": [1]}}}
    (tmp_path / "file.fnop").write_bytes(compressed(lines_of(header, STEP)))
    done = stepped(tmp_path / "file.fnop", tmp_path, "next")
    assert done.status == 3
    assert "account of its check is damaged" in done.complaint


def test_marks_in_odd_places_are_shown_somewhere(tmp_path: Path) -> None:
    marks = [
        {"step": step, "wall": 0.0, "lane": "user", "text": f"act {step}", "version": 1}
        for step in (-9, 0, 1, 3, 2, 400)
    ]
    header = {**HEADER, "traces": True, "check": {"account": {"marks": marks}}}
    content = lines_of(header, STEP, {"gap": 5}, STEP)
    (tmp_path / "file.fnop").write_bytes(compressed(content))
    done = stepped(tmp_path / "file.fnop", tmp_path, "list 9")
    assert done.status == 0, done.err
    told = [json.dumps(each["text"])[1:-1] for each in marks]
    assert all(f"after it, {each}" in done.out for each in told)


# ------------------------------------------------------------------- at a terminal


def test_enter_repeats_and_an_interrupt_does_not_end_it(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed: Iterator[str | BaseException] = iter(
        ["next", "", "", KeyboardInterrupt(), "nonsense", "back", EOFError()]
    )
    prompts: list[str] = []

    def input(prompt: str) -> str:
        prompts.append(prompt)
        found = next(typed)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr("builtins.input", input)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(step_command, "_with_readline", lambda session: None)
    with recording.open("rb") as file:
        read = Recording(str(recording), file, UNLIMITED)
        status = step_command.stepped(read, None, None)
    assert status == 0
    steps = [1, 2, 3, 4, 4, 4, 3]
    assert prompts == [f"(#{each}) " for each in steps]
    found = capsys.readouterr()
    assert "help lists the commands, quit ends" in found.out
    assert found.err == "fnop: there is no command 'nonsense': help lists them\n"


def test_a_question_that_is_interrupted_leaves_the_session_alive(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(session: Session, line: str) -> Iterator[str]:
        raise KeyboardInterrupt if line == "why spec" else step_command.Quit

    typed = iter(["why spec", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(step_command, "_with_readline", lambda session: None)
    monkeypatch.setattr(Session, "do", interrupted)
    with recording.open("rb") as file:
        read = Recording(str(recording), file, UNLIMITED)
        assert step_command.stepped(read, None, None) == 0
    assert capsys.readouterr().err == "fnop: interrupted\n"


# ------------------------------------------------------------- read as it is asked for


def scripted(
    file: Path,
    lines: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[int, str, str]:
    """A session that reads ten steps at first: its exit status, and its output."""
    monkeypatch.setattr(step_command, "AHEAD", 5)
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{e}\n" for e in lines)))
    with file.open("rb") as opened:
        status = step_command.stepped(
            Recording(str(file), opened, UNLIMITED), None, None
        )
    return status, *capsys.readouterr()


def test_a_long_recording_is_read_as_it_is_asked_for(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = "object databases/example-1"
    lines = ["next", "goto last", chosen, "who status.endpoint"]
    status, out, err = scripted(recording, lines, monkeypatch, capsys)
    assert (status, err) == (0, "")
    title, *rest = out.splitlines()
    assert title.startswith("run.fnop: its first 10 steps, ")
    assert title.endswith("; more is read as it is asked for")
    numbers = [each.partition(",")[0] for each in rest if each.startswith("#")]
    assert numbers == ["#1", "#2", "#35"]
    assert 'nothing -> "example-1.default.svc:5432"' in rest[-1]


def test_the_end_that_is_missing_is_told_when_it_is_reached(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (header, *records), cut = records_of(recording), tmp_path / "cut.fnop"
    first = lines_of({**header, "format": 2}, *records[:20])
    cut.write_bytes(compressed(first) + compressed(lines_of(*records[20:]))[:30])
    assert scripted(cut, ["next"], monkeypatch, capsys)[::2] == (0, "")
    status, _, err = scripted(cut, ["goto last"], monkeypatch, capsys)
    assert status == 0
    assert err == "fnop: the recording is cut off: its end was never written\n"


def test_damage_ends_a_script_and_not_what_was_read_before(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    header, *records = records_of(recording)
    header["format"] = 2
    damaged = [*records[:20], {**records[20], "wall": "noon"}, *records[21:]]
    file = tmp_path / "damaged.fnop"
    file.write_bytes(compressed(lines_of(header, *damaged)))
    assert scripted(file, ["next", "back"], monkeypatch, capsys)[0] == 0
    with pytest.raises(RecordingProblem, match="record 21 of the recording cannot be"):
        scripted(file, ["goto last"], monkeypatch, capsys)
    with file.open("rb") as opened:
        source = step_command._Source(Recording(str(file), opened, UNLIMITED))
        with pytest.raises(RecordingProblem, match="record 21"):
            source.read_on(None)
        steps = source.read_on(None)
        assert steps is not None
        assert steps.last == 20
        assert source.read_on(None) is None


class Counted:
    """A fold that is interrupted once, amid a record."""

    interrupts = 1

    def __init__(self) -> None:
        self.begun = self.done = 0

    def add(self, record: Any) -> None:
        self.begun += 1
        if self.begun == 20 and Counted.interrupts:
            Counted.interrupts -= 1
            raise KeyboardInterrupt
        self.done += 1


def test_a_reading_that_is_interrupted_begins_anew(recording: Path) -> None:
    with recording.open("rb") as opened:
        reading = Unfolding(Recording(str(recording), opened, UNLIMITED), Counted)
        other = Unfolding(Recording(str(recording), opened, UNLIMITED), Counted)
        assert reading.to(12)
        with pytest.raises(KeyboardInterrupt):
            reading.to(None)
        assert reading.to(5)
        assert other.to(None)
        assert reading.to(None)
        assert not reading.to(None)
    assert reading.is_over
    assert not reading.truncated
    assert reading.fold.begun == reading.fold.done == other.fold.done == 35
