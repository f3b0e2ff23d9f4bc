"""What is asked for is written at once; pods of a version before it do not block it."""

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
    child = stateful_set_of(name, spec)
    found = await fnop.apply(fnop.owned(child, body), force=True)
    if found.status.get("observedGeneration") != found["metadata"]["generation"]:
        return
    wanted = found.status.get("updateRevision")
    for pod in await fnop.list("pods", labels={"app": name}):
        revision = pod["metadata"]["labels"].get("controller-revision-hash")
        if revision != wanted and not is_ready(pod):
            await fnop.delete(pod)


def is_ready(pod):
    conditions = pod.status.get("conditions", ())
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in conditions
    )
