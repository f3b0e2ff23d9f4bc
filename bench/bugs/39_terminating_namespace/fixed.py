"""At the end, only the steps that the end needs are done."""

import fnop


def add_tenant(uid, name):
    """Make the tenant of this uid, if it does not exist yet."""
    raise NotImplementedError("a service that this example does not have")


def remove_tenant(uid):
    """Remove the tenant of this uid, if there is one."""
    raise NotImplementedError("a service that this example does not have")


@fnop.timer("xs", interval=10)
async def settings(body, name, spec, **_):
    metadata = {"name": f"{name}-settings", "labels": {"owner": name}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    child = {**settings, "data": {"plan": spec["plan"]}}
    await fnop.apply(fnop.owned(child, body), force=True)


@fnop.on.create("xs")
async def serve(name, uid, **_):
    await fnop.call(add_tenant, uid=uid, name=name)


@fnop.on.delete("xs")
async def end(uid, **_):
    await fnop.call(remove_tenant, uid=uid)
