"""The patch formats: JSON merge patch, JSON patch, strategic merge patch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jsonpatch
import orjson

from fnop.interpreters.cluster.body import go_name
from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.status import (
    Refusal,
    bad_request,
    failure,
    unsupported_media_type,
)
from fnop.interpreters.protocol import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiRequest,
)

__all__ = ["merge_patched", "patched", "strategically_merged"]

Patcher = Callable[[dict[str, Any]], Any]


def patched(kind: Kind, request: ApiRequest) -> Patcher:
    """The function that applies a request's patch to an object of the kind."""
    match request.content_type.partition(";")[0].strip():
        case "application/merge-patch+json":
            return _merging(request.body)
        case "application/json-patch+json":
            return _operating(request.body)
        case "application/strategic-merge-patch+json" if not kind.custom:
            return _strategic(request.body)
        case "application/apply-patch+yaml":
            raise failure(
                415,
                "UnsupportedMediaType",
                "server-side apply is not supported by this simulated cluster yet",
            )
        case _:
            # Custom resources have no merge keys: no strategic patch.
            accepted = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
            raise unsupported_media_type(
                accepted
                if kind.custom
                else (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
            )


def _undecodable(body: Any, wanted: str) -> Refusal:
    return bad_request(
        f"error decoding patch: json: cannot unmarshal {go_name(body)} into Go value "
        f"of type {wanted}"
    )


def _merging(body: Any) -> Patcher:
    if not isinstance(body, dict):
        raise _undecodable(body, "map[string]interface {}")
    return lambda obj: merge_patched(obj, body)


def _strategic(body: Any) -> Patcher:
    if not isinstance(body, dict):
        raise _undecodable(body, "map[string]interface {}")
    return lambda obj: strategically_merged(obj, body)


# ---------------------------------------------------------------- JSON patch

OPERATIONS = frozenset(("add", "remove", "replace", "move", "copy", "test"))
# More operations than this are refused: maxJSONPatchOperations.
MOST_OPERATIONS = 10_000


def _operating(body: Any) -> Patcher:
    if not isinstance(body, list):
        raise _undecodable(body, "[]handlers.jsonPatchOp")
    for operation in body:
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
        if str(operation.get("op")) not in OPERATIONS:
            shown = orjson.dumps(operation).decode()
            raise bad_request(f"invalid operation {shown}: unsupported operation")
    if len(body) > MOST_OPERATIONS:
        raise failure(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch "
            f"is {MOST_OPERATIONS}, got {len(body)}",
        )
    return lambda obj: _operated(obj, body)


def _operated(obj: dict[str, Any], operations: list[dict[str, Any]]) -> Any:
    try:
        # The library changes what it is given: a copy, by way of JSON (which is
        # several times faster than its own deep copy).
        copy = orjson.loads(orjson.dumps(obj))
        return jsonpatch.JsonPatch(operations).apply(copy, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        # A test that fails, a path that is not there, a malformed operation.
        raise failure(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
            {},
        ) from None


# ---------------------------------------------------------------- merge patch


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


# ---------------------------------------------------------- strategic merge

# By which field the items of a list are matched; other lists are replaced.
# (patchMergeKey in the built-in types; a name has the same key wherever it stands.)
MERGE_KEYS: dict[str, str] = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
    "webhooks": "name",
}
# Ports of containers are matched by containerPort, those of services by port.
PORT_KEYS = ("containerPort", "port")
# Lists of plain values that are united.
SETS = frozenset(("finalizers",))


def strategically_merged(target: Any, patch: Any) -> Any:
    """Apply a strategic merge patch: maps merge, known lists merge by key.

    >>> strategically_merged(
    ...     {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
    ...     {"containers": [{"name": "a", "image": "2"}]})
    {'containers': [{'name': 'a', 'image': '2'}, {'name': 'b'}]}
    """
    if not isinstance(patch, dict):
        return patch
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace" or not isinstance(target, dict):
        return _without_directives(patch)
    result = dict(target)
    for name, value in patch.items():
        if name.startswith("$"):
            _apply_directive(result, name, value)
        elif value is None:
            result.pop(name, None)
        elif isinstance(value, list):
            result[name] = _merged_list(name, result.get(name), value)
        elif isinstance(value, dict):
            result[name] = strategically_merged(result.get(name), value)
        else:
            result[name] = value
    retained = patch.get("$retainKeys")
    if isinstance(retained, list):
        return {name: value for name, value in result.items() if name in retained}
    return result


def _without_directives(patch: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in patch.items() if not name.startswith("$")}
    return cast("dict[str, Any]", strategically_merged({}, kept))


def _apply_directive(result: dict[str, Any], name: str, value: Any) -> None:
    """`$deleteFromPrimitiveList/finalizers` and its like; `result` is fresh."""
    prefix = "$deleteFromPrimitiveList/"
    field = name.removeprefix(prefix)
    if name.startswith(prefix) and isinstance(result.get(field), list):
        result[field] = [item for item in result[field] if item not in value]


def _merged_list(name: str, target: Any, patch: list[Any]) -> list[Any]:
    old = target if isinstance(target, list) else []
    if name in SETS:
        return [*old, *(item for item in patch if item not in old)]
    key = _merge_key(name, patch)
    if not key or not all(isinstance(item, dict) for item in (*old, *patch)):
        return patch
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    deleted = [item.get(key) for item in patch if item.get("$patch") == "delete"]
    result = [item for item in old if item.get(key) not in deleted]
    for item in patch:
        if "$patch" in item:
            continue
        place = next(
            (i for i, x in enumerate(result) if x.get(key) == item.get(key)), -1
        )
        if place < 0:
            result.append(strategically_merged({}, item))
        else:
            result[place] = strategically_merged(result[place], item)
    return result


def _merge_key(name: str, patch: list[Any]) -> str:
    if name != "ports":
        return MERGE_KEYS.get(name, "")
    first = patch[0] if patch and isinstance(patch[0], dict) else {}
    return next((key for key in PORT_KEYS if key in first), "")
