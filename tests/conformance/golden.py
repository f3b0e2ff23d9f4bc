"""Golden transcripts: what the real servers answered, so that all can compare.

One file per server and topic: each case's normalized answers, one step a line.
`python -m tests.conformance.record` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.cases import TOPICS
from tests.conformance.suite import Case

__all__ = ["FOLDER", "file_of", "recorded", "text_of", "topic_of"]

FOLDER = Path(__file__).parent / "golden"
_TOPICS = {case.name: topic for topic, cases in TOPICS.items() for case in cases}


def topic_of(case: Case) -> str:
    """The topic whose module has the case."""
    return _TOPICS[case.name]


def file_of(server: str, topic: str) -> Path:
    return FOLDER / server / f"{topic}.json"


def recorded(case: Case, server: str) -> list[Any] | None:
    """The normalized answers of a real server, or None if there is no recording."""
    steps: list[Any] | None = _transcript(file_of(server, topic_of(case))).get(
        case.name
    )
    # A case that has grown since is recorded again.
    return None if steps is None or len(steps) != len(case.steps) else steps


@cache
def _transcript(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def text_of(transcript: Mapping[str, list[Any]]) -> str:
    """A transcript as text: one line per step, so that changes can be read.

    >>> print(text_of({"a": [{"code": 200}, {"code": 404}]}), end="")
    {
    "a": [
     {"code": 200},
     {"code": 404}
    ]
    }
    """
    cases = []
    for name, steps in transcript.items():
        lines = ",\n ".join(
            json.dumps(step, sort_keys=True, ensure_ascii=False) for step in steps
        )
        cases.append(f"{json.dumps(name)}: [\n {lines}\n]")
    return "{\n" + ",\n".join(cases) + "\n}\n"
