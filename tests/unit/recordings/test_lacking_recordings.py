"""What a recording lacks is told by each command that reads it as it is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.commands import fnop
from tests.recordings import HEADER, STEP, lines_of

CUT_OFF = "fnop: the recording is cut off: its end was never written"
DROPPED = (
    "fnop: the recording has only the last of a run, without its first 7 steps: its "
    "first ones stand for what was known by then"
)
EARLIER = (
    "fnop: an earlier release made this recording: it does not hold what handlers were "
    "shown and decided"
)


@pytest.mark.parametrize(
    "mode", [(), ("--step",), ("--html", "a.html"), ("--perfetto", "a.pb")]
)
def test_what_is_lacking_is_told(mode: tuple[str, ...], tmp_path: Path) -> None:
    text = gzip.compress(lines_of({**HEADER, "dropped": 7}, STEP))
    (tmp_path / "run.fnop").write_bytes(text[:-8])
    found = fnop("replay", "run.fnop", *mode, folder=tmp_path)
    assert found.status == 0, found.err
    assert found.err.splitlines() == [CUT_OFF, DROPPED, EARLIER]
    (tmp_path / "run.fnop").write_bytes(
        gzip.compress(lines_of({**HEADER, "traces": True}, STEP))
    )
    whole = fnop("replay", "run.fnop", *mode, folder=tmp_path)
    assert (whole.status, whole.err) == (0, "")
