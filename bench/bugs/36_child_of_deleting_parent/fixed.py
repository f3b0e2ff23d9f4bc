"""A child is recreated as long as its parent is not being deleted."""

import fnop


def request_of(name, host):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-request", "labels": {"owner": name}},
        "data": {"host": host},
    }


def solver_of(name):
    """A pod that needs a minute to end: its parent waits for it."""
    times = {"simulated.fnop.dev/stop-after": "60s"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-solver", "annotations": times},
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "containers": [{"name": "solver", "image": "solver:1"}],
        },
    }


@fnop.timer("xs", interval=10)
async def ask(name, **_):
    owner = await fnop.get("xs", name=name)
    if owner is None or "deletionTimestamp" in owner["metadata"]:
        return
    for child in (request_of(name, owner.spec["host"]), solver_of(name)):
        await fnop.apply(fnop.owned(child, owner), force=True)
