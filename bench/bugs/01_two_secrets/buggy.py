"""Certificates in two Secrets: the first one stands for both."""

import fnop


def secret(name):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"tls.crt": f"certificate of {name}"},
    }


@fnop.on.create("xs.example.com")
@fnop.on.resume("xs.example.com")
async def certify(name, **_):
    if await fnop.get("secrets", name=f"{name}-ssl") is not None:
        return  # they have been issued already
    await fnop.adopt(secret(f"{name}-ssl"))
    await fnop.adopt(secret(f"{name}-ssl-internal"))
