"""A missing child is recreated, even if its parent is waiting for its end."""

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


@fnop.on.create("xs")
@fnop.on.update("xs")
async def ask(body, name, spec, **_):
    for child in (request_of(name, spec["host"]), solver_of(name)):
        await fnop.apply(fnop.owned(child, body), force=True)


@fnop.on.event("configmaps", labels={"owner": fnop.PRESENT})
async def ask_again(type, labels, **_):
    owner = await fnop.get("xs", name=labels["owner"])
    if type == "DELETED" and owner is not None:
        request = request_of(owner.name, owner.spec["host"])
        await fnop.apply(fnop.owned(request, owner), force=True)
