"""A volume for each object, by its name: the operator deletes only its own."""

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
    # Before the object is gone, so that the user does not pay for the volume any
    # longer.
    for found in await fnop.list("persistentvolumeclaims"):
        owners = {each["uid"] for each in found.meta.get("ownerReferences", ())}
        if uid in owners:
            # only this one, even if another object has its name by then
            await fnop.delete(found)
