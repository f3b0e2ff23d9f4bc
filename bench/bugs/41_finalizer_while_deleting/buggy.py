"""The finalizer is ensured before the check whether the object is being deleted."""

import fnop

FINALIZER = "example.com/tenant"


def add_tenant(uid, name):
    """Make the tenant of this uid, if it does not exist yet."""
    raise NotImplementedError("a service that this example does not have")


def remove_tenant(uid):
    """Remove the tenant of this uid, if there is one."""
    raise NotImplementedError("a service that this example does not have")


@fnop.on.event("xs")
async def serve(body, name, uid, meta, **_):
    names = meta.get("finalizers", ())
    if FINALIZER not in names:
        add = [*names, FINALIZER]
        version = meta["resourceVersion"]
        await fnop.patch(body, metadata={"resourceVersion": version, "finalizers": add})
        return
    if "deletionTimestamp" not in meta:
        await fnop.call(add_tenant, uid=uid, name=name)
        return
    await fnop.call(remove_tenant, uid=uid)
    left = [each for each in names if each != FINALIZER]
    version = meta["resourceVersion"]
    await fnop.patch(body, metadata={"resourceVersion": version, "finalizers": left})
