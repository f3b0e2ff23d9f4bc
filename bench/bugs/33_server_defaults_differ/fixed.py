"""The spec is applied; fields that the server adds are ignored."""

import fnop


def service_of(name, port):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {"selector": {"app": name}, "ports": [{"port": port}]},
    }


@fnop.timer("xs", interval=10)
async def serve(body, name, spec, **_):
    desired = service_of(name, spec["port"])
    await fnop.apply(fnop.owned(desired, body), force=True)
