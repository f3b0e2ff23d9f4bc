"""An operator that copies and hashes a Secret, and makes another one."""

import base64
import hashlib
from typing import Any

import fnop


@fnop.on.create("fnopexamples")
async def created(
    name: str, namespace: str | None, spec: Any, logger: Any, **_: Any
) -> dict[str, Any]:
    secret = await fnop.get("secrets", name="s", namespace=namespace)
    assert secret is not None
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
def deleted(**_: Any) -> None:
    pass
