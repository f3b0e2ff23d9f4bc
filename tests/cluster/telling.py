"""The examples' stories, played on a real API server."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.envtest import ApiServer
from tests.cluster.name_server import NameServer
from tests.cluster.operating import Operator, assert_replays, operating
from tests.cluster.real_world import RealWorld
from tests.example_scenarios import Story
from tests.simulations import ROOT

__all__ = ["file_of", "played", "tell"]


def tell(
    story: Story,
    api: ApiServer,
    namespace: str,
    folder: Path,
    config: Path | None = None,
) -> list[str]:
    """Play an example's story on an API server; its recordings replay identically.

    The lines of its log are the answer.
    """
    operator = played(story, api, namespace, folder, config)
    for recording in operator.recordings:
        assert_replays(recording, file_of(story))
    return operator.lines


def file_of(story: Story) -> Path:
    return ROOT / "examples" / story.example / "example.py"


def played(
    story: Story,
    api: ApiServer,
    namespace: str,
    folder: Path,
    config: Path | None = None,
) -> Operator:
    """The operator that has met what the story expects, and has been stopped."""
    options = ("--standalone", "-A") if story.everywhere else ()
    with (
        operating(
            file_of(story), api, namespace, folder, *options, config=config
        ) as operator,
        NameServer() as server,
    ):
        world = RealWorld(api, namespace, operator, is_recorded=True)
        world.define(story.example)
        operator.variables["RECORDS_URL"] = server.url
        world.start()
        for step in story.steps:
            step.does(world)
            world.expect(step.expected)
        world.stop()
    assert server.records == {}
    return operator
