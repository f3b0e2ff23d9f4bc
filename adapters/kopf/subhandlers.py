"""Sub-handlers: `kopf.execute` calls those that the running handler has declared."""

from __future__ import annotations

from typing import Any

__all__ = ["execute"]


async def execute(**_given: Any) -> None:
    """Call the declared sub-handlers now."""
    raise NotImplementedError("kopf.execute is not there yet: declare by subhandler()")
