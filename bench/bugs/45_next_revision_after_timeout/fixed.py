"""A request is named after its content: repeating it is the same request."""

import hashlib

import fnop


@fnop.timer("xs", interval=10)
async def ask(body, name, spec, patch, **_):
    digest = hashlib.sha256(spec["host"].encode()).hexdigest()[:10]
    metadata = {"name": f"{name}-request-{digest}", "labels": {"owner": name}}
    request = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    request["data"] = {"host": spec["host"]}
    await fnop.apply(fnop.owned(request, body), force=True)
    for each in await fnop.list("configmaps"):
        if each.name.startswith(f"{name}-request-") and each.name != metadata["name"]:
            await fnop.delete(each)
    patch.status["request"] = metadata["name"]
