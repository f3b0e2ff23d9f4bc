"""The end needs a secret, which may have been deleted before."""

import fnop


def revoke(token):
    """Revoke everything that was issued with this token."""
    raise NotImplementedError("a service that this example does not have")


@fnop.on.delete("xs")
async def end(spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None:
        raise fnop.TemporaryError("the credentials are missing", delay=10)
    await fnop.call(revoke, token=secret["data"]["token"])
