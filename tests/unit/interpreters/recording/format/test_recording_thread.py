"""A recorder in a thread of its own: the run does not wait, and gaps are counted."""

from __future__ import annotations

import io
import threading
from pathlib import Path

from fnop.adapters.recordings.recording_files import Background
from fnop.core.handlers.program.program import Program
from fnop.core.seam.inputs import AlarmRang, Bookmark, Started
from fnop.core.values.now import Now
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.format.ring import size_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.recording.replay.replay import replay_file
from tests.commands import fnop
from tests.patience import patience
from tests.simulations import ROOT

PROGRAM = Program(())
STEP = size_of(AlarmRang(), ())


class Disk(io.BytesIO):
    """A file on a disk that hangs until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.goes = threading.Event()
        self.is_asked = threading.Event()
        self.fails = False

    def write(self, data: object) -> int:
        self.is_asked.set()
        assert self.goes.wait(patience(20)), "nobody has let the disk go on"
        if self.fails:
            raise OSError(28, "No space left on device")
        return super().write(data)  # type: ignore[arg-type]

    def close(self) -> None:
        """Keep the written file readable."""


def recorded_on(disk: Disk, told: list[str], size: int) -> Background:
    disk.goes.set()
    header = header_of(PROGRAM, "test")
    recorder = Recorder(disk, header, Redaction(b"k" * 16, PROGRAM))
    disk.goes.clear()
    disk.is_asked.clear()
    return Background(recorder, told.append, size)


def test_what_a_disk_does_not_take_is_a_gap() -> None:
    disk, told = Disk(), list[str]()
    background = recorded_on(disk, told, 3 * STEP)
    background.observe(Now(0, 0), Started("seed"), ())
    assert disk.is_asked.wait(patience(20)), "the thread writes the first step"
    for second in range(1, 11):  # three wait, and seven are dropped
        background.observe(Now(second, second), AlarmRang(), ())
    disk.goes.set()
    background.close()
    assert background.problem is None
    records = read_records(io.BytesIO(disk.getvalue()))
    read_header(records)
    found = [each.get("gap") or each["mono"] for each in records if each is not None]
    assert found == [0.0, 1.0, 2.0, 3.0, 7]


def test_a_replay_does_not_cross_a_gap(tmp_path: Path) -> None:
    disk = Disk()
    disk.goes.set()
    header = header_of(PROGRAM, "test")
    recorder = Recorder(disk, header, Redaction(b"k" * 16, PROGRAM))
    recorder.gap(5)
    recorder.observe(Now(0, 0), Bookmark(1, "1"), ())
    recorder.close()
    found = replay_file(io.BytesIO(disk.getvalue()), PROGRAM)
    assert (found.steps, found.missing, found.difference) == (0, 5, None)
    (tmp_path / "run.fnop").write_bytes(disk.getvalue())
    operator = ROOT / "examples" / "01-minimal" / "example.py"
    done = fnop("replay", "run.fnop", operator, folder=tmp_path)
    assert done.status == 4
    assert "identical for 0 steps, where the recording lacks 5" in done.complaint


def test_a_disk_that_is_full_ends_the_recording_and_not_the_run() -> None:
    disk, told = Disk(), list[str]()
    background = recorded_on(disk, told, 1_000 * STEP)
    disk.fails = True
    disk.goes.set()
    for second in range(5):
        background.observe(Now(second, second), AlarmRang(), ())
    background.close()
    assert isinstance(background.problem, OSError)
    assert told == ["the recording ends here: [Errno 28] No space left on device"]
