"""The patches of mutating webhooks, and the errors of patches that do not apply."""

from __future__ import annotations

from typing import Any

import jsonpatch
import orjson

from fnop.interpreters.cluster.apply.patch import UNAPPLICABLE, one_by_one
from fnop.interpreters.cluster.values.golang import go_name
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import internal, quoted

__all__ = ["patched_by"]

OPERATIONS = ("add", "copy", "move", "remove", "replace", "test")


def patched_by(webhook: str, patch: bytes, obj: Object | None) -> Any:
    """The JSON value after a patch; None if the patch has no operations.

    Raises `Refusal` with 500: a patch that does not apply is an error of the webhook,
    which no failure policy ignores.
    """
    operations = _decode_patch(patch)
    if not operations:
        return None
    if obj is None:
        raise internal(
            f"admission webhook {quoted(webhook)} attempted to modify the object, "
            "which is not supported for this operation"
        )
    result: Any = orjson.loads(orjson.dumps(obj))
    for operation in operations:
        if problem := _operation_problem(operation):
            raise internal(problem)
        try:
            result = one_by_one(result, [_with_value(operation)])
        except UNAPPLICABLE:
            raise internal(_failure_message(operation, result)) from None
    return result


def _decode_patch(patch: bytes) -> list[dict[str, Any]]:
    try:
        found = orjson.loads(patch)
    except orjson.JSONDecodeError as error:
        raise internal(f"invalid JSON patch: {error}") from None
    if found is None:
        return []
    wrong = found if not isinstance(found, list) else None
    where = "jsonpatch.Patch"
    if wrong is None:
        wrong = next((each for each in found if not isinstance(each, dict)), None)
        where = "jsonpatch.Operation"
    if wrong is not None:
        raise internal(
            f"json: cannot unmarshal {go_name(wrong)} into Go value of type {where}"
        )
    return list(found)


def _operation_problem(operation: dict[str, Any]) -> str:
    op = operation.get("op")
    if op not in OPERATIONS:
        return f"Unexpected kind: {op or 'unknown'}"
    if not isinstance(operation.get("path"), str):
        return f"{op} operation failed to decode path: missing value"
    if op in ("copy", "move") and not isinstance(operation.get("from"), str):
        return f"{op} operation failed to decode from: missing value"
    return ""


def _with_value(operation: dict[str, Any]) -> dict[str, Any]:
    """The operation; if it has no value, it gets the null that Go reads."""
    return {"value": None, **operation}


def _failure_message(operation: dict[str, Any], obj: Any) -> str:
    """The words of evanphx/json-patch for an operation that does not apply."""
    op, path = operation["op"], operation["path"]
    is_from = op in ("copy", "move")
    if op == "test":
        return f"testing value {path} failed: test failed"
    try:
        source = operation["from"] if is_from else path
        parent, key = jsonpatch.JsonPointer(source).to_last(obj)
    except UNAPPLICABLE:
        parent, key = None, None
    if parent is None or key is None:
        where = f"from path: {source}" if is_from else f'path: "{path}"'
        return f"{op} operation does not apply: doc is missing {where}: missing value"
    if op in ("move", "remove"):
        place = key if is_from else path
        why = f"Unable to remove nonexistent key: {key}: missing value"
        return f"error in {op} for path: '{place}': {why}"
    return f"{op} operation does not apply: doc is missing key: {source}: missing value"
