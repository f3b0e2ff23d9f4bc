"""A copy of a secret in each namespace has its owner in another one."""

import fnop


def secret_of(name, namespace):
    metadata = {"name": f"{name}-ca", "namespace": namespace}
    metadata["labels"] = {"owner": name}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    return {**secret, "stringData": {"ca.crt": "certificate"}}


@fnop.on.create("xs")
@fnop.on.update("xs")
async def publish(body, name, spec, **_):
    for namespace in spec["namespaces"]:
        copy = fnop.owned(secret_of(name, namespace), body)
        await fnop.apply(copy, force=True)


@fnop.on.event("secrets", labels={"owner": fnop.PRESENT})
async def publish_again(type, namespace, labels, **_):
    owner = await fnop.get("xs", name=labels["owner"], namespace="default")
    if type == "DELETED" and owner is not None:
        copy = fnop.owned(secret_of(owner.name, namespace), owner)
        await fnop.apply(copy, force=True)
