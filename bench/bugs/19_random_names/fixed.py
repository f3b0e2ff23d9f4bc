"""Pods with numbers in their names: each one is made where it is missing."""

import fnop


def pod(name, owner):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": owner}},
        "spec": {"containers": [{"name": "main", "image": "ray"}]},
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def scale(name, spec, **_):
    for number in range(spec["size"]):
        await fnop.adopt(pod(f"{name}-{number}", name))
