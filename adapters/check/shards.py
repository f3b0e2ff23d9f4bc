"""Shards: the results of parts of a check, written separately and reported as one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from fnop.adapters.check.options import CheckOptions
from fnop.adapters.check.places import must_be_writable
from fnop.adapters.check.recordings import digest_of
from fnop.adapters.check.telling import Source, status_of, tell
from fnop.adapters.common.endings import EXIT_USAGE, fail
from fnop.adapters.reports.check_report import (
    PRETTY,
    Places,
    Shown,
    as_json,
    case_record,
    failure_json,
)
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import as_unicode
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.campaign import Campaign
from fnop.interpreters.check.campaign.explore import Case, Failure
from fnop.interpreters.check.campaign.reports import (
    SHOWN_MAX,
    Report,
    merged as merged_reports,
)
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.scripts import script_from_json, script_to_json
from fnop.interpreters.check.trials.catalogue import schedule_from_json
from fnop.interpreters.recording.format.digests import PYTHON, digests_of

__all__ = ["identity_of", "keep", "merged"]

# The options that change the campaign, with their names for users.
_OPTIONS = {
    "depth": "--depth",
    "budget": "--budget",
    "randoms": "--random",
    "seed": "--seed",
    "only": "--property",
    "without": "--without",
    "name": "--name",
    "leader_elect": "--leader-elect",
}
# ... and those that name files, whose content counts.
_FILES = {"script": "--script", "calls": "--calls", "former": "--former"}


class Part(Struct, frozen=True):
    """The results of one shard: its file, its campaign, and its findings.

    `places` are the places of the handlers, and `paths` the operator's files.
    """

    file: str
    campaign: dict[str, Any]
    shard: int
    shards: int
    report: Report
    shown: list[Shown]
    places: Places
    paths: list[str]

    @property
    def worth(self) -> tuple[bool, int, str]:
        """The rank among results of one shard: with failures, then with most tries."""
        return bool(self.report.failures), self.report.tried, self.file


# --------------------------------------------------------------------- writing


def identity_of(
    campaign: Campaign, paths: Sequence[str], options: CheckOptions
) -> dict[str, Any]:
    """The part of a call that shards of one campaign share, by option names."""
    handlers = campaign.explorers[0].case.program.handlers if campaign.explorers else ()
    worlds = {e.case.name: digest_of(case_record(e.case)) for e in campaign.explorers}
    return {
        "the operator's files": [Path(each).name for each in paths],
        "the handlers' code": {"python": PYTHON, **digests_of(handlers)},
        "scripts or manifests": worlds,
        **{
            words: _plain_value(getattr(options, name))
            for name, words in _OPTIONS.items()
        },
        **{words: _contents(getattr(options, name)) for name, words in _FILES.items()},
    }


def _plain_value(value: Any) -> Any:
    return sorted(value) if isinstance(value, (tuple, frozenset)) else value


def _contents(named: Any) -> list[str]:
    files = [named] if isinstance(named, str) else named or ()
    return [
        hashlib.blake2b(Path(each).read_bytes(), digest_size=8).hexdigest()
        for each in files
    ]


def keep(
    options: CheckOptions,
    identity: Mapping[str, Any],
    report: Report,
    shown: Sequence[Shown],
    source: Source,
) -> None:
    """Write the results of a shard into a file named by shard and campaign.

    So a shard that runs again replaces its former results. Raises `OSError`.
    """
    shard, shards = options.shard
    # Failures of different scripts stay apart.
    found = as_json(replace(report, failures=report.finer), source.places)
    known = {"struck": report.struck, "wanted": report.wanted, "empty": report.is_empty}
    whole = {
        "fnop check": 2,
        "campaign": identity,
        "shard": shard,
        "shards": shards,
        "operator": [*map(as_unicode, source.paths)],
        "places": source.places,
        "report": {**found, **known},
        "shown": [_shown_json(each) for each in shown],
    }
    assert options.results is not None
    folder = Path(options.results)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{shard}-of-{shards}-{digest_of(identity)}.json"
    (folder / name).write_bytes(orjson.dumps(whole, option=PRETTY))


def _shown_json(shown: Shown) -> dict[str, Any]:
    return {
        **failure_json(shown.failure, shown.number, {}),
        "script": shown.case.name,
        "actions": script_to_json(shown.case.script),
        "file": shown.file,
        "benign": shown.benign,
        "beside": [[*each] for each in shown.beside],
    }


# --------------------------------------------------------------------- reading


def merged(options: CheckOptions) -> int:
    """Report all shards' results as one; return the exit status."""
    must_be_writable(options)
    assert options.merge is not None
    parts = _parts_in(Path(options.merge))
    best: dict[int, Part] = {}
    for each in sorted(parts, key=lambda part: part.worth):
        best[each.shard] = each
    found = [best[number] for number in sorted(best)]
    missing = sorted(set(range(1, found[0].shards + 1)) - best.keys())
    report = merged_reports([each.report for each in found], missing)
    source = Source(found[0].paths, found[0].places)
    tell(report, [*_shown_of(found)], source, options)
    return status_of(report)


def _parts_in(folder: Path) -> list[Part]:
    """Read the results in a folder.

    The command ends if they are not of one campaign.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        fail(f"there are no results in {folder}; write them with --results", EXIT_USAGE)
    parts = [_part(each) for each in files]
    for each in parts[1:]:
        other = _difference(parts[0], each)
        if other:
            fail(
                f"{parts[0].file} and {each.file} are of different calls: {other} "
                "differ; give the results of each call a folder of its own",
                EXIT_USAGE,
            )
    return parts


def _difference(one: Part, other: Part) -> str:
    """The names of the options in which two campaigns differ; or ""."""
    names = [*dict.fromkeys((*one.campaign, *other.campaign))]
    found = [e for e in names if one.campaign.get(e) != other.campaign.get(e)]
    if one.shards != other.shards:
        found.append("the numbers of shards")
    return " and ".join(found)


def _part(file: Path) -> Part:
    """The results in a file; the command ends if it has none."""
    try:
        return _part_of(str(file), orjson.loads(file.read_bytes()))
    except OSError as problem:
        fail(f"{file} cannot be read: {problem.strerror}", EXIT_USAGE)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        fail(
            f"{file} has no results of fnop check; let the folder of --merge have "
            "nothing but the files of --results",
            EXIT_USAGE,
        )


def _part_of(name: str, found: Mapping[str, Any]) -> Part:
    if found["fnop check"] != 2:
        raise ValueError
    shown = [_shown_from_json(each) for each in found["shown"]]
    places = {str(id): (str(file), int(n)) for id, (file, n) in found["places"].items()}
    return Part(
        name,
        dict(found["campaign"]),
        int(found["shard"]),
        int(found["shards"]),
        _report(found["report"]),
        shown,
        places,
        [str(each) for each in found["operator"]],
    )


def _report(found: Mapping[str, Any]) -> Report:
    failures = tuple((_failure(e), int(e["like it"])) for e in found["failures"])
    properties = tuple(found["properties"])
    return Report(
        tuple(found["scripts"]),
        int(found["tried"]),
        failures,
        tuple(_failure(each) for each in found["doubted"]),
        int(found["unknown"]),
        int(found["left"]),
        dict(found["faults"]),
        properties,
        tuple(found["broken"]),
        failures,
        at_least=bool(found["left at least"]),
        cut=tuple(found["cut"]),
        unsure=dict(found["reasons"]),
        struck=int(found["struck"]),
        wanted=bool(found["wanted"]),
        endless=dict(found["endless"]),
        former=int(found["found before"]),
        is_empty=bool(found["empty"]),
    )


def _failure(found: Mapping[str, Any]) -> Failure:
    lists = (tuple(map(str, found[each])) for each in ("details", "calls", "objects"))
    violation = Violation(found["property"], found["message"], *lists)
    schedule = schedule_from_json(found["schedule"])
    return Failure(found["script"], schedule, violation, bool(found["special"]))


def _shown_from_json(found: Mapping[str, Any]) -> Shown:
    script = script_from_json(found["actions"])
    case = Case(Program((), Settings()), script=script, name=found["script"])
    beside = tuple(
        Violation(name, message, *map(tuple, lines))
        for name, message, *lines in found["beside"]
    )
    number = int(found["like it"])
    return Shown(case, _failure(found), number, found["file"], found["benign"], beside)


def _shown_of(parts: Sequence[Part]) -> Iterator[Shown]:
    """The failures that the shards have shown, each once."""
    told: set[tuple[str, str]] = set()
    left = SHOWN_MAX
    for each in (shown for part in parts for shown in part.shown):
        sentence = each.failure.violation[:2]
        if sentence in told or not left:
            continue
        told |= {sentence, *(beside[:2] for beside in each.beside)}
        left -= 1
        yield each
