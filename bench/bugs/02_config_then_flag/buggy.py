"""A new configuration restarts the Pod: a flag in the status marks that it is due."""

import fnop


def config_map(name, config):
    metadata = {"name": f"{name}-config"}
    data = {"config": config}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name, config):
    # The Pod reads its configuration once, when it starts.
    container = {"name": "main", "image": "nifi", "args": [f"--config={config}"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def configure(name, spec, **_):
    found = await fnop.adopt(config_map(name, spec["config"]))
    if found["data"] != {"config": spec["config"]}:
        await fnop.patch(found, data={"config": spec["config"]})
        await fnop.patch(status={"outOfSync": True})


@fnop.timer("xs.example.com", interval=60)
async def run(name, spec, status, **_):
    if status.get("outOfSync"):
        await fnop.delete("pods", name=name)
        await fnop.patch(status={"outOfSync": False})
    await fnop.adopt(pod(name, spec["config"]))
