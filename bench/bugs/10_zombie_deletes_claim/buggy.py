"""A volume for each object, by its name: it is deleted by its name, too."""

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
    # Before the object is gone, so that nobody pays for the volume any more.
    await fnop.delete("persistentvolumeclaims", name=f"data-{name}")
