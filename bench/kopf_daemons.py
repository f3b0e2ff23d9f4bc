"""A daemon for each object, which writes its result and then waits: with Kopf.

Kopf stores what a daemon writes when the daemon ends. So the result is that of a first
attempt, and the daemon waits in the second one.
"""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator, arg-type"

import asyncio
from typing import Any

import kopf


@kopf.daemon("benchobjects", cancellation_timeout=1)
async def create(spec: kopf.Spec, patch: kopf.Patch, retry: int, **_: Any) -> None:
    if retry == 0:
        patch.status["create"] = {"doubled": spec["number"] * 2}
        raise kopf.TemporaryError("its result is stored first", delay=0)
    while True:
        await asyncio.sleep(3600)
