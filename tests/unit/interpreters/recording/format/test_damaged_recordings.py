"""Damaged recordings: each command reads them up to the damage."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from fnop.interpreters.recording.format.reader import (
    Damage,
    RecordingLimits,
    RecordingProblem,
    read_header,
    read_records,
)
from fnop.interpreters.recording.format.sums import OtherLines, Sums, trusted
from tests.commands import Done, fnop
from tests.damage import all_lines, all_records, damaged, flipped, whole
from tests.recordings import compressed, records_in
from tests.simulations import ROOT
from tests.thorough import examples

OPERATOR = ROOT / "examples" / "05-handlers" / "example.py"


def read(data: bytes) -> tuple[list[dict[str, Any]], str]:
    """The steps before the damage, and the sentence about it."""
    damage = Damage()
    records = read_records(io.BytesIO(data), RecordingLimits(damage=damage))
    read_header(records)
    *found, last = records
    if last is None:
        return [each for each in found if each is not None], str(damage.problem or "")
    assert not damage, "then it shows as cut off"
    return [each for each in (*found, last) if each is not None], ""


def written(lines: list[bytes]) -> bytes:
    return compressed(b"".join(each + b"\n" for each in lines))


def test_it_is_long_enough_to_be_told_in_parts() -> None:
    assert len(all_records()) > 300
    assert sum(b',"s":' in each for each in all_lines()) > 5


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_wherever_a_bit_is_changed_what_is_read_is_what_was_written(
    data: st.DataObject,
) -> None:
    at = data.draw(st.integers(0, len(whole()) - 1), "where")
    try:
        found, problem = read(flipped(whole(), at, data.draw(st.integers(0, 7), "bit")))
    except RecordingProblem:
        assume(at > len(whole()) // 4)  # its beginning is damaged
        raise
    assert found == all_records()[: len(found)]
    assert not problem or problem.startswith(
        f"the recording is damaged after step {len(found)}: "
    )


@pytest.mark.parametrize("part", [0.4, 0.6, 0.8])
def test_most_of_what_is_before_the_damage_is_read(part: float) -> None:
    found, _ = read(flipped(whole(), int(part * len(whole()))))
    assert len(found) > (part - 0.3) * len(all_records())


def test_of_a_changed_checksum_the_last_lines_are_in_doubt() -> None:
    found, problem = read(flipped(whole(), len(whole()) - 1))
    assert len(all_records()) * 0.9 < len(found) < len(all_records())
    assert "cannot be unpacked there" in problem


@pytest.mark.parametrize("count", [1, 10])
def test_lines_that_were_taken_out_are_noticed(count: int) -> None:
    middle = len(all_lines()) // 2
    found, problem = read(written(all_lines()[:middle] + all_lines()[middle + count :]))
    assert found == all_records()[: len(found)]
    assert middle - 60 < len(found) < middle
    assert "lines before it are missing, or were changed" in problem


def test_a_line_that_was_changed_is_noticed() -> None:
    middle = len(all_lines()) // 2
    line = re.sub(
        rb"\d",
        lambda found: b"12"[found[0] == b"1" :][:1],
        all_lines()[middle],
        count=1,
    )
    assert line != all_lines()[middle]
    found, problem = read(
        written([*all_lines()[:middle], line, *all_lines()[middle + 1 :]])
    )
    assert found == all_records()[: len(found)]
    assert "were changed" in problem


def test_sums_that_were_taken_out_are_noticed() -> None:
    bare = [each.partition(b',"s":')[0] for each in all_lines()[1:]]
    bare = [each if each.endswith(b"}") else each + b"}" for each in bare]
    _, problem = read(written([all_lines()[0], *bare]))
    assert "a checksum is missing" in problem


def test_of_two_files_that_were_joined_the_first_is_read() -> None:
    found, problem = read(whole() + whole())
    assert found == all_records()
    assert "another recording begins there: two files were joined" in problem


def test_recordings_of_earlier_releases_are_read_without_sums() -> None:
    header = {**json.loads(all_lines()[0])}
    del header["sums"]
    bare = [each.partition(b',"s":')[0] for each in all_lines()[1:]]
    bare = [each if each.endswith(b"}") else each + b"}" for each in bare]
    lines = [json.dumps(header).encode(), *bare]
    assert records_in(written(lines)) == all_records()
    found, problem = read(flipped(written(lines), int(0.8 * len(whole()))))
    assert len(found) > 0.3 * len(all_records())
    assert "is damaged after step" in problem


def test_earlier_releases_read_the_lines_with_sums() -> None:
    """They look at `t`, `r`, `b` and `gap` alone; the format is still theirs."""
    assert {
        tuple(json.loads(each).keys() - {"t", "r", "b"}) for each in all_lines()[1:]
    } == {
        (),
        ("s",),
    }
    assert json.loads(all_lines()[0])["format"] == 3


def test_a_file_that_is_cut_off_is_not_damaged() -> None:
    """A process may be killed at any moment: what it has written is in no doubt."""
    found, problem = read(whole()[: len(whole()) * 2 // 3])
    assert found == all_records()[: len(found)]
    assert len(found) > len(all_records()) / 3
    assert problem == ""


def test_without_somebody_to_tell_the_damage_is_raised_at_its_place() -> None:
    records = read_records(io.BytesIO(flipped(whole(), len(whole()) // 2)))
    found: list[Any] = []
    with pytest.raises(RecordingProblem, match="only what is before it can be read"):
        found.extend(records)
    assert len(found) > 10


def test_no_reader_holds_more_than_a_sum_is_for() -> None:
    line = b'{"t":[0,0],"r":[0]}'
    lines = iter([b'{"sums":true}', *[line] * 10_000])
    with pytest.raises(OtherLines, match="a checksum is missing"):
        [*trusted(lines)]
    assert sum(1 for _ in lines) > 9_000


@given(st.lists(st.binary(max_size=3000).map(lambda raw: raw.hex().encode())))
def test_what_is_summed_is_trusted(texts: list[bytes]) -> None:
    sums = Sums()
    steps = [b'{"t":[0,0],"r":[0,"%b"]}' % each for each in texts]
    lines = [*sums.summed([b'{"sums":true}']), *sums.summed(steps, last=True)]
    found = [each for each in trusted(each[:-1] for each in lines) if each is not None]
    assert [each + b"\n" for each in found] == lines


# ------------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording, one that is damaged, and one that is cut off there."""
    folder = tmp_path_factory.mktemp("damaged")
    data = damaged(0.7)
    count = len(read(data)[0])
    (folder / "whole.fnop").write_bytes(whole())
    (folder / "damaged.fnop").write_bytes(data)
    lines = b"".join(each + b"\n" for each in all_lines()[: count + 1])
    (folder / "cut.fnop").write_bytes(compressed(lines)[:-7])
    assert len(read((folder / "cut.fnop").read_bytes())[0]) == count
    return folder


MODES: dict[str, tuple[str | Path, ...]] = {
    "story": (),
    "of an object": ("--object", "e3"),
    "why": ("--object", "fnopexamples/e3", "--why", "metadata.name"),
    "step": ("--step", "--at", "9"),
    "verify": (OPERATOR,),
    "shadow": (OPERATOR, "--shadow"),
    "from": (OPERATOR, "--from", "200"),
    "perfetto": ("--perfetto", "out.pb"),
}


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_tells_what_is_before_the_damage(mode: str, place: Path) -> None:
    def told(name: str) -> Done:
        script = "goto last\nlist\n" if mode == "step" else ""
        return fnop("replay", name, *MODES[mode], folder=place, stdin=script)

    damaged, cut = told("damaged.fnop"), told("cut.fnop")
    assert damaged.status == 3
    assert cut.status in (0, 1, 4)
    assert damaged.complaint.startswith("fnop: the recording is damaged after step ")
    assert "its end was never written" not in damaged.err
    shown = cut.out.replace("cut.fnop", "damaged.fnop")
    shown = shown.replace("the recording is cut off: its end was never written\n", "")
    assert damaged.out == shown
    assert damaged.out or mode in ("verify", "perfetto")


def test_a_comparison_goes_up_to_the_damage(place: Path) -> None:
    done = fnop("diff", "damaged.fnop", "whole.fnop", folder=place)
    assert done.status == 3
    assert "a: damaged.fnop" in done.out
    assert done.complaint.startswith("fnop: damaged.fnop: the recording is damaged ")
