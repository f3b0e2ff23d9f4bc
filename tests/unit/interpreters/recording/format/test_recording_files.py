"""The file of a recording: one process writes it, and nothing is written over."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fnop.adapters.recordings.recording_files import opened, recorder_to
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.format.recorder import Recorder
from fnop.interpreters.recording.redaction import Redaction

PROGRAM = Program(())
_ZSTD = bytes.fromhex("28b52ffd")


def recorder(path: Path) -> Recorder:
    return recorder_to(path, PROGRAM, Redaction(b"k" * 16, PROGRAM))


def test_a_file_is_written_by_one_process_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.fnop"
    with opened(path) as first:
        for open_it in (opened, recorder):
            with pytest.raises(OSError, match="is being written by another process"):
                open_it(path)
        first.write(b"whole")
    assert path.read_bytes() == b"whole"
    opened(path).close()
    assert path.read_bytes() == b""


def test_of_many_that_begin_at_once_none_loses_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.fnop"
    ready = threading.Barrier(8)
    path.write_bytes(_ZSTD)

    def begin() -> None:
        ready.wait()
        while True:
            try:
                recorder(path).close()
            except FileExistsError:
                continue  # another one is writing it
            return

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = [each.read_bytes() for each in tmp_path.iterdir()]
    assert len(found) == 9
    assert all(each.startswith(_ZSTD) for each in found)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_that_nobody_reads_is_no_place_for_a_recording(pipe: Path) -> None:
    with pytest.raises(OSError, match="is a pipe, and nobody reads it"):
        opened(pipe)


def test_a_pipe_that_somebody_reads_is_written_to(pipe: Path) -> None:
    with (
        os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader,
        opened(pipe) as file,
    ):
        assert os.get_blocking(file.fileno())
        file.write(b"x")
        file.flush()
        assert reader.read(1) == b"x"
