"""A disruption budget that follows its object, by writes for the version read."""

import fnop


def budget(name, most):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {
            "maxUnavailable": most,
            "selector": {"matchLabels": {"cluster": name}},
        },
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def limit(name, spec, **_):
    found = await fnop.adopt(budget(name, spec["maxUnavailable"]))
    if found["spec"]["maxUnavailable"] != spec["maxUnavailable"]:
        version = {"resourceVersion": found.meta["resourceVersion"]}
        most = {"maxUnavailable": spec["maxUnavailable"]}
        await fnop.patch(found, metadata=version, spec=most)
