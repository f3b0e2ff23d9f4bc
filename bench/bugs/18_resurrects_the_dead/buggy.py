"""Racks as StatefulSets: a new image is written to all sets in the index."""

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


@fnop.index("statefulsets.apps", labels={"cluster": fnop.PRESENT})
def racks(labels, name, **_):
    return {labels["cluster"]: name}


@fnop.on.field("xs.example.com", field="spec.racks")
async def scale(name, uid, spec, **_):
    wanted = [f"{name}-{rack}" for rack in spec["racks"]]
    for each in wanted:
        await fnop.adopt(stateful_set(each, name, spec["image"]))
    for found in await fnop.list("statefulsets.apps", labels={"cluster": name}):
        if found.name not in wanted:
            await fnop.delete(found)


@fnop.on.field("xs.example.com", field="spec.image")
async def roll(name, body, spec, racks=fnop.INDEX, **_):
    for each in racks.get(name, ()):
        await fnop.apply(fnop.owned(stateful_set(each, name, spec["image"]), body))
