"""Secrets that users give to an object by a label: unowned ones are deleted."""

import fnop

OWNER = "example.com/owner"


@fnop.on.event("secrets", labels={OWNER: fnop.PRESENT})
async def collect(body, labels, type, **_):
    if type == "DELETED":
        return
    owner = await fnop.get("xs.example.com", name=labels[OWNER])
    if owner is None or "deletionTimestamp" in owner.meta:
        await fnop.delete(body)


@fnop.on.delete("xs.example.com")
async def release(name, **_):
    for secret in await fnop.list("secrets", labels={OWNER: name}):
        await fnop.delete(secret)
