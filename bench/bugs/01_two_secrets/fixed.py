"""Certificates in two Secrets: each one is created if it is missing."""

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
    await fnop.adopt(secret(f"{name}-ssl"))
    await fnop.adopt(secret(f"{name}-ssl-internal"))
