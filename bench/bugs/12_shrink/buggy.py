"""Volumes of another size, larger or smaller: the StatefulSet is recreated."""

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
    claims = await fnop.list("persistentvolumeclaims", labels={"cluster": name})
    if requested(found["spec"]["volumeClaimTemplates"][0]) != wanted:
        await fnop.delete(found)
    for claim in claims:
        if requested(claim) != wanted:
            await fnop.patch(claim, spec=sized(wanted))
    await fnop.adopt(stateful_set(name, wanted))
