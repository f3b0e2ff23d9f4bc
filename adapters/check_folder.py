"""The folder of `--save`: the recordings of failures, tried again by the next call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from fnop.adapters.check_limits import Limits
from fnop.adapters.check_recordings import (
    digest_of,
    failure_in,
    place_of_benign,
    write_benign,
    write_failure,
)
from fnop.adapters.check_report import failure_record
from fnop.adapters.endings import warn
from fnop.interpreters.check.campaign import Task
from fnop.interpreters.check.explore import Case, Explorer, Failure
from fnop.interpreters.check.faults import schedule_from_json
from fnop.interpreters.check.scripts import script_to_json

__all__ = ["Folder"]


class Folder:
    """The recordings in a folder, which is made where something is written.

    `call` is what the header of a failure tells of the call that has found it.
    """

    def __init__(self, path: Path, call: Mapping[str, Any], limits: Limits) -> None:
        self._path, self._call, self._limits = path, call, limits
        self._may_record = True
        self._benigns: dict[Path, str] = {}

    def known(self, cases: Sequence[Case]) -> Iterator[Task]:
        """The failures of former calls, for cases that are still there."""
        numbers = {
            orjson.dumps(script_to_json(each.script)): number
            for number, each in enumerate(cases)
        }
        for file in sorted(self._path.glob("*.fnop")):
            found = failure_in(file)
            number = numbers.get(orjson.dumps(found.get("script"))) if found else None
            if found and number is not None:
                yield Task(number, schedule_from_json(found["schedule"]))

    def saved(self, explorer: Explorer, failure: Failure) -> tuple[str, str]:
        """Write the recordings of a failure, and of the run without faults.

        The files; "" for one that is not there.
        """
        if not self._may_record:
            return "", ""
        record = {**failure_record(explorer.case, failure), **self._call}
        name = f"{failure.violation.property}-{digest_of(record)}.fnop"

        def write(file: Path) -> None:
            write_failure(file, explorer, failure, record, self._limits.has_time)

        found = self._written(self._path / name, write)
        if not found or not failure.schedule:
            return found, ""
        return found, self._benign(explorer.case)

    def _benign(self, case: Case) -> str:
        """Write the recording of a case's run without faults, once; its file, or ""."""
        file = place_of_benign(self._path, case)
        if file not in self._benigns:
            self._benigns[file] = self._written(file, partial(write_benign, case=case))
        return self._benigns[file]

    def _written(self, file: Path, write: Callable[[Path], None]) -> str:
        """Write a file as a whole, or not; its name, or ""."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file)
        except OSError as problem:
            warn(f"{file} cannot be written: {problem}")
            return ""
        except KeyboardInterrupt:
            file.unlink(missing_ok=True)
            self._may_record = False
            self._limits.say("interrupted; no further recordings are written")
            return ""
        return str(file)
