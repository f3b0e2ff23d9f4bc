"""The report of a check in the chosen output form, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from fnop.adapters.check.options import CheckOptions
from fnop.adapters.common.endings import EXIT_ERROR, EXIT_UNKNOWN, EXIT_USAGE, fail
from fnop.adapters.common.plain import echo
from fnop.adapters.reports import check_report
from fnop.adapters.reports.check_report import Places, Shown
from fnop.interpreters.check.campaign.reports import Report

__all__ = ["Source", "cannot_write", "status_of", "tell"]


class Source(Struct, frozen=True):
    """An operator as reports name it: its files, and the places of its handlers."""

    paths: Sequence[str]
    places: Places


def tell(
    report: Report,
    shown: Sequence[Shown],
    source: Source,
    options: CheckOptions,
) -> None:
    """Print the report in the form of `--output`, and write the file of `--junit`."""
    match options.output:
        case "json":
            whole = check_report.as_json(report, source.places)
            echo(json.dumps(whole, indent=2, sort_keys=True))
        case "github":
            for line in check_report.for_github(report, source.paths[0], source.places):
                echo(line)
        case _:
            for line in check_report.as_lines(report, shown):
                echo(line)
    if options.junit:
        text = check_report.as_junit(report, Path(source.paths[0]).name)
        try:
            Path(options.junit).write_text(text, "utf-8")
        except OSError as problem:
            cannot_write(problem)


def cannot_write(problem: OSError) -> None:
    """End the command with a sentence about a place that cannot be written to."""
    reason = f"{problem.filename} cannot be written: {problem.strerror}"
    fail(f"{reason}; name another place", EXIT_USAGE)


def status_of(report: Report) -> int:
    """The exit status: a violated property, nothing known, or success."""
    if not report.is_clean:
        return EXIT_ERROR
    return 0 if report.is_known else EXIT_UNKNOWN
