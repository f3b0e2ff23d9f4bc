"""A StatefulSet that cannot be changed is recreated; its pods stay meanwhile."""

import fnop


def stateful_set_of(name, spec):
    template = {"metadata": {"labels": {"app": name}}}
    template["spec"] = {"containers": [{"name": "db", "image": spec["image"]}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {
            "serviceName": name,
            "podManagementPolicy": spec["policy"],
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def settings_of(name, spec):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": {"owner": name}},
        "data": {"policy": spec["policy"]},
    }


@fnop.timer("xs", interval=10)
async def run(body, name, spec, **_):
    await fnop.apply(fnop.owned(settings_of(name, spec), body), force=True)
    found = await fnop.get("statefulsets.apps", name=name)
    if found is None or found.spec["podManagementPolicy"] == spec["policy"]:
        child = stateful_set_of(name, spec)
        await fnop.apply(fnop.owned(child, body), force=True)
    elif "deletionTimestamp" not in found["metadata"]:
        await fnop.delete(found, propagation="Orphan")


@fnop.on.delete("xs")
async def end(name, **_):
    """Delete the pods without an owner if their stateful set is being recreated."""
    found = await fnop.get("statefulsets.apps", name=name)
    if found is not None and "deletionTimestamp" in found.meta:
        return fnop.again(after=1, because="its stateful set goes first")
    for pod in await fnop.list("pods", labels={"app": name}):
        if not pod.meta.get("ownerReferences"):
            await fnop.delete(pod)
