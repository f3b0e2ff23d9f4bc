"""Logs in the simulated cluster: scenarios that a real API server shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.simulation.actions import act, log_line
from tests.log_scenarios import SCENARIOS, World
from tests.simulated_world import SimulatedWorld

CONTAINER = "c"


class LogsWorld:
    """A cluster without a kubelet: scenarios show what containers do."""

    def __init__(self) -> None:
        self._world = SimulatedWorld()
        self._run = self._world.run
        self._instances: dict[str, int] = {}

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._run.clock.now().wall, UTC)

    @property
    def warnings(self) -> list[str]:
        said = self._run.said
        return [each.message for each in said if each.level in ("warning", "error")]

    def begin(self, registry: Registry) -> None:
        self._world.start(registry.handlers)

    def stop(self) -> None:
        self._world.stop()

    def create(self, name: str) -> None:
        containers = [{"name": CONTAINER, "image": "i"}]
        manifest = {
            **{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}},
            "spec": {"nodeName": "n", "containers": containers},
        }
        self._world.create(manifest)
        self._instances.pop(name, None)

    def run(self, name: str) -> None:
        self._instances[name] = self._instances.get(name, -1) + 1
        self._show(name, {"running": {}})

    def end(self, name: str) -> None:
        own = f"x://{name}-{self._instances[name]}"
        self._show(name, {"terminated": {"exitCode": 0, "containerID": own}})

    def _show(self, name: str, state: dict[str, Any]) -> None:
        number = self._instances[name]
        before = {"exitCode": 0, "containerID": f"x://{name}-{number - 1}"}
        status = {
            **{"name": CONTAINER, "image": "i", "imageID": "i", "ready": True},
            **{"restartCount": number, "containerID": f"x://{name}-{number}"},
            **{"state": state, "lastState": {"terminated": before} if number else {}},
        }
        self._run.edit("pods", f"{name}/status", status={"containerStatuses": [status]})

    def remove(self, name: str) -> None:
        path = self._run.path("pods", name)
        assert self._world.raw("DELETE", path, {"gracePeriodSeconds": 0})[0] == 200

    def write(self, name: str, *lines: str) -> None:
        line = log_line(f"pods/{name}", "\n".join(lines), container=CONTAINER)
        act(self._run, line, "default")

    def age(self, name: str, lines: Mapping[str, float]) -> None:
        left = max(lines.values())
        for line, seconds in lines.items():
            self._run.wait(left - seconds)
            self.write(name, line)
            left = seconds
        self._run.wait(left)

    def cut(self, name: str) -> None:
        self._run.reads.logs.cut(f"the log of default/{name}/{CONTAINER}")

    def annotation(self, name: str, key: str) -> str | None:
        found = self._run.get("pods", name)
        assert found is not None
        value: str | None = found["metadata"].get("annotations", {}).get(key)
        return value

    def until(self, holds: Callable[[], bool]) -> None:
        self._world.until(holds)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_lines_are_read(scenario: Callable[[World], None]) -> None:
    world = LogsWorld()
    scenario(world)
    assert world.warnings == []
