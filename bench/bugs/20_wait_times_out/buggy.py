"""A machine for each object: the handler creates it, and waits 10 s for the index."""

from datetime import datetime, timedelta

import fnop


def machine(name, owner):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": owner}},
        "spec": {"containers": [{"name": "main", "image": "machine"}]},
    }


@fnop.index("pods", labels={"owner": fnop.PRESENT})
def machines(labels, name, **_):
    return {labels["owner"]: name}


@fnop.on.create("xs.example.com", timeout=35)
async def provide(name, now, memo, machines=fnop.INDEX, **_):
    if machines.get(name):
        return None
    asked = memo.get("asked")
    if asked is None or now - datetime.fromisoformat(asked) > timedelta(seconds=10):
        suffix = (await fnop.random(5)).hex()
        await fnop.adopt(machine(f"{name}-{suffix}", name))
        await fnop.remember(asked=now.isoformat())
    return fnop.again(after=2, because="the machine is not seen yet")
