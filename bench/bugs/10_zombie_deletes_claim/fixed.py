"""A volume for each object, by its name: the one that is deleted is its own."""

import fnop


def claim(name):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


@fnop.on.create("xs.example.com")
async def provide(name, **_):
    await fnop.adopt(claim(name))


@fnop.on.delete("xs.example.com")
async def clean_up(uid, **_):
    # Before the object is gone, so that nobody pays for the volume any more.
    for found in await fnop.list("persistentvolumeclaims"):
        owners = {each["uid"] for each in found.meta.get("ownerReferences", ())}
        if uid in owners:
            await fnop.delete(found)  # this one alone, whoever has its name by then
