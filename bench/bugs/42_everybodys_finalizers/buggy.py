"""An object that no longer needs a secret removes all its finalizers."""

import fnop


@fnop.on.create("xs")
async def hold(name, spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None:
        raise fnop.TemporaryError("waiting for the secret", delay=10)
    mine = f"example.com/{name}"
    names = secret["metadata"].get("finalizers", ())
    if mine not in names:
        version = secret["metadata"]["resourceVersion"]
        written = {"resourceVersion": version, "finalizers": [*names, mine]}
        await fnop.patch(secret, metadata=written)


@fnop.on.delete("xs")
async def let_go(spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is not None:
        await fnop.patch(secret, metadata={"finalizers": []})
