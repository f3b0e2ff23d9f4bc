"""Pods with a volume each: volumes with numbers that are too high are deleted."""

import fnop


def is_of(found, uid):
    return uid in {each["uid"] for each in found.meta.get("ownerReferences", ())}


def pod(name, cluster):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
    containers = [{"name": "main", "image": "cassandra"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"cluster": cluster}},
        "spec": {"containers": containers, "volumes": [claim]},
    }


def claim(name, cluster):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{name}", "labels": {"cluster": cluster}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def scale(name, spec, uid, **_):
    wanted = [f"{name}-{number}" for number in range(spec["size"])]
    for each in wanted:
        await fnop.adopt(claim(each, name))
        await fnop.adopt(pod(each, name))
    for found in await fnop.list("pods", labels={"cluster": name}):
        if is_of(found, uid) and found.name not in wanted:
            await fnop.delete(found)
    kept = {f"data-{each}" for each in wanted}
    for found in await fnop.list("persistentvolumeclaims", labels={"cluster": name}):
        if is_of(found, uid) and found.name not in kept:
            await fnop.delete(found)
