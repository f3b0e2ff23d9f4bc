"""A log that is read in any parts, with any interruptions, is read once and whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hypothesis import given, strategies as st

from fnop.core.streams.log_reader import LogReader, Sieve
from fnop.core.values.log_lines import NANOS, LogMark, text_of_time

BEGIN = 1_700_000_000 * NANOS
ALL = (Sieve("h"),)
Line = tuple[int, str]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=20)
# Steps of the clock in milliseconds; two writers to one log come a little out of order.
steps = st.integers(-40, 1500)


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    """The lines of a log, with times that grow but for a few milliseconds."""
    latest, found = BEGIN, []
    for step in draw(st.lists(steps, max_size=40)):
        time = max(BEGIN, latest + step * 1_000_000)
        latest = max(latest, time)
        found.append((time, draw(texts)))
    return found


def written(lines: Iterable[Line], zone: str = "Z") -> bytes:
    return b"".join(
        f"{text_of_time(time)[:-1]}{zone} {text}\n".encode() for time, text in lines
    )


def served(lines: Sequence[Line], mark: LogMark | None) -> list[Line]:
    """The lines that kubelet shows from the second of a mark on."""
    since = 0 if mark is None else mark.second * NANOS
    return [each for each in lines if each[0] >= since]


def parts(data: bytes, sizes: Sequence[int]) -> Iterable[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def taken(reader: LogReader) -> list[Line]:
    found: list[Line] = []
    while (batch := reader.batch(0.0)) is not None:
        found += [(each.time, each.text) for each in batch.lines]
    return found


sizes = st.lists(st.integers(1, 200), max_size=20)


@given(logs(), sizes, st.sampled_from(["Z", "+00:00", "-00:00"]))
def test_the_parts_in_which_it_comes_do_not_matter(
    lines: list[Line], sizes: list[int], zone: str
) -> None:
    reader = LogReader(ALL, limit=1000)
    found: list[Line] = []
    for part in parts(written(lines, zone), sizes):
        reader.feed(part)
        found += taken(reader)
    assert found == lines


@given(logs(), st.lists(st.tuples(sizes, st.integers(0, 2000)), max_size=8))
def test_interruptions_neither_lose_nor_repeat_a_line(
    lines: list[Line], readings: list[tuple[list[int], int]]
) -> None:
    """Each reading begins at the mark of the one before, and is cut off somewhere."""
    mark: LogMark | None = None
    found: list[Line] = []
    for sizes_, cut in readings:
        reader = LogReader(ALL, limit=1000, after=mark)
        for part in parts(written(served(lines, mark))[:cut], sizes_):
            reader.feed(part)
            found += taken(reader)
        assert not reader.is_elsewhere
        mark = reader.mark
    reader = LogReader(ALL, limit=1000, after=mark)
    reader.feed(written(served(lines, mark)))
    assert found + taken(reader) == lines
    # By the place it is known that nothing has come since.
    whole = LogReader(ALL, limit=1000)
    whole.feed(written(lines))
    taken(whole)
    assert reader.place == whole.place


@given(logs(), st.integers(0, 2000), st.integers(0, 2000))
def test_two_readings_end_at_one_place_only_if_nothing_has_come(
    lines: list[Line], first: int, second: int
) -> None:
    """Also within a line: how much of it there was is part of the place."""
    data = written(lines)
    places = []
    for size in (first, second):
        reader = LogReader(ALL, limit=1000)
        reader.feed(data[:size])
        taken(reader)
        places.append(reader.place)
    assert (places[0] == places[1]) == (data[:first] == data[:second])


@given(logs(), st.integers(0, 40), st.integers(0, 40))
def test_a_rotated_file_is_read_from_where_it_begins(
    lines: list[Line], read: int, kept: int
) -> None:
    """Lines of the file that kubelet has put aside do not come again."""
    lines = sorted({time: (time, text) for time, text in lines}.values())
    before = LogReader(ALL, limit=1000)
    before.feed(written(lines[:read]))
    found = taken(before)
    present = lines[kept:]
    mark = before.mark
    after = LogReader(ALL, limit=1000, after=mark)
    after.feed(written(served(present, mark)))
    later = taken(after)
    if after.is_elsewhere:
        assert not later
        assert mark is not None
        after = LogReader(ALL, limit=1000, after=mark._replace(seen=None))
        after.feed(written(served(present, mark)))
        later = taken(after)
    assert found + later == [*lines[:read], *lines[max(read, kept) :]]


@given(logs(), st.data())
def test_a_mark_behind_some_lines_is_the_same_for_all_who_read_them(
    lines: list[Line], data: st.DataObject
) -> None:
    """Though the lines that are wanted differ."""
    end = data.draw(st.integers(0, len(lines)))
    regex = re.compile("a|0")
    readers = LogReader(ALL, limit=1000), LogReader((Sieve("h", regex),), limit=1000)
    for reader in readers:
        reader.feed(written(lines[:end]))
        taken(reader)
    assert readers[0].mark == readers[1].mark


@given(logs(), sizes, st.integers(0, 2000))
def test_events_of_several_lines_survive_an_interruption(
    lines: list[Line], sizes: list[int], cut: int
) -> None:
    """An event that is not complete is not given out, and comes again as a whole."""
    lines = [(time, f"> {text}" if text < "V" else text) for time, text in lines]
    first = re.compile("^> ")

    def events(lines: Iterable[Line]) -> list[Line]:
        reader = LogReader(ALL, limit=10_000, multiline=first)
        reader.feed(written(lines))
        return taken(reader) + [(e.time, e.text) for e in reader.rest(0.0)]

    reader = LogReader(ALL, limit=10_000, multiline=first)
    found: list[Line] = []
    for part in parts(written(lines)[:cut], sizes):
        reader.feed(part)
        found += taken(reader)
    after = LogReader(ALL, limit=10_000, multiline=first, after=reader.mark)
    after.feed(written(served(lines, reader.mark)))
    found += taken(after)
    found += [(e.time, e.text) for e in after.rest(0.0)]
    assert found == events(lines)
