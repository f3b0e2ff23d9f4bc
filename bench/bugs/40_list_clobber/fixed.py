"""A list with other writers is written for the version that was read."""

import fnop

FINALIZER = "example.com/in-use"


@fnop.timer("xs", interval=10)
async def hold(spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None or "deletionTimestamp" in secret["metadata"]:
        return
    names = secret["metadata"].get("finalizers", ())
    if FINALIZER not in names:
        await write(secret, [*names, FINALIZER])


@fnop.timer("secrets", interval=10)
async def let_go(body, name, meta, **_):
    """Release an unused secret, even if its object was gone before it was held."""
    names = meta.get("finalizers", ())
    if FINALIZER not in names:
        return
    users = [each for each in await fnop.list("xs") if each.spec["secret"] == name]
    if not users:
        await write(body, [each for each in names if each != FINALIZER])


@fnop.on.delete("secrets")
async def let_go_at_last(body, name, meta, **_):
    """Release a held secret that is being deleted: timers do not run for it."""
    if FINALIZER in meta.get("finalizers", ()):
        if any(each.spec["secret"] == name for each in await fnop.list("xs")):
            return fnop.again(after=10, because="it is in use")
        await let_go(body=body, name=name, meta=meta)


async def write(secret, names):
    """Write the list, unless the secret has changed: then check it again."""
    version = secret["metadata"]["resourceVersion"]
    try:
        await fnop.patch(
            secret, metadata={"resourceVersion": version, "finalizers": names}
        )
    except fnop.Refused as refusal:
        if refusal.status not in (404, 409):
            raise
        raise fnop.TemporaryError("the secret has changed", delay=1) from refusal
