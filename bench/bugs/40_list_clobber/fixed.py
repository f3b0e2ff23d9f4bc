"""A list that others write to is written for the version that was read."""

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
    """A secret that no object uses is let go, also if one went before it was held."""
    names = meta.get("finalizers", ())
    if FINALIZER not in names:
        return
    users = [each for each in await fnop.list("xs") if each.spec["secret"] == name]
    if not users:
        await write(body, [each for each in names if each != FINALIZER])


@fnop.on.delete("secrets")
async def let_go_at_last(body, name, meta, **_):
    """Timers do not run for a secret that is being deleted, and it may be held."""
    if FINALIZER in meta.get("finalizers", ()):
        if any(each.spec["secret"] == name for each in await fnop.list("xs")):
            return fnop.again(after=10, because="it is in use")
        await let_go(body=body, name=name, meta=meta)


async def write(secret, names):
    """Write the list, unless the secret has changed: then look at it again."""
    version = secret["metadata"]["resourceVersion"]
    try:
        await fnop.patch(
            secret, metadata={"resourceVersion": version, "finalizers": names}
        )
    except fnop.Refused as refusal:
        if refusal.status not in (404, 409):
            raise
        raise fnop.TemporaryError("the secret has changed", delay=1) from refusal
