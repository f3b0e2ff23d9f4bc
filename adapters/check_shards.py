"""Shards: the results of parts of a check, written apart and reported as one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from fnop.adapters.check_report import PRETTY, as_json
from fnop.adapters.endings import EXIT_ERROR, EXIT_UNKNOWN, EXIT_USAGE, fail
from fnop.adapters.plain import echo
from fnop.interpreters.check.campaign import Report

__all__ = ["keep", "merged"]


def keep(folder: Path, report: Report) -> None:
    """Write the results of a shard into a file that is named by its content."""
    text = orjson.dumps(as_json(report), option=PRETTY)
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b(text, digest_size=8).hexdigest()
    (folder / f"{digest}.json").write_bytes(text)


def merged(options: Mapping[str, Any]) -> int:
    """Report all shards' results as one."""
    found = [
        orjson.loads(file.read_bytes())
        for file in sorted(Path(options["merge"]).glob("*.json"))
    ]
    if not found:
        where = options["merge"]
        fail(f"there are no results in {where}; write them with --results", EXIT_USAGE)
    failures = [each for one in found for each in one["failures"]]
    unique = {orjson.dumps([e["property"], e["words"]]): e for e in failures}
    whole = {
        "version": 1,
        "shards": len(found),
        "scripts": found[0]["scripts"],
        "failures": [*unique.values()],
        **{key: sum(one[key] for one in found) for key in ("tried", "left", "unknown")},
    }
    if options["output"] == "json":
        echo(orjson.dumps(whole, option=PRETTY).decode())
    else:
        for each in unique.values():
            echo(f"{each['property']}: {each['message']}\n   {each['words']}")
        echo(
            f"{whole['tried']} schedules in {len(found)} shards: "
            f"{len(unique)} failures, {whole['unknown']} unknown, {whole['left']} left"
        )
    if any(not each["special"] for each in unique.values()):
        return EXIT_ERROR
    return 0 if whole["tried"] > whole["unknown"] else EXIT_UNKNOWN
