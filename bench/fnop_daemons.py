"""A daemon for each object, which writes its result and then waits: with fnop."""

from collections.abc import Mapping
from typing import Any

import fnop


@fnop.daemon("benchobjects")
async def create(spec: Mapping[str, Any], **_: Any) -> None:
    await fnop.patch(status={"create": {"doubled": spec["number"] * 2}})
    while True:
        await fnop.sleep(3600)
