"""Of the objects that name one secret the oldest has it; the others report that."""

import fnop


@fnop.timer("xs", interval=10)
async def issue(body, name, uid, spec, patch, **_):
    rivals = [
        each
        for each in await fnop.list("xs")
        if each.spec.get("target") == spec["target"]
        and "deletionTimestamp" not in each["metadata"]
    ]
    first = min(rivals, key=age, default=None)
    if first is None or first["metadata"]["uid"] != uid:
        patch.status["message"] = f"{spec['target']} belongs to another object"
        return
    patch.status["message"] = None
    found = await fnop.get("secrets", name=spec["target"])
    if found is not None and "deletionTimestamp" in found["metadata"]:
        return  # its content is deleted with it: the timer checks again
    metadata = {"name": spec["target"], "annotations": {"example.com/owner": name}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    secret["stringData"] = {"host": spec["host"]}
    await fnop.apply(fnop.owned(secret, body), force=True)


def age(each):
    return each["metadata"]["creationTimestamp"], each.name
