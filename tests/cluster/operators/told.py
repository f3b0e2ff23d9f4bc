"""Handlers with failures that the object and the log must report truthfully."""

from typing import Any

import fnop


def config(name: str, value: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"value": value},
    }


@fnop.on.create("fnopexamples", retries=1)
async def twice(name: str, **_: Any) -> None:
    await fnop.create(config(name, "first"))
    await fnop.create(config(name, "second"))


@fnop.on.create("fnopexamples", retries=1)
def labels(patch: Any, **_: Any) -> None:
    patch.metadata.labels["kind"] = "no label's value!"


@fnop.on.create("fnopexamples", retries=1)
def counts(**_: Any) -> dict[str, int]:
    return {"count": 1}


@fnop.on.create("fnopexamples")
async def chooses(**_: Any) -> None:
    await fnop.patch(spec={"chosen": 1})
    raise fnop.PermanentError(f"no disk for {object()!r}")
