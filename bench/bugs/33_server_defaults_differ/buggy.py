"""A service that differs from the request is updated; with defaults it always does."""

import fnop

UPDATES = "example.com/updates"


def service_of(name, port):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {"selector": {"app": name}, "ports": [{"port": port}]},
    }


@fnop.on.event("xs")
@fnop.on.event("services", labels={"owner": fnop.PRESENT})
async def serve(name, **_):
    owner = await fnop.get("xs", name=name)
    if owner is None:
        return
    desired = service_of(name, owner.spec["port"])
    found = await fnop.get("services", name=name)
    if found is None:
        await fnop.create(fnop.owned(desired, owner))
    elif found["spec"] != desired["spec"]:
        updates = int(found.annotations.get(UPDATES, "0")) + 1
        counted = {UPDATES: str(updates)}
        await fnop.patch(found, spec=desired["spec"], annotations=counted)
