"""The patch formats: JSON merge patch, JSON patch, strategic merge patch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import jsonpatch
import orjson

from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.values.golang import go_name, go_text
from fnop.interpreters.cluster.values.status import (
    Refusal,
    bad_request,
    failure,
    internal,
    unsupported_media_type,
)
from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiRequest,
)

__all__ = [
    "UNAPPLICABLE",
    "merge_patched",
    "one_by_one",
    "patched",
    "strategically_merged",
]

Patcher = Callable[[dict[str, Any]], Any]


def patched(kind: Kind, request: ApiRequest) -> Patcher:
    """The function that applies a request's patch to an object of the kind."""
    match request.content_type.partition(";")[0].strip():
        case "application/merge-patch+json":
            return _decode_when_applied(_merge_patcher, request.body)
        case "application/json-patch+json":
            return _decode_when_applied(_json_patcher, request.body)
        case "application/strategic-merge-patch+json" if not kind.custom:
            return _decode_when_applied(_strategic_patcher, request.body)
        case "application/apply-patch+yaml":
            raise failure(
                415,
                "UnsupportedMediaType",
                "server-side apply is not supported by this simulated cluster yet",
            )
        case _:
            # Custom resources have no merge keys, so they take no strategic patch.
            accepted = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
            raise unsupported_media_type(
                accepted
                if kind.custom
                else (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
            )


def _decode_when_applied(how: Callable[[Any], Patcher], body: Any) -> Patcher:
    """Decode a patch only when it is applied to an object."""
    return lambda obj: how(body)(obj)


def _undecodable_patch(
    body: Any, wanted: str, where: str = "error decoding patch: "
) -> Refusal:
    return bad_request(
        f"{where}json: cannot unmarshal {go_name(body)} into Go value of type {wanted}"
    )


def _merge_patcher(body: Any) -> Patcher:
    if not isinstance(body, dict):
        raise _undecodable_patch(body, "map[string]interface {}")
    return lambda obj: merge_patched(obj, body)


def _strategic_patcher(body: Any) -> Patcher:
    if not isinstance(body, dict):
        raise _undecodable_patch(body, "map[string]interface {}", "")
    return lambda obj: strategically_merged(obj, body)


# ---------------------------------------------------------------- JSON patch

OPERATIONS = frozenset(("add", "remove", "replace", "move", "copy", "test"))
# A patch with more operations is refused: maxJSONPatchOperations.
MOST_OPERATIONS = 10_000
# The total size of the values that a patch may copy, in bytes of JSON:
# JSONPatchMaxCopyBytes.
MOST_COPIED = 3 * 1024 * 1024


def _json_patcher(body: Any) -> Patcher:
    if not isinstance(body, list):
        raise _undecodable_patch(body, "[]handlers.jsonPatchOp")
    for operation in body:
        if not isinstance(operation, dict):
            raise _undecodable_patch(operation, "handlers.jsonPatchOp")
        if wrong := unreadable(operation):
            shown = orjson.dumps(operation, option=orjson.OPT_SORT_KEYS).decode()
            raise bad_request(f"invalid operation {shown}: {wrong}")
    if len(body) > MOST_OPERATIONS:
        raise failure(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch "
            f"is {MOST_OPERATIONS}, got {len(body)}",
        )
    return lambda obj: _apply_operations(obj, body)


def unreadable(operation: dict[str, Any]) -> str:
    """The member that an operation lacks (jsonpatch.validateOperation), or "".

    >>> unreadable({"op": "add", "path": "/a"})
    "failed to decode 'value': operation, missing value field: missing value"
    """
    match operation.get("op"):
        case "add" | "replace" if "value" not in operation:
            wrong = "'value': operation, missing value field"
        case "move" | "copy" if "from" not in operation:
            wrong = "'from': operation, missing from field"
        case op if not isinstance(op, str) or op not in OPERATIONS:
            return "unsupported operation"
        case _ if "path" not in operation:
            wrong = "'path': operation missing path field"
        case _:
            return ""
    return f"failed to decode {wrong}: missing value"


def _apply_operations(obj: dict[str, Any], operations: list[dict[str, Any]]) -> Any:
    try:
        # The library changes its input, so it gets a copy by way of JSON, which is
        # several times faster than the library's own deep copy.
        copy = orjson.loads(orjson.dumps(obj))
        if any(map(_is_looked_at, operations)):
            return one_by_one(copy, operations)
        return jsonpatch.JsonPatch(operations).apply(copy, in_place=True)
    except UNAPPLICABLE:
        raise failure(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
            {},
        ) from None


def _size_in_go(value: Any) -> int:
    r"""The bytes of a value as Go encodes it: `<`, `>` and `&` as `\u003c` and so on.

    >>> _size_in_go({"a": "<"})
    14
    """
    text = orjson.dumps(value)
    return len(text) + 5 * sum(map(text.count, (b"<", b">", b"&")))


class _TooMuchCopied(Exception):
    """The values that a patch copies are larger than `MOST_COPIED` in total."""


# A test that fails, a path that does not exist, a malformed operation.
UNAPPLICABLE = (
    jsonpatch.JsonPatchException,
    jsonpatch.JsonPointerException,
    TypeError,
    _TooMuchCopied,
)


def _is_looked_at(operation: dict[str, Any]) -> bool:
    return operation["op"] == "copy" or _tests_for_null(operation)


def _tests_for_null(operation: dict[str, Any]) -> bool:
    return operation["op"] == "test" and operation.get("value") is None


def one_by_one(obj: Any, operations: list[dict[str, Any]]) -> Any:
    """Apply a JSON patch as the server's library does when ours differs.

    It reads null for a missing member. It limits the copied amount, because an object
    that is copied into itself doubles each time.
    """
    copied = 0
    for operation in operations:
        if _tests_for_null(operation):
            parent, last = jsonpatch.JsonPointer(operation["path"]).to_last(obj)
            if isinstance(parent, dict) and last not in parent:
                continue
        elif operation["op"] == "copy":
            source = jsonpatch.JsonPointer(operation["from"]).resolve(obj)
            copied += _size_in_go(source)
            if copied > MOST_COPIED:
                raise _TooMuchCopied
        obj = jsonpatch.JsonPatch([operation]).apply(obj, in_place=True)
    return obj


# ---------------------------------------------------------------- merge patch


def merge_patched(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396); unchanged parts are shared.

    >>> merge_patched({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    >>> live = {"a": {"b": 1}}
    >>> merge_patched(live, {"a": {"b": 1}}) is live
    True

    As in the library of Kubernetes, objects in lists lose their nulls, too. Lists that
    replace an object are an exception.

    >>> merge_patched({"b": {}}, {"a": [None, {"c": None}], "b": [{"c": None}]})
    {'b': [{'c': None}], 'a': [None, {}]}
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    differs = not isinstance(target, dict)
    for name, value in patch.items():
        before = result.get(name)
        if value is None:
            differs = differs or name in result
            result.pop(name, None)
            continue
        if isinstance(value, dict):
            value = merge_patched(before, value)
        elif isinstance(value, list) and not isinstance(before, dict):
            value = without_nulls(value)
        elif value == before and type(value) is type(before) in EXACT:
            continue
        differs = differs or value is not before
        result[name] = value
    return result if differs else target


# The types whose equal values are also written alike.
EXACT = frozenset((str, int, bool))


def without_nulls(items: list[Any]) -> list[Any]:
    """A list whose objects have no nulls, at any depth; its own nulls stay."""
    return [
        merge_patched({}, item)
        if isinstance(item, dict)
        else without_nulls(item)
        if isinstance(item, list)
        else item
        for item in items
    ]


# ---------------------------------------------------------- strategic merge

# The field by which the items of a list are matched; other lists are replaced.
# (patchMergeKey in the built-in types; a name has the same key everywhere.)
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
# Ports of containers are matched by containerPort, ports of services by port.
PORT_KEYS = ("containerPort", "port")
# Lists of plain values that are united.
SETS = frozenset(("finalizers",))


DELETE_FROM = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"


def strategically_merged(target: Any, patch: Any) -> Any:
    """Apply a strategic merge patch: maps merge, known lists merge by key.

    >>> strategically_merged(
    ...     {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
    ...     {"containers": [{"name": "a", "image": "2"}]})
    {'containers': [{'name': 'a', 'image': '2'}, {'name': 'b'}]}

    A value without a counterpart is taken unchanged, including directives.

    >>> strategically_merged({}, {"a": {"$patch": "delete", "b": None}})
    {'a': {'$patch': 'delete'}}
    """
    if not isinstance(patch, dict):
        return patch
    match patch.get("$patch"):
        case None:
            pass
        case "delete":
            return {}
        case "replace":
            return {name: patch[name] for name in patch if name != "$patch"}
        case _:
            raise _unknown_directive(patch)
    old = target if isinstance(target, dict) else {}
    _check_retained(patch)
    result = dict(old)
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            result.pop(name, None)
        elif isinstance(value, list):
            order = patch.get(ORDER + name)
            result[name] = _merged_list(name, old.get(name), value, order)
        elif isinstance(value, dict) and isinstance(old.get(name), dict):
            result[name] = strategically_merged(old[name], value)
        else:
            result[name] = _item_without_match(value)
    return _apply_directives(result, old, patch)


def _item_without_match(value: Any) -> Any:
    return merge_patched({}, value) if isinstance(value, dict) else value


def _unknown_directive(patch: dict[str, Any]) -> Refusal:
    what = f"unknown patch type: {patch['$patch']} in map: {go_text(patch)}"
    return internal(what, bare=True)


def _check_retained(patch: dict[str, Any]) -> None:
    """Refuse a patch that sets a field outside its `$retainKeys`."""
    if "$retainKeys" not in patch:
        return
    kept = patch["$retainKeys"]
    given = [k for k, v in patch.items() if v is not None and not k.startswith("$")]
    if not isinstance(kept, list) or not _marks(kept, "") >= {*given}:
        raise bad_request("invalid patch format of retainKeys")


def _apply_directives(
    result: dict[str, Any], old: dict[str, Any], patch: dict[str, Any]
) -> dict[str, Any]:
    """Apply the directives of a strategic patch to `result`, a fresh dict."""
    for name, value in patch.items():
        if name.startswith(ORDER):
            _check_type(value, list)
        if not isinstance(value, list):
            continue
        field = name.partition("/")[2]
        if name.startswith(DELETE_FROM) and isinstance(result.get(field), list):
            gone = _marks(value, "")
            result[field] = [x for x in result[field] if _mark(x, "") not in gone]
        elif name.startswith(ORDER) and field not in patch and field in old:
            result[field] = _merged_list(field, old[field], [], value)
    if "$retainKeys" in patch:
        retained = _marks(patch["$retainKeys"], "")
        return {name: value for name, value in result.items() if name in retained}
    return result


def _merged_list(name: str, target: Any, patch: list[Any], order: Any) -> list[Any]:
    if not isinstance(target, list):
        return without_nulls(patch)
    key = "" if name in SETS else _merge_key(name, [*patch, *target])
    if _is_atomic(name, key, [*target, *patch]):
        return patch
    values = [item for item in patch if _directive(item) != "replace"]
    _check_items(values, order, key)
    if len(values) < len(patch):
        return values
    deleted = _marks([x for x in patch if _directive(x) == "delete"], key)
    patch = [item for item in patch if not _directive(item)]
    if order is not None:
        _check_order(patch, order, key)
    old = [item for item in target if _mark(item, key) not in deleted]
    return _sort_items(_merge_items(old, patch, key), old, patch, order, key)


def _is_atomic(name: str, key: str, items: list[Any]) -> bool:
    """Whether a patch replaces a list: its items have no key to merge them by."""
    if not key:
        return name not in SETS
    return not all(isinstance(item, dict) for item in items)


def _check_items(patch: list[Any], order: Any, key: str) -> None:
    """Refuse items and an order that cannot be merged; a set has no `key`."""
    if order is not None:
        _check_type(order, list)
    if key:
        _check_keys([*patch, *(order or ())], key)
        _check_directives(patch)


def _check_keys(patch: list[Any], key: str) -> None:
    """Refuse items of a patch that lack the merge key (ErrNoMergeKey)."""
    for item in patch:
        _check_type(item, dict)
        if key not in item:
            what = f"map: {go_text(item)} does not contain declared merge key: {key}"
            raise internal(what, bare=True)


# Go's names for the types of JSON values.
GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def _check_type(value: Any, wanted: type) -> None:
    if not isinstance(value, wanted):
        found = GO_TYPES.get(type(value), "<nil>")
        what = f"expected a {GO_TYPES[wanted]}, but received a {found}"
        raise internal(what, bare=True)


def _check_directives(patch: list[Any]) -> None:
    for item in patch:
        match _directive(item):
            case None | "delete":
                pass
            case "merge":
                what = "merging lists cannot yet be specified in the patch"
                raise internal(what, bare=True)
            case _:
                raise _unknown_directive(item)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Refuse a patch whose items are not in the order of its $setElementOrder."""
    wanted = iter([_mark(item, key) for item in order])
    if not all(_mark(item, key) in wanted for item in patch):
        what = (
            f"The order in patch list:\n{go_text(patch)}\n doesn't match "
            f"$setElementOrder list:\n{go_text(order)}\n"
        )
        raise internal(what, bare=True)


def _directive(item: Any) -> Any:
    return item.get("$patch") if isinstance(item, dict) else None


def _mark(item: Any, key: str) -> str | bytes:
    """The key by which an item of a list is matched, in a hashable form.

    Comparing each item with each other item would take hours for a list of 3 MB.
    """
    found = item.get(key) if key and isinstance(item, dict) else item
    if type(found) is str:
        return found
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS)


def _marks(items: list[Any], key: str) -> set[str | bytes]:
    return {_mark(item, key) for item in items}


def _places(items: list[Any], key: str) -> dict[str | bytes, int]:
    """The place of each item; of equal items the first."""
    found: dict[str | bytes, int] = {}
    for place, item in enumerate(items):
        found.setdefault(_mark(item, key), place)
    return found


def _merge_items(old: list[Any], patch: list[Any], key: str) -> list[Any]:
    result, places = list(old), _places(old, key)
    for item in patch:
        place = places.setdefault(_mark(item, key), len(result))
        if place == len(result):
            result.append(_item_without_match(item))
        elif key:
            result[place] = strategically_merged(result[place], item)
    return result


def _sort_items(
    merged: list[Any], old: list[Any], patch: list[Any], order: Any, key: str
) -> list[Any]:
    """Sort merged items by the patch (normalizeElementOrder).

    Other items keep their place.
    """
    wanted, before = _places(order or patch, key), _places(old, key)
    marked = [(_mark(item, key), item) for item in merged]
    ours = deque(
        sorted((x for x in marked if x[0] in wanted), key=lambda x: wanted[x[0]])
    )
    others = deque(x for x in marked if x[0] not in wanted)
    result: list[Any] = []
    while ours and others:
        left, right = before.get(others[0][0]), before.get(ours[0][0])
        is_before = left is not None and right is not None and left < right
        result.append((others if is_before else ours).popleft()[1])
    return result + [item for _, item in (*ours, *others)]


def _merge_key(name: str, items: list[Any]) -> str:
    if name != "ports":
        return MERGE_KEYS.get(name, "")
    first = items[0] if items and isinstance(items[0], dict) else {}
    return next((key for key in PORT_KEYS if key in first), "")
