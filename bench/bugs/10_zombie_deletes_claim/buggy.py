"""A volume for each object, by its name: it is also deleted by its name."""

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
async def clean_up(name, **_):
    # Before the object is gone, so that the user does not pay for the volume any
    # longer.
    await fnop.delete("persistentvolumeclaims", name=f"data-{name}")
