"""A route is removed if the API server reports that its gateway does not exist."""

import fnop


@fnop.timer("configmaps", labels={"gateway": fnop.PRESENT}, interval=60)
async def collect(body, **_):
    gateway = await fnop.get("xs", name=body["metadata"]["labels"]["gateway"])
    if gateway is None:
        await fnop.delete(body)
