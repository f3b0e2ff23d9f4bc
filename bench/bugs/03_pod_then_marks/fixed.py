"""Pods by number; surplus Pods that belong to the object are deleted."""

import fnop


def pod(name):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "nifi"}]},
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.timer("xs.example.com", interval=300)
async def scale(body, name, uid, spec, **_):
    wanted = [f"{name}-{number}" for number in range(spec["size"])]
    for each in wanted:
        await fnop.adopt(pod(each))
    for found in await fnop.list("pods"):
        owners = {each["uid"] for each in found.meta.get("ownerReferences", ())}
        if uid in owners and found.name not in wanted:
            await fnop.delete(found)
    # With the uid in `body`: another object of this name may have been created
    # meanwhile.
    await fnop.patch(body, status={"pods": wanted})
