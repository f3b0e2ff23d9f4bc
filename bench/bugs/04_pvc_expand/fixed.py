"""Volumes that grow: each one is compared with the wanted size."""

import fnop


def requested(claim):
    return int(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi"))


def sized(storage):
    return {"resources": {"requests": {"storage": f"{storage}Gi"}}}


def stateful_set(name, storage):
    container = {"name": "main", "image": "rabbitmq"}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            **sized(storage),
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": {"cluster": name}},
            "template": {
                "metadata": {"labels": {"cluster": name}},
                "spec": {"containers": [container]},
            },
            "volumeClaimTemplates": [claim],
        },
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def store(name, spec, **_):
    wanted = spec["storage"]
    found = await fnop.adopt(stateful_set(name, wanted))
    if requested(found["spec"]["volumeClaimTemplates"][0]) < wanted:
        await fnop.delete(found, propagation="Orphan")
        await fnop.adopt(stateful_set(name, wanted))
    for claim in await fnop.list("persistentvolumeclaims", labels={"cluster": name}):
        if requested(claim) < wanted:
            if claim.status.get("phase") != "Bound":
                return fnop.again(after=10, because=f"{claim.name} is not bound yet")
            await fnop.patch(claim, spec=sized(wanted))


@fnop.on.delete("xs.example.com")
async def end(name, **_):
    """Delete the pods without an owner if their stateful set is being recreated."""
    found = await fnop.get("statefulsets.apps", name=name)
    if found is not None and "deletionTimestamp" in found.meta:
        return fnop.again(after=1, because="its stateful set goes first")
    for pod in await fnop.list("pods", labels={"cluster": name}):
        if not pod.meta.get("ownerReferences"):
            await fnop.delete(pod)
