"""A StatefulSet that is deleted before its object, by its name."""

import fnop


def stateful_set(name):
    container = {"name": "main", "image": "rabbitmq"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "serviceName": name,
            "selector": {"matchLabels": {"cluster": name}},
            "template": {
                "metadata": {"labels": {"cluster": name}},
                "spec": {"containers": [container]},
            },
        },
    }


@fnop.on.create("xs.example.com")
async def serve(name, **_):
    await fnop.adopt(stateful_set(name))


@fnop.on.delete("xs.example.com")
async def prepare_for_deletion(name, **_):
    found = await fnop.get("statefulsets.apps", name=name)
    if found is None:
        return None
    if "deletionTimestamp" not in found.meta:
        await fnop.delete("statefulsets.apps", name=name, propagation="Foreground")
    return fnop.again(after=5, because="its pods come to their end")
