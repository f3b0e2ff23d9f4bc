"""Handlers of two kinds, one of which gets the annotations of the other."""

from __future__ import annotations

from typing import Any

import fnop

for kind in ("deployments", "replicasets"):

    @fnop.on.create(kind, id="create")
    @fnop.on.resume(kind, id="resume")
    def called(reason: str, logger: Any, **_: Any) -> None:
        logger.info("called: %s", reason)
