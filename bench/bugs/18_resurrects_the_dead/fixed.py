"""Racks as StatefulSets: a new image is written to the sets that exist."""

import fnop


def stateful_set(name, cluster, image):
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"cluster": cluster}},
        "spec": {
            "replicas": 1,
            "serviceName": cluster,
            "selector": {"matchLabels": {"rack": name}},
            "template": {
                "metadata": {"labels": {"rack": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    }


def is_of(found, uid):
    return uid in {each["uid"] for each in found.meta.get("ownerReferences", ())}


def image_of(found):
    return found["spec"]["template"]["spec"]["containers"][0]["image"]


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def serve(name, uid, spec, **_):
    wanted = [f"{name}-{rack}" for rack in spec["racks"]]
    for each in wanted:
        await fnop.adopt(stateful_set(each, name, spec["image"]))
    for found in await fnop.list("statefulsets.apps", labels={"cluster": name}):
        if not is_of(found, uid):
            continue
        if found.name not in wanted:
            await fnop.delete(found)
        elif image_of(found) != spec["image"]:
            version = {"resourceVersion": found.meta["resourceVersion"]}
            template = stateful_set(found.name, name, spec["image"])["spec"]["template"]
            await fnop.patch(found, metadata=version, spec={"template": template})


@fnop.timer("statefulsets.apps", labels={"cluster": fnop.PRESENT}, interval=10)
async def collect(body, labels, **_):
    """Delete a set that was requested long ago, and created after its rack was gone."""
    owner = await fnop.get("xs.example.com", name=labels["cluster"])
    if owner is None or not is_of(body, owner.uid):
        return
    if body.name not in [f"{owner.name}-{rack}" for rack in owner.spec["racks"]]:
        await fnop.delete(body)
