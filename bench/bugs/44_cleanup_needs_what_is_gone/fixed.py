"""The end needs a secret; without it the handler can only report that."""

import fnop


def revoke(token):
    """Revoke everything that was issued with this token."""
    raise NotImplementedError("a service that this example does not have")


@fnop.on.delete("xs")
async def end(name, spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None:
        await fnop.warn("NotRevoked", f"the credentials of {name} went before it")
        return
    await fnop.call(revoke, token=secret["data"]["token"])
