"""A child that is gone is made again, also when its parent waits for its end."""

import fnop


def request_of(name, host):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-request", "labels": {"owner": name}},
        "data": {"host": host},
    }


@fnop.on.create("xs")
@fnop.on.update("xs")
async def ask(body, name, spec, **_):
    await fnop.apply(fnop.owned(request_of(name, spec["host"]), body), force=True)


@fnop.on.event("configmaps", labels={"owner": fnop.PRESENT})
async def ask_again(type, labels, **_):
    owner = await fnop.get("xs", name=labels["owner"])
    if type == "DELETED" and owner is not None:
        request = request_of(owner.name, owner.spec["host"])
        await fnop.apply(fnop.owned(request, owner), force=True)
