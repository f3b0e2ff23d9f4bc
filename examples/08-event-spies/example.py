"""Spies: they look at watch events of objects that others own, and store nothing."""

from typing import Any

import fnop


@fnop.on.event("pods")
def always_fails(**_: Any) -> None:
    raise RuntimeError("an error of a spy is logged and ignored")


@fnop.on.event("pods", labels={"app": fnop.PRESENT})
def watched(
    type: str | None, status: fnop.Status, logger: fnop.Logger, **_: Any
) -> fnop.Effect:
    logger.info("%s: %s", type or "LISTED", status.get("phase"))
    return fnop.patch(annotations={"example.fnop.dev/phase": str(status.get("phase"))})
