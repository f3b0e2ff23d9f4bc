"""`fnop check` of a reconcile handler that keeps a child on purpose."""

from __future__ import annotations

from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import create, delete, explore
from tests.reconcilers import KIND, NAME, config_map
from tests.simulations import DEFINITION, example

ALL = ("no_orphans", "history", "same_end", "settles")


def test_a_child_that_is_kept_is_no_orphan() -> None:
    registry = Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def keep(name: str, **_: Any) -> fnop.Desired:
        kept = fnop.child(config_map(f"{name}-data"), keep=True)
        return fnop.desired([kept, config_map(name)])

    explore(registry, create(example()), delete(NAME), crds=[DEFINITION]).must(*ALL)
