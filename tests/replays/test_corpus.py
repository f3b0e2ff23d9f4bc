"""Recordings of earlier releases replay identically: nothing is decided otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replays.corpus import FOLDER, Recorded, read_index, replayed

RECORDED = read_index()


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=lambda each: each.name)
def test_it_replays_identically(recorded: Recorded, tmp_path: Path) -> None:
    done = replayed(recorded.file, recorded.operator, tmp_path)
    assert (done.status, done.err) == (0, ""), done.out
    assert done.out == f"identical: {recorded.steps} steps\n"


def test_all_recordings_are_replayed() -> None:
    assert {file.stem for file in FOLDER.glob("*.fnop")} == {*RECORDED}
