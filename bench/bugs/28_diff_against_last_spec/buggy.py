"""One member is removed for each observed decrement."""

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


@fnop.on.field("xs", field="spec.size")
async def resize(body, name, old, new, **_):
    for number in range(old or 0, new):
        for child in (claim_of(name, number), pod_of(name, number)):
            await fnop.apply(fnop.owned(child, body), force=True)
    if new < (old or 0):
        await fnop.delete("pods", name=f"{name}-{old - 1}")
        await fnop.delete("persistentvolumeclaims", name=f"data-{name}-{old - 1}")
