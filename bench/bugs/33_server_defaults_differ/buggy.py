"""A pod that is not what was asked for is made anew; no pod ever is, with defaults."""

import fnop


def pod_of(name, image):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {"containers": [{"name": "server", "image": image}]},
    }


@fnop.on.event("xs")
@fnop.on.event("pods", labels={"owner": fnop.PRESENT})
async def serve(name, **_):
    owner = await fnop.get("xs", name=name)
    if owner is None:
        return
    desired = pod_of(name, owner.spec["image"])
    found = await fnop.get("pods", name=name)
    if found is None:
        await fnop.create(fnop.owned(desired, owner))
    elif found["spec"] != desired["spec"]:
        await fnop.delete(found)
