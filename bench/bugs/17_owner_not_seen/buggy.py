"""Secrets that users give to an object by a label: unowned ones are deleted."""

import fnop

OWNER = "example.com/owner"


@fnop.index("xs.example.com")
def owners(name, **_):
    return {name: True}


@fnop.on.event("secrets", labels={OWNER: fnop.PRESENT})
async def collect(name, labels, type, owners=fnop.INDEX, **_):
    if type != "DELETED" and labels[OWNER] not in owners:
        await fnop.delete("secrets", name=name)


@fnop.on.delete("xs.example.com")
async def release(name, **_):
    for secret in await fnop.list("secrets", labels={OWNER: name}):
        await fnop.delete(secret)
