"""Pods by number; marks in the status name the ones that may be deleted."""

import fnop


def pod(name):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "nifi"}]},
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def scale(name, spec, status, **_):
    wanted = [f"{name}-{number}" for number in range(spec["size"])]
    for each in wanted:
        if await fnop.get("pods", name=each) is None:
            await fnop.adopt(pod(each))
            await fnop.patch(status={"pods": {each: {"phase": "Starting"}}})
            await fnop.patch(status={"pods": {each: {"action": "UpscaleSucceeded"}}})
    for each, mark in status.get("pods", {}).items():
        if each not in wanted and mark.get("action") == "UpscaleSucceeded":
            await fnop.delete("pods", name=each)
            await fnop.patch(status={"pods": {each: None}})
