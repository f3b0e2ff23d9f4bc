"""Volumes that can only grow: a smaller size is refused in the status."""

import fnop

GI = 1024**3


def size_of(text):
    return int(text.removesuffix("Gi")) * GI


def requested(claim):
    return size_of(claim["spec"]["resources"]["requests"]["storage"])


def stateful_set(name, storage):
    container = {"name": "main", "image": "rabbitmq"}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
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
    claims = await fnop.list("persistentvolumeclaims", labels={"cluster": name})
    asked = size_of(spec["storage"])
    wanted = max([asked, *map(requested, claims)])
    storage = f"{wanted // GI}Gi"
    found = await fnop.adopt(stateful_set(name, storage))
    if requested(found["spec"]["volumeClaimTemplates"][0]) != wanted:
        await fnop.delete(found, propagation="Orphan")
        await fnop.adopt(stateful_set(name, storage))
    for claim in claims:
        if requested(claim) < wanted:
            if claim.status.get("phase") != "Bound":
                return fnop.again(after=10, because=f"{claim.name} is not bound yet")
            await fnop.patch(
                claim, spec={"resources": {"requests": {"storage": storage}}}
            )
    refusal = "volumes cannot shrink" if asked < wanted else None
    await fnop.patch(status={"refused": refusal})
