"""Members are added, and never removed: their number depends on observed history."""

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
async def scale(body, name, spec, patch, **_):
    for number in range(spec["size"]):
        for child in (claim_of(name, number), pod_of(name, number)):
            await fnop.apply(fnop.owned(child, body), force=True)
    pods = await fnop.list("pods", labels={"owner": name})
    if len(pods) > spec["size"]:
        patch.status["message"] = "scaling down is not supported"
