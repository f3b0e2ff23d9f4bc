"""A certificate that exists as long as TLS is on."""

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
async def toggle(name, spec, **_):
    if spec["tls"]:
        await fnop.adopt(secret(name))
    else:
        await fnop.delete("secrets", name=f"{name}-tls")
