"""Recordings of earlier releases replay identically: nothing is decided otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replays.corpus import FOLDER, Recorded, read_index, replayed
from tests.replays.operators import UNTOLD, shadowed
from tests.simulations import ROOT

RECORDED = read_index()


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=lambda each: each.name)
def test_it_replays_identically(recorded: Recorded, tmp_path: Path) -> None:
    done = replayed(recorded.file, recorded.operator, tmp_path)
    if recorded.otherwise is not None:
        assert done.status == 1
        assert done.out.startswith(f"different at step {recorded.otherwise}: ")
    elif recorded.cut_off:
        assert (done.status, done.out) == (4, ""), done.out
        where = "where the recording is cut off: its end was never written"
        assert done.err == f"fnop: identical for {recorded.steps} steps, {where}\n"
    else:
        assert (done.status, done.err) == (0, ""), done.out
        assert done.out == f"identical: {recorded.steps} steps\n"


@pytest.mark.parametrize(
    "recorded",
    [each for each in RECORDED.values() if each.is_traced],
    ids=lambda each: each.name,
)
def test_its_own_operator_decides_no_attempt_otherwise(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shadowed(recorded, ROOT / recorded.operator, monkeypatch)
    assert found.attempts
    assert (found.changed, found.reindexed, found.concealed) == ([], [], [])
    assert (found.missing, found.unindexed) == ({}, {})
    assert found.untold.keys() <= UNTOLD
    assert (found.new, found.lost, found.truncated) == ((), 0, recorded.cut_off)


def test_all_recordings_are_replayed() -> None:
    files = (file.relative_to(FOLDER) for file in FOLDER.rglob("*.fnop"))
    assert {str(file.with_suffix("")) for file in files} == {*RECORDED}
