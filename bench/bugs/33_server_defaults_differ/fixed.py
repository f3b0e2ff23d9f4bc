"""A pod says which spec it was made for; what the server adds does not matter."""

import fnop


def pod_of(name, image):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {"containers": [{"name": "server", "image": image}]},
    }


@fnop.timer("xs", interval=10)
async def serve(body, name, uid, spec, **_):
    desired = pod_of(name, spec["image"])
    desired["metadata"]["annotations"] = {"example.com/image": spec["image"]}
    found = await fnop.get("pods", name=name)
    if found is None:
        await fnop.create(fnop.owned(desired, body))
    elif not is_made_for(found, uid, spec["image"]):
        await fnop.delete(found)


def is_made_for(pod, uid, image):
    meta = pod["metadata"]
    owners = [each["uid"] for each in meta.get("ownerReferences", ())]
    made_for = meta.get("annotations", {}).get("example.com/image")
    return owners == [uid] and made_for == image
