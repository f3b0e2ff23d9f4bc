"""Certificates in two Secrets: the first one stands for both."""

import fnop


def secret(name, host):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"tls.crt": f"certificate of {host}"},
    }


@fnop.on.create("xs.example.com")
@fnop.on.resume("xs.example.com")
async def certify(name, spec, **_):
    if await fnop.get("secrets", name=f"{name}-ssl") is not None:
        return  # they have been issued already
    await fnop.adopt(secret(f"{name}-ssl", spec["host"]))
    await fnop.adopt(secret(f"{name}-ssl-internal", f"internal.{spec['host']}"))
