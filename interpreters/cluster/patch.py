"""The patch formats: JSON merge patch, JSON patch, strategic merge patch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.status import (
    bad_request,
    unsupported_media_type,
)
from fnop.interpreters.protocol import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    ApiRequest,
)

__all__ = ["merge_patched", "patched"]

Patcher = Callable[[dict[str, Any]], Any]


def patched(kind: Kind, request: ApiRequest) -> Patcher:
    """The function that applies a request's patch to an object of the kind."""
    body = request.body
    match request.content_type.partition(";")[0].strip():
        case "application/merge-patch+json":
            if not isinstance(body, dict):
                raise bad_request(
                    "error decoding patch: json: cannot unmarshal into Go value of "
                    "type map[string]interface {}"
                )
            return lambda obj: merge_patched(obj, body)
        case _:
            raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))


def merge_patched(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396); shares what it leaves alone.

    >>> merge_patched({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merge_patched(result.get(name), value)
        else:
            result[name] = value
    return result
