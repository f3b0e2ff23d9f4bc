"""Pods by number: the ones that users name are skipped, and the rest follows."""

import fnop


def pod(name, owner):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": owner}},
        "spec": {"containers": [{"name": "main", "image": "ray"}]},
    }


def is_of(found, uid):
    return uid in {each["uid"] for each in found.meta.get("ownerReferences", ())}


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.timer("xs.example.com", interval=300)
async def scale(name, uid, spec, **_):
    victims = spec.get("workersToDelete", ())
    names = (f"{name}-{number}" for number in range(spec["size"] + len(victims)))
    wanted = [each for each in names if each not in victims][: spec["size"]]
    for found in await fnop.list("pods", labels={"owner": name}):
        if is_of(found, uid) and found.name not in wanted:
            await fnop.delete(found)
    for each in wanted:
        await fnop.adopt(pod(each, name))
