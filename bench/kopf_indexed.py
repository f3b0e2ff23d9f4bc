"""The result of an object, next to an index of all objects: written with Kopf."""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator, arg-type"

from typing import Any

import kopf

NEIGHBOURS = 4


@kopf.index("benchobjects")
def neighbours(spec: kopf.Spec, name: str, **_: Any) -> dict[int, str]:
    return {spec["number"] // NEIGHBOURS: name}


@kopf.on.create("benchobjects")
def create(spec: kopf.Spec, name: str, neighbours: Any, **_: Any) -> dict[str, int]:
    assert name in neighbours[spec["number"] // NEIGHBOURS]
    return {"doubled": spec["number"] * 2}
