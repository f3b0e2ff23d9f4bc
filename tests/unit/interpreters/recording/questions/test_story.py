"""The story of a recording: each call, its effects, and its end."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from fnop.interpreters.recording.questions.story import Story
from tests.commands import fnop
from tests.pages import read_recording
from tests.recorded_examples import EXAMPLES, record
from tests.simulations import ROOT


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_call_has_its_end_in_the_story(name: str, tmp_path: Path) -> None:
    story = Story()
    lines = [
        line
        for each in read_recording(record(name, tmp_path))[1]
        for line in story.add(each)
    ]
    called = Counter(each.where for each in lines if " is called" in each.text)
    ends = ("ends", "fails")
    ended = Counter(
        each.where
        for each in lines
        if each.text.startswith(ends) or re.search("handler .* failed", each.text)
    )
    running = Counter(each.where for each in story.history.attempts.open.values())
    assert called
    assert ended + running == called
    assert all("\n" not in each.text for each in lines)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record("19-database", tmp_path_factory.mktemp("story"))


def test_the_story_without_an_operator(recording: Path, tmp_path: Path) -> None:
    done = fnop("replay", recording, folder=tmp_path)
    assert (done.status, done.err) == (0, "")
    first, called, *rest = done.out.splitlines()
    assert first == "00:00:00.000     #1 the operator starts"
    assert called.endswith("[default/example-1] database is called: version 108")
    assert any("desires configmap/example-1, secret/example-1" in each for each in rest)
    assert any(
        "Apply statefulsets/default/example-1, for database ->" in e for e in rest
    )
    assert any(
        each.endswith("changed children: statefulsets/example-1") for each in rest
    )


def test_the_story_of_one_object(recording: Path, tmp_path: Path) -> None:
    done = fnop("replay", recording, "--object", "example-1", folder=tmp_path)
    assert done.status == 0
    assert "the operator starts" not in done.out
    assert "database is called: version 108" in done.out
    both = fnop("replay", recording, "op.py", "--object", "example-1", folder=tmp_path)
    assert both.status == 2


def test_a_recording_of_an_earlier_release_has_a_story(tmp_path: Path) -> None:
    old = ROOT / "tests" / "replays" / "format-2" / "simulated-01-minimal.fnop"
    done = fnop("replay", old, folder=tmp_path)
    assert done.status == 0
    assert "the operator starts" in done.out
    assert "does not hold what handlers were shown" in done.err
