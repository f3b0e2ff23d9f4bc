"""The options of `fnop replay` that write a recording's timeline into a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from fnop.adapters.common.endings import fail, warn
from fnop.adapters.common.plain import echo
from fnop.adapters.recordings.recorded import (
    CUT_OFF,
    Recording,
    account_in,
    tell_what_lacks,
    understood,
)
from fnop.interpreters.recording.questions.processes import (
    Processes,
    by_time,
    names_of,
)
from fnop.interpreters.recording.questions.timeline import EVENTS_MAX, Timeline

__all__ = ["is_recording", "picture", "picture_together", "pictured"]

# The most bytes in a page of a failure, and its fewest events.
PAGE_BYTES, EVENTS_MIN = 500_000, 200
_FILE = click.Path(dir_okay=False)


def pictured(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options `--html` and `--perfetto`."""
    html = click.option(
        "--html",
        type=_FILE,
        metavar="FILE",
        help="Write the run as a page for browsers, which needs no network. Several "
        "recordings and folders become one page.",
    )
    perfetto = click.option(
        "--perfetto",
        type=_FILE,
        metavar="FILE",
        help="Write the run as a trace for https://ui.perfetto.dev.",
    )
    return html(perfetto(command))


def is_recording(path: str) -> bool:
    """Whether a path is a recording, or a folder with recordings."""
    from fnop.adapters.recordings.recording_files import is_compressed

    place = Path(path)
    if place.is_dir():
        return any(place.glob("*.fnop"))
    return place.is_file() and is_compressed(place)


def picture_together(recordings: Sequence[Recording], html: str) -> int:
    """Write one page of several processes; return the exit status.

    Raises `fnop.interpreters.recording.format.reader.RecordingProblem`.
    """
    from fnop.adapters.recordings.html_report import joint_header, page_of

    _must_be_no_recording(html)
    headers = [each.header for each in recordings]
    if any("check" in each for each in headers):
        fail("a failure of fnop check has a page of its own: name it alone", 2)
    names = names_of([each.path for each in recordings])
    found = Processes(names, EVENTS_MAX)
    cut_off: list[str] = []
    whole = {
        name: _whole(each, name, cut_off)
        for name, each in zip(names, recordings, strict=True)
    }
    with understood():
        for name, record in by_time(whole):
            found.add(name, record)
        found.end()
    header, name = joint_header(headers), ", ".join(names)
    page = page_of(header, found, name, cut_off=bool(cut_off))
    _write(html, page.encode(errors="backslashreplace"))
    _tell_left_out(html, found)
    for each in cut_off:
        warn(f"{each} {CUT_OFF}")
    return 0


def _whole(
    recording: Recording, name: str, cut_off: list[str]
) -> Iterator[Mapping[str, Any]]:
    """The records of a recording; its name is added to those that are cut off."""
    for record in recording.opened()[1]:
        if record is None:
            cut_off.append(name)
            return
        yield record


def _must_be_no_recording(path: str) -> None:
    """Refuse to overwrite a recording."""
    from fnop.adapters.recordings.recording_files import is_compressed

    if Path(path).is_file() and is_compressed(Path(path)):
        fail(f"{path} is a recording: give another name", 2)


def picture(recording: Recording, html: str | None, perfetto: str | None) -> int:
    """Write the timeline of a recording; return the exit status.

    A folder with recordings of processes that ran at the same time has a page of all.
    Raises `fnop.interpreters.recording.format.reader.RecordingProblem`.
    """
    from fnop.adapters.recordings.perfetto import TRACE_EVENTS_MAX, trace_of
    from fnop.interpreters.recording.format.reader import AtOnce

    cut_off = False
    for path in filter(None, (html, perfetto)):
        _must_be_no_recording(path)

    if html is not None:
        try:
            timeline, cut_off = _read(recording, EVENTS_MAX)
        except AtOnce:
            if perfetto is not None:
                raise
            return picture_together(recording.parts, html)
        name = Path(recording.path).name
        _write(html, _page(recording.header, timeline, name, cut_off=cut_off))
        _tell_left_out(html, timeline)
    if perfetto is not None:
        timeline, cut_off = _read(recording, TRACE_EVENTS_MAX)
        _write(perfetto, trace_of(timeline))
        _tell_left_out(perfetto, timeline)
    cut_off = cut_off and not recording.problem
    tell_what_lacks(recording.header, truncated=cut_off)
    return 0


def _page(
    header: Mapping[str, Any], timeline: Timeline, name: str, *, cut_off: bool
) -> bytes:
    """The page; for a failure of a check, it is short enough to be sent around."""
    from fnop.adapters.recordings.html_report import page_of

    while True:
        page = page_of(header, timeline, name, cut_off=cut_off)
        found = page.encode(errors="backslashreplace")
        events = len(timeline.events)
        if "check" not in header or len(found) <= PAGE_BYTES or events <= EVENTS_MIN:
            return found
        share = 0.95 * PAGE_BYTES / len(found)
        timeline.shorten(max(EVENTS_MIN, int(share * events)))


def _tell_left_out(path: str, timeline: Timeline | Processes) -> None:
    """Report the content that a file does not show."""
    if timeline.left_out:
        warn(f"{path} has no place for {timeline.left_out}")


def _read(recording: Recording, most: int) -> tuple[Timeline, bool]:
    """The timeline, up to a number of events, and whether the recording is cut off."""
    timeline = Timeline(account_in(recording.header), deque(maxlen=most))
    read = recording.into(timeline.add)
    with understood():
        timeline.end()
    return timeline, read.truncated


def _write(path: str, content: bytes) -> None:
    """Write a file that only its owner may read, like a recording."""
    from fnop.adapters.recordings.recording_files import opened

    try:
        with opened(Path(path)) as target:
            target.write(content)
    except OSError as problem:
        fail(f"{path} cannot be written: {problem.strerror or problem}")
    echo(f"{path}: {len(content):,} bytes")
