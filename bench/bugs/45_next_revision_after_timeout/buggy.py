"""Each request for a certificate has the next number after the existing ones."""

import fnop


@fnop.on.create("xs")
@fnop.on.update("xs")
async def ask(body, name, spec, patch, **_):
    requests = await fnop.list("configmaps", labels={"owner": name})
    numbers = [int(each.name.rpartition("-")[2]) for each in requests]
    number = max(numbers, default=0) + 1
    metadata = {"name": f"{name}-request-{number}", "labels": {"owner": name}}
    request = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    request["data"] = {"host": spec["host"]}
    await fnop.create(fnop.owned(request, body))
    patch.status["revision"] = number
