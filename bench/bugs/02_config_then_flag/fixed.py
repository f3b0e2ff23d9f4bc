"""A new configuration restarts the Pod: the Pod itself names its configuration."""

import fnop

CONFIG = "example.com/config"


def config_map(name, config):
    metadata = {"name": f"{name}-config"}
    data = {"config": config}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name, config):
    container = {"name": "main", "image": "nifi", "args": [f"--config={config}"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {CONFIG: config}},
        "spec": {"containers": [container]},
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.timer("xs.example.com", interval=60)
async def configure(name, spec, **_):
    found = await fnop.adopt(config_map(name, spec["config"]))
    if found["data"] != {"config": spec["config"]}:
        await fnop.patch(found, data={"config": spec["config"]})


@fnop.timer("xs.example.com", interval=60)
async def run(name, spec, **_):
    found = await fnop.adopt(pod(name, spec["config"]))
    if found.annotations.get(CONFIG) != spec["config"]:
        await fnop.delete(found)
        await fnop.adopt(pod(name, spec["config"]))
