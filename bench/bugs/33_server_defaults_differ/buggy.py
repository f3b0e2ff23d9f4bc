"""A pod that is not what was asked for is made anew; no pod ever is, with defaults."""

import fnop


def pod_of(name, image):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {"containers": [{"name": "server", "image": image}]},
    }


@fnop.timer("xs", interval=10)
async def serve(body, name, spec, **_):
    desired = pod_of(name, spec["image"])
    found = await fnop.get("pods", name=name)
    if found is None:
        await fnop.create(fnop.owned(desired, body))
    elif found["spec"] != desired["spec"]:
        await fnop.delete(found)
