"""Certificates in two Secrets: each one is made where it is missing."""

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
    await fnop.adopt(secret(f"{name}-ssl", spec["host"]))
    await fnop.adopt(secret(f"{name}-ssl-internal", f"internal.{spec['host']}"))
