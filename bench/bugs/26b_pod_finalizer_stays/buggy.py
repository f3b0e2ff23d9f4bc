"""A finalizer on each pod, so that no end is missed, except when the owner ends."""

import fnop

FINALIZER = "example.com/claim"


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
        pod = pod_of(name, number)
        pod["metadata"]["finalizers"] = [FINALIZER]
        await fnop.apply(fnop.owned(claim_of(name, number), body), force=True)
        await fnop.adopt(pod)
    for pod in await fnop.list("pods", labels={"owner": name}):
        if number_of(pod.name) >= spec["size"]:
            await fnop.delete(pod)
        if "deletionTimestamp" in pod["metadata"]:
            if number_of(pod.name) >= spec["size"]:
                claim = f"data-{pod.name}"
                await fnop.delete("persistentvolumeclaims", name=claim)
            await let_go(pod)


async def let_go(pod):
    left = [each for each in pod["metadata"]["finalizers"] if each != FINALIZER]
    version = pod["metadata"]["resourceVersion"]
    await fnop.patch(pod, metadata={"resourceVersion": version, "finalizers": left})
