"""Pods with numbers in their names: each one is created if it is missing."""

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
async def scale(name, uid, spec, **_):
    wanted = [f"{name}-{number}" for number in range(spec["size"])]
    for each in wanted:
        await fnop.adopt(pod(each, name))
    for found in await fnop.list("pods", labels={"owner": name}):
        owners = {each["uid"] for each in found.meta.get("ownerReferences", ())}
        if uid in owners and found.name not in wanted:
            await fnop.delete(found)
