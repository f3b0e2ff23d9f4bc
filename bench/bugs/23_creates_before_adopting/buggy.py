"""Pods of a restored cluster are adopted after missing ones are created."""

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


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def scale(name, uid, spec, **_):
    if spec["paused"]:
        return
    found = await fnop.list("pods", labels={"cluster": name})
    owned = [each for each in found if uid in owners(each)]
    for number in range(spec["size"] - len(owned)):
        await fnop.adopt(pod(f"{name}-{number}", name))


@fnop.timer("xs.example.com", interval=60)
async def tidy(name, uid, body, spec, **_):
    for each in await fnop.list("pods", labels={"cluster": name}):
        if not owners(each):
            await take_over(each, body)
    found = await fnop.list("pods", labels={"cluster": name})
    mine = [each for each in found if uid in owners(each)]
    mine.sort(key=lambda each: (each.meta["creationTimestamp"], each.name))
    for oldest in mine[: max(0, len(mine) - spec["size"])]:
        await fnop.delete(oldest)
