"""A finalizer is added by writing the whole list as it was read."""

import fnop

FINALIZER = "example.com/in-use"


@fnop.on.create("xs")
@fnop.on.update("xs")
async def hold(spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    if secret is None:
        raise fnop.TemporaryError("waiting for the secret", delay=10)
    names = secret["metadata"].get("finalizers", ())
    if FINALIZER not in names:
        await fnop.patch(secret, metadata={"finalizers": [*names, FINALIZER]})


@fnop.on.delete("xs")
async def let_go(spec, **_):
    secret = await fnop.get("secrets", name=spec["secret"])
    names = () if secret is None else secret["metadata"].get("finalizers", ())
    if FINALIZER in names:
        left = [each for each in names if each != FINALIZER]
        await fnop.patch(secret, metadata={"finalizers": left})
