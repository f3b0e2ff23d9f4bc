"""Nothing changes unless all pods are ready, not even the cause that blocks them."""

import fnop


def stateful_set_of(name, spec):
    """Pods of the version `bad` never become ready."""
    ready = "never" if spec["version"] == "bad" else "0s"
    labels = {"app": name}
    notes = {"simulated.fnop.dev/ready-after": ready}
    container = {"name": "db", "image": f"db:{spec['version']}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {
            "serviceName": name,
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": notes},
                "spec": {"containers": [container]},
            },
        },
    }


@fnop.timer("xs", interval=10)
async def run(body, name, spec, **_):
    found = await fnop.get("statefulsets.apps", name=name)
    if found is not None and found.status.get("readyReplicas", 0) < 2:
        return
    child = stateful_set_of(name, spec)
    await fnop.apply(fnop.owned(child, body), force=True)
