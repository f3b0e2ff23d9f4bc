"""The types of the built-in kinds: the OpenAPI definitions of Kubernetes 1.36.

`python -m tests.builtin_types` makes the file. It is read once, at the first request.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson

__all__ = ["definition", "definitions", "name_of", "source_of"]

Source = dict[str, Any]
PREFIX = "#/definitions/"


@cache
def definitions() -> dict[str, Source]:
    """All definitions by name; callers must not change them."""
    path = files("fnop.interpreters.cluster.kinds").joinpath("builtin_types.json")
    found: dict[str, Source] = orjson.loads(path.read_bytes())
    return found


@cache
def _names() -> dict[tuple[str, str, str], str]:
    return {
        (one["group"], one["version"], one["kind"]): name
        for name, schema in definitions().items()
        for one in schema.get("x-kubernetes-group-version-kind", ())
    }


def name_of(group: str, version: str, kind: str) -> str | None:
    """The name of a kind's definition.

    >>> name_of("", "v1", "Pod")
    'io.k8s.api.core.v1.Pod'
    """
    return _names().get((group, version, kind))


def source_of(group: str, version: str, kind: str) -> Source | None:
    """The OpenAPI schema of a built-in kind.

    It refers to other schemas as `#/definitions/NAME`.
    """
    name = name_of(group, version, kind)
    return None if name is None else definition(name)


def definition(name: str) -> Source:
    """The OpenAPI schema of that name, with or without the path before it."""
    return definitions()[name.removeprefix(PREFIX)]
