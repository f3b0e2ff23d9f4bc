"""A child is made again as long as its parent is to live."""

import fnop


def request_of(name, host):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-request", "labels": {"owner": name}},
        "data": {"host": host},
    }


@fnop.timer("xs", interval=10)
async def ask(name, **_):
    owner = await fnop.get("xs", name=name)
    if owner is None or "deletionTimestamp" in owner["metadata"]:
        return
    request = request_of(name, owner.spec["host"])
    await fnop.apply(fnop.owned(request, owner), force=True)
