"""A console that needs a Secret, unless the console is being deleted."""

import fnop


@fnop.on.validate("xs.example.com")
async def has_its_password(spec, operation, **_):
    if operation != "DELETE":
        secret = await fnop.get("secrets", name=spec["password"])
        if secret is None:
            raise fnop.Denied("the Secret does not exist", field="spec.password")


@fnop.on.create("xs.example.com")
async def made(name, **_):
    await fnop.adopt(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    )


@fnop.on.delete("xs.example.com")
def logged_out(logger, name, **_):
    logger.info(f"{name} goes")
