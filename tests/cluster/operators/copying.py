"""An operator that copies and hashes a Secret, and makes another one."""

import base64
import hashlib

import fnop


@fnop.on.create("fnopexamples")
async def created(name, namespace, spec, logger):
    secret = await fnop.get("secrets", name="s", namespace=namespace)
    password = base64.b64decode(secret["data"]["password"]).decode()
    logger.info(f"{name} uses {password}")
    config = {"apiVersion": "v1", "kind": "ConfigMap"}
    await fnop.adopt(
        {
            **config,
            "data": {
                "url": f"https://user:{password}@example.com/",
                "header": "Basic "
                + base64.b64encode(f"user:{password}".encode()).decode(),
                "sum": hashlib.sha256(password.encode()).hexdigest(),
            },
        }
    )
    await fnop.adopt(
        {"apiVersion": "v1", "kind": "Secret", "stringData": {"copy": password}}
    )
    return {"password": password, "seen": spec["field"]}


@fnop.on.delete("fnopexamples")
def deleted():
    pass
