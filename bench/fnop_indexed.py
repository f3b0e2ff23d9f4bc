"""The result of an object, next to an index of all objects: written with fnop."""

from collections.abc import Mapping
from typing import Any

import fnop

NEIGHBOURS = 4


@fnop.index("benchobjects")
def neighbours(spec: Mapping[str, Any], name: str, **_: Any) -> dict[int, str]:
    return {spec["number"] // NEIGHBOURS: name}


@fnop.on.create("benchobjects")
def create(
    spec: Mapping[str, Any],
    name: str,
    neighbours: fnop.Index[int, str] = fnop.INDEX,
    **_: Any,
) -> dict[str, int]:
    assert name in neighbours[spec["number"] // NEIGHBOURS]
    return {"doubled": spec["number"] * 2}
