"""Volumes of another size: the StatefulSet is made anew, whichever it is."""

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
    wanted = size_of(spec["storage"])
    found = await fnop.adopt(stateful_set(name, spec["storage"]))
    claims = await fnop.list("persistentvolumeclaims", labels={"cluster": name})
    if requested(found["spec"]["volumeClaimTemplates"][0]) != wanted:
        await fnop.delete(found)
    for claim in claims:
        if requested(claim) != wanted:
            request = {"requests": {"storage": spec["storage"]}}
            await fnop.patch(claim, spec={"resources": request})
    await fnop.adopt(stateful_set(name, spec["storage"]))
