"""The simulated cluster keeps what the cases write down and the transcripts show.

No server is needed: the real ones' answers are in golden/.
"""

from __future__ import annotations

import json
import re

import pytest

from fnop.interpreters.cluster import Cluster
from tests.conformance.cases import CASES, TOPICS
from tests.conformance.golden import FOLDER, recorded, topic_of
from tests.conformance.servers import NAMESPACE, fork
from tests.conformance.suite import (
    Case,
    assert_alike,
    check_step,
    kept,
    normalized,
    play,
)
from tests.simulations import ROOT

COMPARED = [
    pytest.param(case, server, id=f"{case.name} ({server})")
    for case in CASES
    for server in case.servers
]


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_no_transcript_is_left_over() -> None:
    played = {(server, case.name) for case in CASES for server in case.servers}
    found = {
        (file.parent.name, name)
        for file in FOLDER.glob("*/*.json")
        for name in json.loads(file.read_text())
    }
    assert found - played == set()


def test_the_page_tells_all_topics_and_how_many_cases_there_are() -> None:
    page = (ROOT / "docs/contributing/conformance.md").read_text()
    rows = [line for line in page.splitlines() if line.endswith("` |")]
    assert set(TOPICS) <= set(re.findall(r"`(\w+)`", "".join(rows)))
    least = int(re.search(r"at least (\d+) cases", page)[1])  # type: ignore[index]
    assert least <= len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_answers_as_written_down(case: Case, base: Cluster) -> None:
    answers = play(case, fork(base), NAMESPACE)
    for step, (status, body) in zip(case.steps, answers, strict=True):
        check_step(step, status, body)


@pytest.mark.parametrize(("case", "server"), COMPARED)
def test_it_answers_as_recorded(case: Case, server: str, base: Cluster) -> None:
    golden = recorded(case, server)
    if golden is None:
        pytest.fail(
            "not recorded: run python -m tests.conformance.record "
            f"--server {server} {topic_of(case)}"
        )
    answers = play(case, fork(base), NAMESPACE)
    ours = normalized(case, answers, NAMESPACE, server, kept(case, server, golden))
    assert_alike(case, ours, golden, f"Kubernetes {server} answered")
