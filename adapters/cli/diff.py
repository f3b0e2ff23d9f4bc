"""`fnop diff`: the point at which two recorded runs diverge."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fnop.adapters.cli.options import shared
from fnop.adapters.common.endings import (
    EXIT_DAMAGED,
    EXIT_ERROR,
    EXIT_INCOMPLETE,
    EXIT_UNSUPPORTED,
    fail,
    warn,
)
from fnop.adapters.common.plain import echo
from fnop.adapters.recordings.recorded import CUT_OFF, Recording, places_in
from fnop.core.values.errors import number_of
from fnop.effects.structs import replace

if TYPE_CHECKING:
    from fnop.adapters.recordings.diff_report import Side
    from fnop.interpreters.recording.comparison.runs import Run

__all__ = ["diff"]


@click.command()
@click.argument("a", type=click.Path(exists=True, dir_okay=False))
@click.argument("b", type=click.Path(exists=True, dir_okay=False))
@shared("output", type=click.Choice(["text", "json"], case_sensitive=False))
@shared("trusted")
def diff(a: str, b: str, output: str, trusted: bool) -> None:
    """Compare two recorded runs: the first decision that differs, and the input.

    \b
      fnop diff yesterday.fnop today.fnop
      fnop diff fnop-failures/benign-create-6d0b2a17.fnop \\
        fnop-failures/same_end-1a9d7b55.fnop

    fnop compares the calls of each handler for each object in their order, with their
    inputs, effects and answers.  It ignores values that differ between any two runs:
    times, versions, uids, generated names, and tokens for secrets.  It shows the first
    difference that caused the others: a field of an object, an answer, an event that
    came late or never, or a process that ended.  If the inputs of all calls are equal,
    the code of the operators differs.  You need no operator.

    Exit status: 0 if nothing differs; 1 if something differs; 2 for a wrong call; 3 if
    a file is damaged or is not a recording; 4 if nothing differs, but a recording is
    cut off, lacks steps, or has only the last part of a run; 5 if a recording has no
    decisions, or another release of fnop has to read it.
    """
    from fnop.adapters.recordings.diff_report import as_json, diff_lines
    from fnop.interpreters.recording.comparison.causes import compared

    try:
        # of hundreds of thousands of values the collector could free nothing
        gc.disable()
        (ours, one), (theirs, other) = (_read(file, trusted=trusted) for file in (a, b))
        sides = one, other
        found = compared(ours, theirs)
        lines = [*diff_lines(sides, found)]
        whole = json.dumps(as_json(sides, found), indent=2, default=dict)
    except Exception as problem:  # a record may be hostile: any error is blamed on it
        what = f"{type(problem).__name__}: {problem!s:.200}"
        fail(
            f"the recordings cannot be compared ({what}); one of them is damaged, or "
            "was not written by fnop",
            EXIT_DAMAGED,
        )
    finally:
        gc.enable()
    if output.lower() == "json":
        echo(whole)
    else:
        for line in lines:
            echo(line)
    sys.exit(_status(sides, differs=found.first is not None))


def _status(sides: tuple[Side, Side], *, differs: bool) -> int:
    for each in sides:
        if each.missing:
            gap = f"{number_of(each.missing, 'step')} after #{each.steps}"
            warn(f"{each.file} lacks {gap}: it is compared up to there")
        elif each.damage:
            warn(f"{each.file}: {each.damage}")
        elif each.truncated:
            warn(f"{each.file} {CUT_OFF}")
    if any(each.damage for each in sides):
        return EXIT_DAMAGED
    if differs:
        return EXIT_ERROR
    return EXIT_INCOMPLETE if any(each.is_open for each in sides) else 0


def _read(file: str, *, trusted: bool) -> tuple[Run, Side]:
    """Read a recording as a run, with its header's content."""
    from fnop.interpreters.recording.comparison.runs import Run
    from fnop.interpreters.recording.format.reader import (
        UNLIMITED,
        Damage,
        RecordingLimits,
        RecordingProblem,
        Unsupported,
    )

    run = Run()
    with Path(file).open("rb") as opened:
        limits = replace(UNLIMITED if trusted else RecordingLimits(), damage=Damage())
        recording = Recording(file, opened, limits)
        try:
            header = recording.header
            _check(file, header)
            read = recording.into(run.add)
        except Unsupported as problem:
            fail(f"{file}: {problem}", EXIT_UNSUPPORTED)
        except RecordingProblem as problem:
            fail(f"{file}: {problem}", EXIT_DAMAGED)
    if not run.steps and not recording.problem:
        fail(f"{file} holds no steps, and nothing was compared", EXIT_INCOMPLETE)
    run.is_open = run.is_open or read.truncated
    side = _side_of(file, header, run, truncated=read.truncated)
    return run, replace(side, damage=recording.problem)


def _check(file: str, header: dict[str, Any]) -> None:
    if header.get("traces") is not True:
        fail(
            f"{file} does not hold what handlers were shown and decided, as recordings "
            "of earlier releases do not; record the run again",
            EXIT_UNSUPPORTED,
        )
    if header.get("dropped"):
        fail(
            f"{file} has only the last of a run, and runs are compared from their "
            "beginnings on; record with --record-mode full",
            EXIT_INCOMPLETE,
        )


def _side_of(file: str, header: dict[str, Any], run: Run, *, truncated: bool) -> Side:
    from fnop.adapters.common.codes import Code
    from fnop.adapters.recordings.diff_report import Side

    handlers = header.get("handlers")
    return Side(
        file,
        header["fnop"],
        header["operator"],
        frozenset(map(str, handlers if isinstance(handlers, list) else ())),
        places_in(header),
        run.steps,
        truncated,
        Code.recorded(header),
        run.missing,
    )
