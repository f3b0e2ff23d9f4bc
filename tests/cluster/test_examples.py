"""The examples on a real API server do what they say, and what they did before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import RealWorld, operating
from tests.example_scenarios import STORIES, Story
from tests.simulations import ROOT


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.example)
def test_the_example_does_what_it_says(
    story: Story, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    example = ROOT / "examples" / story.example / "example.py"
    with operating(example, apiserver, namespace, tmp_path) as operator:
        world = RealWorld(apiserver, namespace, operator)
        world.define()
        operator.start(record=True)
        for step in story.steps:
            step.does(world)
            world.expect(step.expected)
        assert operator.stop() == 0, operator.lines
    for recording in operator.recordings:
        assert_replays(recording, example)


def assert_replays(recording: Path, example: Path) -> None:
    command = [sys.executable, "-m", "fnop", "replay", str(recording), str(example)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("identical")
