"""Each object has its own finalizer on the secret, and removes only that one."""

import fnop

OURS = "example.com/"


@fnop.timer("xs", interval=10)
async def hold(name, spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None or "deletionTimestamp" in secret["metadata"]:
        return
    names = secret["metadata"].get("finalizers", ())
    if OURS + name not in names:
        await write(secret, [*names, OURS + name])


@fnop.timer("secrets", interval=10)
async def let_go(body, name, meta, **_):
    """Remove the finalizers of deleted objects, and no others."""
    names = meta.get("finalizers", ())
    if not any(each.startswith(OURS) for each in names):
        return
    users = [each for each in await fnop.list("xs") if each.spec["secret"] == name]
    used = [OURS + each.name for each in users]
    left = [each for each in names if not each.startswith(OURS) or each in used]
    if left != [*names]:
        await write(body, left)


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
