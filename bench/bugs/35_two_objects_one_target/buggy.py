"""Two objects may name one secret; each writes it as its own."""

import fnop


@fnop.on.create("xs")
@fnop.on.update("xs")
async def issue(name, spec, **_):
    await fnop.apply(secret_of(name, spec), force=True)


@fnop.on.event("secrets", annotations={"example.com/owner": fnop.PRESENT})
async def issue_again(name, **_):
    for owner in await fnop.list("xs"):
        if owner.spec["target"] == name:
            await fnop.apply(secret_of(owner.name, owner.spec), force=True)


def secret_of(name, spec):
    metadata = {"name": spec["target"], "annotations": {"example.com/owner": name}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    return {**secret, "stringData": {"host": spec["host"]}}
