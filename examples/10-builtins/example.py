"""Handlers of Kubernetes' own kinds: what they remember is in annotations."""

from typing import Any

import fnop

COPY = "example.fnop.dev/copy"
ADDRESS = "example.fnop.dev/address"


@fnop.on.create("configmaps", labels={COPY: fnop.PRESENT})
@fnop.on.resume("configmaps", labels={COPY: fnop.PRESENT})
@fnop.on.update("configmaps", labels={COPY: fnop.PRESENT})
async def copied(body: fnop.Body, labels: fnop.Labels, **_: Any) -> None:
    """A ConfigMap with this label has a copy, which follows it and goes with it.

    What is written is for the copy as it was found: a request that is late, and meets
    another version of it, is refused.  A restart looks again: whoever crashed half-way
    through a change, and comes back to find it undone, is told of no change.
    """
    bare = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": labels[COPY]},
        "data": body.get("data", {}),
    }
    copy = fnop.append_owner_reference(bare, body)
    found = await fnop.get("configmaps", name=labels[COPY])
    if found is None:
        await fnop.create(copy)
        return
    to_stay(found)
    owners = copy["metadata"]["ownerReferences"]
    steps = [
        ("test", "/metadata/resourceVersion", found["metadata"]["resourceVersion"]),
        ("add", "/metadata/ownerReferences", owners),
        ("add", "/data", copy["data"]),
    ]
    json = [{"op": op, "path": path, "value": value} for op, path, value in steps]
    await fnop.patch(found, json=json)


@fnop.on.create("pods", labels={ADDRESS: fnop.PRESENT})
async def addressed(body: fnop.Body, labels: fnop.Labels, **_: Any) -> fnop.Effect:
    """A Pod with this label has a Service of its own.

    The Pod owns it: one that a late request makes when the Pod is gone goes as well.
    """
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": labels[ADDRESS]},
        "spec": {"clusterIP": "None", "selector": {ADDRESS: labels[ADDRESS]}},
    }
    to_stay(await fnop.apply(fnop.append_owner_reference(service, body)))
    return fnop.patch(annotations={"example.fnop.dev/known-as": labels[ADDRESS]})


@fnop.on.delete("pods", labels={ADDRESS: fnop.PRESENT})
async def forgotten(labels: fnop.Labels, **_: Any) -> None:
    """The Pod stays until nobody is sent to it any more.

    What is deleted is the Service that was found, by its uid: a request that is late
    does not meet the one of the next Pod.
    """
    service = await fnop.get("services", name=labels[ADDRESS])
    if service is not None:
        await fnop.delete(service)


def to_stay(found: fnop.Body) -> None:
    """An object that is being deleted takes what is written, and goes all the same."""
    if "deletionTimestamp" in found["metadata"]:
        raise fnop.TemporaryError(f"{found['metadata']['name']} goes first", delay=5)


@fnop.on.event(fnop.EVERYTHING, labels={"example.fnop.dev/seen": fnop.PRESENT})
def seen(
    resource: fnop.Resource, name: str, type: str | None, logger: fnop.Logger, **_: Any
) -> None:
    """Log the events of all kinds: pods, services, ... but never Events."""
    logger.info("%s/%s: %s", resource.plural, name, type or "LISTED")
