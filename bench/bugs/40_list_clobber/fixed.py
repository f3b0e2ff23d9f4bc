"""A list that others write to is written for the version that was read."""

import fnop

FINALIZER = "example.com/in-use"


@fnop.timer("xs", interval=10, finalizer=True)
async def hold(spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None or "deletionTimestamp" in secret["metadata"]:
        return
    names = secret["metadata"].get("finalizers", ())
    if FINALIZER not in names:
        await write(secret, [*names, FINALIZER])


@fnop.on.delete("xs")
async def let_go(spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    names = () if secret is None else secret["metadata"].get("finalizers", ())
    if FINALIZER in names:
        await write(secret, [each for each in names if each != FINALIZER])


async def write(secret, names):
    """Write the list, unless the secret has changed: then try again."""
    version = secret["metadata"]["resourceVersion"]
    try:
        await fnop.patch(
            secret, metadata={"resourceVersion": version, "finalizers": names}
        )
    except fnop.Refused as refusal:
        if refusal.status not in (404, 409):
            raise
        raise fnop.TemporaryError("the secret has changed", delay=1) from refusal
