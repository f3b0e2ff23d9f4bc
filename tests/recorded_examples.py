"""Recordings of examples, whose users do the same to each."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.commands import fnop
from tests.example_scenarios import STORIES
from tests.recordings import TRACED, Recording
from tests.simulations import (
    ROOT,
    Scenario,
    example_calls,
    example_handlers,
    is_definition,
    manifests_of,
)

__all__ = ["EXAMPLES", "MEANT_TO_FAIL", "record", "recorded"]

KIND = "fnopexamples"


class Handlers:
    """As a registry, for a recording."""

    def __init__(self, name: str) -> None:
        self.handlers = example_handlers(name)


@cache
def recorded(name: str) -> list[dict[str, Any]]:
    """An example whose user edits, adds and deletes objects."""
    recording = Recording(Handlers(name), TRACED)  # type: ignore[arg-type]
    program = recording.program
    run = Scenario(
        program.handlers,
        settings=TRACED,
        observers=[recording.recorder],
        calls=example_calls(name),
    )
    kinds = [each for each in manifests_of(name) if not is_definition(each)]
    definitions = [each for each in manifests_of(name) if is_definition(each)]
    run.apply(*(e for e in definitions if e["spec"]["names"]["plural"] != KIND))
    run.apply(*kinds).wait(20)
    for each in kinds:
        plural = f"{each['kind'].lower()}s"
        run.edit(plural, each["metadata"]["name"], metadata={"labels": {"a": "b"}})
        run.wait(5)
    other = {**kinds[-1], "metadata": {**kinds[-1]["metadata"], "name": "other"}}
    run.apply(other).wait(5)
    run.delete(f"{kinds[0]['kind'].lower()}s", kinds[0]["metadata"]["name"])
    run.wait(60)
    _, records = recording.records()
    return [each for each in records if each is not None]


EXAMPLES = sorted(path.parent.name for path in ROOT.glob("examples/*/example.py"))
MEANT_TO_FAIL = {story.example for story in STORIES if story.failing}


def record(example_name: str, folder: Path) -> Path:
    """The recording of an example's simulated run."""
    recording = folder / "run.fnop"
    recording.write_bytes(_recorded(example_name))
    recording.chmod(0o600)
    return recording


@cache
def _recorded(example_name: str) -> bytes:
    case = ROOT / "examples" / example_name
    models = case / "models.py"
    with tempfile.TemporaryDirectory() as folder:
        done = fnop(
            *("run", case / "example.py", "--simulate", case / "object.yaml"),
            *(("--calls", models) if models.exists() else ()),
            *("--record", "run.fnop"),
            folder=Path(folder),
        )
        assert done.status == (1 if example_name in MEANT_TO_FAIL else 0), done
        return Path(folder, "run.fnop").read_bytes()
