"""The recordings that `fnop check` writes: of failures, and of runs without faults."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

import fnop
from fnop.adapters.recordings.recorded import Recording
from fnop.adapters.recordings.recording_files import opened
from fnop.adapters.reports.check_report import case_record
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.account import Step, account_of, happened, veiled
from fnop.interpreters.check.campaign.explore import Case, Explorer, Failure
from fnop.interpreters.recording.format.reader import RecordingLimits, RecordingProblem
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.model.account import account_to_json
from fnop.interpreters.recording.redaction import Redaction

__all__ = [
    "digest_of",
    "failure_in",
    "place_of_benign",
    "write_benign",
    "write_failure",
]

# The objects of a check are generated, so readers of the file may read the tokens.
_NO_SECRET = b"fnop check"


def digest_of(record: Mapping[str, Any]) -> str:
    """A short text that is equal for equal records: a part of a file's name."""
    text = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def write_failure(
    file: Path,
    explorer: Explorer,
    failure: Failure,
    record: Mapping[str, Any],
    has_time: Callable[[], bool],
) -> None:
    """Write the run of a failure as a recording, which `fnop replay` reads.

    Its header is `record`. Raises `OSError`.
    """
    case = _with_traces(explorer.case)

    def redaction() -> Redaction:
        return Redaction(_NO_SECRET, case.program)

    steps, account = account_of(case, failure, redaction, has_time, explorer)
    message = veiled(str(record["message"]), steps, redaction())
    told = {**record, "message": message, "account": account_to_json(account)}
    _write(file, case.program, steps, {"check": told})


def place_of_benign(folder: Path, case: Case) -> Path:
    """The file for the run of a case without faults: `benign-create-1a9d7b55.fnop`."""
    name = re.sub(r"[^a-z0-9]+", "-", case.name.lower()).strip("-")
    return folder / f"benign-{name}-{digest_of(case_record(case))}.fnop"


def write_benign(file: Path, case: Case) -> None:
    """Write the run of a case without faults as a recording. Raises `OSError`."""
    case = _with_traces(case)
    _, steps, _ = happened(case, (), Redaction(_NO_SECRET, case.program))
    _write(file, case.program, steps, {})


def _with_traces(case: Case) -> Case:
    handlers, settings = case.program.handlers, case.program.settings
    return case._replace(program=Program(handlers, settings.replace(traces=True)))


def _write(
    file: Path, program: Program, steps: Iterable[Step], more: Mapping[str, Any]
) -> None:
    with opened(file) as target:
        header = {**header_of(program, fnop.__version__), **more}
        recorder = Recorder(target, header, Redaction(_NO_SECRET, program))
        for each in steps:
            recorder.observe(*each)
        recorder.finish()


def failure_in(file: Path) -> dict[str, Any] | None:
    """The failure in a recording's header; else None."""
    try:
        with open(file, "rb") as source:
            header = Recording(str(file), source, RecordingLimits()).header
            found = header.get("check")
    except (OSError, RecordingProblem):
        return None
    return found if isinstance(found, dict) else None
