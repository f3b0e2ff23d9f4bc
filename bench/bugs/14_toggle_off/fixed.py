"""A certificate that exists as long as TLS is on; only the one read is deleted."""

import fnop


def secret(name):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-tls"},
        "stringData": {"tls.crt": f"certificate of {name}"},
    }


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def toggle(name, uid, spec, **_):
    if spec["tls"]:
        await fnop.adopt(secret(name))
        return
    found = await fnop.get("secrets", name=f"{name}-tls")
    owners = found.meta.get("ownerReferences", ()) if found is not None else ()
    if uid in {each["uid"] for each in owners}:
        await fnop.delete(found)
