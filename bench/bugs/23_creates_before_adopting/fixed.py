"""Pods of a restored cluster are adopted before any other one is created."""

import fnop


def pod(name, cluster):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"cluster": cluster}},
        "spec": {"containers": [{"name": "main", "image": "machine"}]},
    }


def owners(found):
    return {each["uid"] for each in found.meta.get("ownerReferences", ())}


async def take_over(found, body):
    version = {"resourceVersion": found.meta["resourceVersion"]}
    references = {"ownerReferences": [fnop.build_owner_reference(body)]}
    await fnop.patch(found, metadata=version | references)


@fnop.timer("xs.example.com", interval=60)
async def scale(name, uid, body, spec, **_):
    for each in await fnop.list("pods", labels={"cluster": name}):
        if not owners(each):
            await take_over(each, body)
    if spec["paused"]:
        return
    found = await fnop.list("pods", labels={"cluster": name})
    mine = sorted((each for each in found if uid in owners(each)), key=lambda e: e.name)
    taken = {each.name for each in found}
    free = (f"{name}-{number}" for number in range(spec["size"] + len(taken)))
    fresh = [each for each in free if each not in taken]
    for each in fresh[: max(0, spec["size"] - len(mine))]:
        await fnop.adopt(pod(each, name))
    for surplus in mine[spec["size"] :]:
        await fnop.delete(surplus)
