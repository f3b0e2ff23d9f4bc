"""Each object has a finalizer of its own on the secret, and takes off no other one."""

import fnop


@fnop.timer("xs", interval=10, finalizer=True)
async def hold(name, spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None or "deletionTimestamp" in secret["metadata"]:
        return
    mine = f"example.com/{name}"
    names = secret["metadata"].get("finalizers", ())
    if mine not in names:
        await write(secret, [*names, mine])


@fnop.on.delete("xs")
async def let_go(name, spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    mine = f"example.com/{name}"
    names = () if secret is None else secret["metadata"].get("finalizers", ())
    if mine in names:
        await write(secret, [each for each in names if each != mine])


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
