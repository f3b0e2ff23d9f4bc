"""Pods are counted by their labels, which others may change."""

import fnop


def pod(name, owner):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": owner}},
        "spec": {"containers": [{"name": "main", "image": "machine"}]},
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def scale(name, spec, **_):
    found = await fnop.list("pods", labels={"owner": name})
    for _number in range(spec["size"] - len(found)):
        suffix = (await fnop.random(5)).hex()
        await fnop.adopt(pod(f"{name}-{suffix}", name))
