"""One handler for all events; its first step is impossible at the end."""

import fnop


def add_tenant(uid, name):
    """Make the tenant of this uid, if it does not exist yet."""
    raise NotImplementedError("a service that this example does not have")


def remove_tenant(uid):
    """Remove the tenant of this uid, if there is one."""
    raise NotImplementedError("a service that this example does not have")


@fnop.on.create("xs")
@fnop.on.update("xs")
@fnop.on.delete("xs")
async def serve(name, uid, meta, spec, **_):
    metadata = {"name": f"{name}-settings", "labels": {"owner": name}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    await fnop.adopt({**settings, "data": {"plan": spec["plan"]}})
    if "deletionTimestamp" in meta:
        await fnop.call(remove_tenant, uid=uid)
    else:
        await fnop.call(add_tenant, uid=uid, name=name)
