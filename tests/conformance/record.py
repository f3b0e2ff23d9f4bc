"""Record golden transcripts: python -m tests.conformance.record [topic...]

Plays the cases of the topics (default: all) on the real servers and writes their
normalized answers to golden/.  A case whose answers are not as written down is
reported and left as it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fnop.interpreters.cluster import Cluster
from tests.conformance.cases import TOPICS
from tests.conformance.golden import file_of, text_of
from tests.conformance.servers import (
    NAMESPACE,
    SERVERS,
    Real,
    fork,
    missing,
    prepared,
    started,
)
from tests.conformance.suite import (
    Case,
    Scope,
    check_step,
    declared,
    normalized,
    play,
    widest,
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="*", help=f"of {', '.join(TOPICS)}")
    parser.add_argument("--server", choices=SERVERS, help="default: both")
    given = parser.parse_args(arguments)
    topics = given.topics or list(TOPICS)
    if unknown := set(topics) - set(TOPICS):
        parser.error(f"no topics: {', '.join(sorted(unknown))}")
    complaints: list[str] = []
    for server in [given.server] if given.server else SERVERS:
        complaints += record(server, topics)
    print("\n".join(complaints), file=sys.stderr)
    return 1 if complaints else 0


def record(server: str, topics: Sequence[str]) -> list[str]:
    """Write the transcripts of one server; what could not be recorded."""
    played = {
        topic: [case for case in TOPICS[topic] if server in case.servers]
        for topic in topics
    }
    if not any(played.values()):
        return []
    if (reason := missing(server)) is not None:
        return [f"Kubernetes {server} {reason}"]
    complaints: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        started(server, Path(folder)) as real,
    ):
        for topic, cases in played.items():
            transcript, problems = transcript_of(real, cases, earlier(server, topic))
            complaints += problems
            write(file_of(server, topic), transcript)
            print(f"{server} {topic}: {len(transcript)} cases")
    return complaints


def transcript_of(
    real: Real, cases: Sequence[Case], before: dict[str, Any]
) -> tuple[dict[str, list[Any]], list[str]]:
    """The normalized answers to some cases, and what is wrong with the others."""
    base = prepared()
    found: dict[str, list[Any]] = {}
    problems: list[str] = []
    for case in cases:
        try:
            answers, namespace = real.play(case)
            for step, (status, body) in zip(case.steps, answers, strict=True):
                check_step(step, status, body, server=real.version)
            scopes = scopes_of(case, real, (answers, namespace), base)
            found[case.name] = normalized(
                case, answers, namespace, real.version, scopes
            )
        except Exception as problem:
            problems.append(f"{case.name} ({real.version}): {problem}"[:2000])
            found.pop(case.name, None)
            if case.name in before:
                found[case.name] = before[case.name]
    return found, problems


def scopes_of(
    case: Case, real: Real, theirs: tuple[list[tuple[int, Any]], str], base: Cluster
) -> list[Scope]:
    """The parts of the answers to write down.

    With controllers at work, answers may be equal by luck: then only the part that the
    case compares.
    """
    if real.version == "1.20" and is_slow(case):
        return declared(case, real.version)
    ours = play(case, fork(base), NAMESPACE), NAMESPACE
    return widest(case, real.version, ours, theirs)


def is_slow(case: Case) -> bool:
    return any(step.eventually for step in case.steps)


def earlier(server: str, topic: str) -> dict[str, Any]:
    file = file_of(server, topic)
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def write(file: Path, transcript: dict[str, list[Any]]) -> None:
    if transcript:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(transcript))
    else:
        file.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
