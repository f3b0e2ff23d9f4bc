"""A member's claim is deleted by the handler that sees its pod terminating."""

import fnop


def pod_of(name, number):
    container = {"name": "node", "image": "cassandra:4"}
    claim = {"persistentVolumeClaim": {"claimName": f"data-{name}-{number}"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{number}", "labels": {"owner": name}},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "data", **claim}],
        },
    }


def claim_of(name, number):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{name}-{number}", "labels": {"owner": name}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def number_of(name):
    return int(name.rpartition("-")[2])


@fnop.timer("xs", interval=10)
async def members(body, name, spec, **_):
    for number in range(spec["size"]):
        for child in (claim_of(name, number), pod_of(name, number)):
            await fnop.apply(fnop.owned(child, body), force=True)
    for pod in await fnop.list("pods", labels={"owner": name}):
        if number_of(pod.name) >= spec["size"]:
            await fnop.delete(pod)


@fnop.on.event("pods", labels={"owner": fnop.PRESENT})
async def clean_up(name, meta, labels, **_):
    if "deletionTimestamp" not in meta:
        return
    owner = await fnop.get("xs", name=labels["owner"])
    if owner is not None and number_of(name) >= owner.spec["size"]:
        await fnop.delete("persistentvolumeclaims", name=f"data-{name}")
