"""The folder of `--save`: recordings of failures, which the next call tries again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from fnop.adapters.check.limits import Limits
from fnop.adapters.check.recordings import (
    digest_of,
    failure_in,
    place_of_benign,
    write_benign,
    write_failure,
)
from fnop.adapters.common.endings import warn
from fnop.adapters.reports.check_report import (
    FOUND_BEFORE,
    PRETTY,
    case_record,
    failure_record,
)
from fnop.core.handlers.declare.handler import Handler
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.campaign import Known
from fnop.interpreters.check.campaign.explore import Case, Explorer, Failure
from fnop.interpreters.check.state.scripts import script_from_json
from fnop.interpreters.check.trials.catalogue import schedule_from_json
from fnop.interpreters.recording.format.digests import PYTHON, digests_of

__all__ = ["Folder"]

# Parts of a call that are paths: a file may have several names.
_PATHS = ("operator", "models", "models of", "former")


class Folder:
    """The recordings in a folder, which is created when something is written.

    `call` is the part of a failure's header that describes the call that found it.
    `handlers.json` has the digests of the handlers; it is written only if the folder
    exists. A check without failures creates no folder. The next check can do without
    the digests: they only change the order.
    """

    def __init__(
        self,
        path: Path,
        call: Mapping[str, Any],
        limits: Limits,
        shard: tuple[int, int] = (1, 1),
    ) -> None:
        self._path, self._call, self._limits = path, call, limits
        self._may_record = True
        self._benigns: dict[Path, str] = {}
        self._digests = path / "handlers.json"
        # Each shard has tried only its own part.
        part = "{}/{}".format(*shard) if shard[1] > 1 else ""
        self._who = " ".join((*map(str, call["operator"]), part)).strip()

    # -------------------------------------------------------------- found before

    def known(self, cases: Sequence[Case]) -> Iterator[Known]:
        """Yield the failures that former calls of the same kind have found.

        Each has the world and the script of its recording, which is a smaller one. Its
        case is one of `cases` if that is the same. Recordings that can no longer be
        used are skipped.
        """
        same = {digest_of(case_record(each)): each for each in cases}
        for file in sorted(self._path.glob("*.fnop")) if cases else ():
            record = failure_in(file)
            if record is None or not self._is_of_this_call(record):
                continue
            found = _known_in(record, cases[0], FOUND_BEFORE + file.name)
            if found is not None:
                case = same.setdefault(digest_of(case_record(found.case)), found.case)
                yield replace(found, case=case)

    def _is_of_this_call(self, record: Mapping[str, Any]) -> bool:
        """Whether its call had the operator's files and options of this call."""
        return all(
            _is_same_value(name, record.get(name), self._call[name]) for name in _CALL
        )

    def changed(self, handlers: tuple[Handler, ...]) -> frozenset[str]:
        """Return the ids of handlers whose code has changed since the last call.

        The result is empty if the last call is unknown, or if another version of Python
        ran it: then the digests differ anyway.
        """
        before = _digests_in(self._digests).get(self._who)
        if not isinstance(before, dict) or before.get("python") != PYTHON:
            return frozenset()
        known, now = before.get("handlers"), digests_of(handlers)
        if not isinstance(known, dict):
            return frozenset()
        return frozenset(id for id, each in now.items() if known.get(id) != each)

    def remember(self, handlers: tuple[Handler, ...]) -> None:
        """Write down the present handlers' digests if the folder exists."""
        if not self._path.is_dir():
            return
        now = {"python": PYTHON, "handlers": digests_of(handlers)}
        all = {**_digests_in(self._digests), self._who: now}

        def write(file: Path) -> None:
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(orjson.dumps(all, option=PRETTY))
            part.replace(file)  # atomically: another shard may read it

        self._write_file(self._digests, write)

    # ------------------------------------------------------------------- writing

    def saved(self, explorer: Explorer, failure: Failure) -> tuple[str, str]:
        """Write the recordings of a failure, and of the run without faults.

        Returns the names of the two files; "" for one that was not written.
        """
        if not self._may_record:
            return "", ""
        record = {**failure_record(explorer.case, failure), **self._call}
        name = f"{failure.violation.property}-{digest_of(record)}.fnop"

        def write(file: Path) -> None:
            write_failure(file, explorer, failure, record, self._limits.has_time)

        found = self._write_file(self._path / name, write)
        if not found or not failure.schedule:
            return found, ""
        return found, self._write_benign(explorer.case)

    def _write_benign(self, case: Case) -> str:
        """Write the recording of a case's run without faults, once.

        Returns its file, or "".
        """
        file = place_of_benign(self._path, case)
        # A failure found before may have a recording under another name.
        own = file.stem.rpartition("-")[2]
        file = next(iter(sorted(self._path.glob(f"benign-*-{own}.fnop"))), file)
        if file not in self._benigns:
            self._benigns[file] = self._write_file(
                file, partial(write_benign, case=case)
            )
        return self._benigns[file]

    def _write_file(self, file: Path, write: Callable[[Path], None]) -> str:
        """Write a whole file, or nothing; return its name, or ""."""
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


# The parts of a call that make a difference.
_CALL = (*_PATHS, "name", "answers", "leader_elect", "kopf")


def _is_same_value(name: str, found: Any, given: Any) -> bool:
    if name in _PATHS:
        return _resolved_paths(found) == _resolved_paths(given)
    texts = {
        orjson.dumps(e or None, option=orjson.OPT_SORT_KEYS) for e in (found, given)
    }
    return len(texts) == 1


def _resolved_paths(found: Any) -> list[str]:
    several = found if isinstance(found, (list, tuple)) else [found]
    return [str(Path(str(each)).resolve()) for each in several if each]


def _known_in(record: Mapping[str, Any], like: Case, name: str) -> Known | None:
    """The failure that a recording shows, in a case of its own; None if it has none.

    The kinds are as they are defined now: a new rule may be the repair.
    """
    try:
        case = like._replace(
            name=name,
            script=script_from_json(record["script"]),
            given=tuple(record["given"]),
            namespace=str(record["namespace"]),
            restored=tuple(record.get("restored", ())),
            start=float(record.get("start", like.start)),
            made_up=True,
        )
        return Known(case, schedule_from_json(record["schedule"]))
    except (KeyError, TypeError, ValueError):
        return None


def _digests_in(file: Path) -> dict[str, Any]:
    """The digests of handlers in a file; empty if the file is not a file of digests."""
    try:
        found = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
