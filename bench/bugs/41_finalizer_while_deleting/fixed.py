"""The end has a handler of its own, and the framework's finalizer waits for it."""

import fnop


def add_tenant(uid, name):
    """Make the tenant of this uid, if it does not exist yet."""
    raise NotImplementedError("a service that this example does not have")


def remove_tenant(uid):
    """Remove the tenant of this uid, if there is one."""
    raise NotImplementedError("a service that this example does not have")


@fnop.on.create("xs")
async def serve(name, uid, **_):
    await fnop.call(add_tenant, uid=uid, name=name)


@fnop.on.delete("xs")
async def end(uid, **_):
    await fnop.call(remove_tenant, uid=uid)
