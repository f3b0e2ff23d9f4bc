"""Pods with random names: the operator creates the number that the index lacks."""

import fnop


def pod(name, owner):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": owner}},
        "spec": {"containers": [{"name": "main", "image": "ray"}]},
    }


@fnop.index("pods", labels={"owner": fnop.PRESENT})
def workers(labels, name, **_):
    return {labels["owner"]: name}


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def scale(name, spec, workers=fnop.INDEX, **_):
    for _number in range(spec["size"] - len(workers.get(name, ()))):
        suffix = (await fnop.random(5)).hex()
        await fnop.adopt(pod(f"{name}-{suffix}", name))
