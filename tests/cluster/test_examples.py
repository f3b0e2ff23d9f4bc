"""The examples on a real API server do what they say, and what they did before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.telling import tell
from tests.example_scenarios import STORIES, Story


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.example)
def test_the_example_does_what_it_says(
    story: Story, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    tell(story, apiserver, namespace, tmp_path)
