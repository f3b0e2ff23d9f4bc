"""Each object has four ConfigMaps, and then its result: written with Kopf.

Kopf has no client. The handler creates the ConfigMaps by the client of the hand-written
loop, and they are not watched.
"""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator, arg-type"

import os
from typing import Any

import aiohttp
import kopf

from bench.client import connect, request

CHILDREN = 4
CONFLICT = 409  # an earlier attempt has created it
sessions: list[aiohttp.ClientSession] = []


@kopf.on.startup()
async def begin(**_: Any) -> None:
    sessions.append(connect(os.environ["KUBECONFIG"]))


@kopf.on.cleanup()
async def end(**_: Any) -> None:
    await sessions.pop().close()


@kopf.on.create("benchobjects")
async def create(
    name: str, namespace: str, body: kopf.Body, spec: kopf.Spec, **_: Any
) -> dict[str, int]:
    for part in range(CHILDREN):
        child: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-{part}"},
            "data": {"number": str(spec["number"])},
        }
        kopf.adopt(child, owner=body)
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        status, answer = await request(sessions[0], "POST", path, child)
        if status >= 400 and status != CONFLICT:
            raise kopf.TemporaryError(str(answer.get("message")), delay=1)
    return {"doubled": spec["number"] * 2}
