"""The members follow from the present spec, not from former ones."""

import re

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
async def members(name, **_):
    """Delete surplus members, and their claims after them."""
    owner = await fnop.get("xs", name=name)
    if owner is None or "deletionTimestamp" in owner["metadata"]:
        return
    size = owner.spec["size"]
    for number in range(size):
        for child in (claim_of(name, number), pod_of(name, number)):
            await fnop.apply(fnop.owned(child, owner), force=True)
    pods = members_of(await fnop.list("pods"), name)
    for pod in pods:
        if number_of(pod.name) >= size:
            await fnop.delete(pod)
    used = {f"data-{pod.name}" for pod in pods}
    claims = members_of(await fnop.list("persistentvolumeclaims"), f"data-{name}")
    for claim in claims:
        if number_of(claim.name) >= size and claim.name not in used:
            await fnop.delete(claim)


def members_of(found, prefix):
    """Pods with a number: names stay, even if labels and owners change."""
    return [each for each in found if re.fullmatch(f"{prefix}-[0-9]+", each.name)]
