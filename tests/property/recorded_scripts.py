"""Recorded runs of drawn scripts, and what a ring keeps of them."""

from __future__ import annotations

from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.recording.format.ring import Ring
from tests.property.scripts import KIND, moved
from tests.recordings import TRACED, Recording
from tests.simulations import Scenario, example

Script = list[tuple[str, int, int]]


def keeping(port: int, *, from_size: int = 0) -> Registry:
    """Handlers of three styles; from this size on, with this port."""
    registry = Registry()

    @fnop.index("configmaps", registry=registry)
    def by_size(name: str, labels: Any, **_: Any) -> Any:
        return {labels.get("n", ""): name}

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="kept")
    async def kept(
        name: str,
        spec: Any,
        children: Any,
        now: Any,
        by_size: Any = fnop.INDEX,
        **_: Any,
    ) -> fnop.Desired:
        size = spec["n"]
        number = port if size >= from_size else 80
        if not children["configmaps"]:
            drawn = await fnop.random(4)
            await fnop.sleep(5 + drawn[0] % 2 + now.second % 2)
        seen = f"{len(by_size)} {sorted(children['configmaps'])}"
        return fnop.desired(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-{size % 2}", "labels": {"n": str(size)}},
                "data": {"port": f"{number} {seen}" if size else ""},
            },
            status={"port": number},
        )

    @fnop.on.update(KIND, registry=registry)
    def changed(old: Any, new: Any, diff: Any, **_: Any) -> Any:
        return fnop.event("Changed", f"{old} {new} {len(diff)}")

    return registry


def watched(script: Script, ring: Ring) -> tuple[Scenario, Recording]:
    """A run before a ring, and its whole recording."""
    whole = Recording(keeping(80))
    run = Scenario(
        keeping(80),
        [example(f"example-{number}", n=0, m=0) for number in (1, 2)],
        settings=TRACED,
        observers=(ring, whole.recorder),
    )
    moved(run, script)
    assert run.settle()
    return run, whole


def dumped(registry: Registry, ring: Ring) -> Recording:
    """The content of the ring, written as a recording."""
    found = Recording(registry)
    for now, input, commands in ring.steps():
        found.recorder.observe(now, input, commands)
    return found
