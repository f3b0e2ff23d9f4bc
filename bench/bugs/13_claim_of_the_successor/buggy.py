"""Pods with a volume each: the volume of a Pod that ends is deleted."""

import fnop


def pod(name, cluster):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
    containers = [{"name": "main", "image": "cassandra"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"cluster": cluster}},
        "spec": {"containers": containers, "volumes": [claim]},
    }


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
@fnop.on.update("xs.example.com")
async def scale(name, spec, **_):
    wanted = [f"{name}-{number}" for number in range(spec["size"])]
    for each in wanted:
        await fnop.adopt(claim(each))
        await fnop.adopt(pod(each, name))
    for found in await fnop.list("pods", labels={"cluster": name}):
        if found.name not in wanted:
            await fnop.delete(found)


@fnop.on.event("pods", labels={"cluster": fnop.PRESENT})
async def clean_up(name, meta, **_):
    if meta.get("deletionTimestamp"):
        await fnop.delete("persistentvolumeclaims", name=f"data-{name}")
