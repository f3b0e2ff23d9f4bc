"""Volumes that grow: the StatefulSet is made anew, for its template cannot change."""

import fnop

GI = 1024**3


def size_of(text):
    return int(text.removesuffix("Gi")) * GI


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
    found = await fnop.adopt(stateful_set(name, spec["storage"]))
    template = found["spec"]["volumeClaimTemplates"][0]["spec"]
    if size_of(template["resources"]["requests"]["storage"]) < size_of(spec["storage"]):
        await fnop.delete(found, propagation="Orphan")
        for claim in await fnop.list(
            "persistentvolumeclaims", labels={"cluster": name}
        ):
            request = {"requests": {"storage": spec["storage"]}}
            await fnop.patch(claim, spec={"resources": request})
        await fnop.adopt(stateful_set(name, spec["storage"]))
