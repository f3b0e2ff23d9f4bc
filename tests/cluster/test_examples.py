"""The examples on a real API server do what they say, and what they did before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.telling import tell
from tests.example_scenarios import STORIES, Story
from tests.long import parameters

# Others do the same on a real API server: with the rights of the operator alone
# (test_rights.py), killed (test_kill.py), among peers (test_peers.py), within a process
# (test_embedding.py); the first two examples are parts of all.
ELSEWHERE = {
    "01-minimal",
    "02-children",
    "03-exceptions",
    "06-peering",
    "11-filtering",
    "12-embedded",
}
AT_ONCE = [each.example for each in STORIES if each.example not in ELSEWHERE]


@pytest.mark.parametrize(
    "story", parameters(STORIES, AT_ONCE, lambda story: story.example)
)
def test_the_example_does_what_it_says(
    story: Story, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    tell(story, apiserver, namespace, tmp_path)
