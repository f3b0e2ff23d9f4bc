"""Merge patches (RFC 7386) and JSON patches (RFC 6902) as pure functions.

Several patches are fused into one: apply all of them, then take the difference. A patch
that changes nothing disappears in this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fnop.core.values.callables import definition_of
from fnop.core.values.diff import Path, path_at, pointer
from fnop.core.values.errors import TemporaryError, described
from fnop.effects.values import canonical, freeze_written, same_json, shown, thaw_json

__all__ = [
    "OPERATION",
    "OperationFailed",
    "applied",
    "collisions",
    "difference",
    "effective",
    "is_done",
    "is_idempotent",
    "leaves",
    "operated",
    "operations",
    "shows",
    "transformed",
]


# The prefix of the text about an operation that cannot be applied.
OPERATION = "the operation "


class OperationFailed(Exception):
    """A JSON patch operation, or a function, cannot be applied to the object.

    It is `final` if trying again cannot help.
    """

    final = False


class FunctionFailed(OperationFailed):
    """An author's function has failed to change the object."""

    final = True


def applied(patch: Any, base: Any) -> Any:
    """The result of a merge patch applied to `base`; neither is changed.

    >>> applied({"a": {"b": 1, "c": None}}, {"a": {"c": 2}, "d": 3})
    {'a': {'b': 1}, 'd': 3}
    """
    if not isinstance(patch, dict):
        return patch
    found = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = applied(value, found.get(key))
    return found


def difference(base: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that turns `base` into `target`.

    >>> difference({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 4}})
    {'b': {'c': 4, 'd': None}}
    """
    found: dict[str, Any] = {}
    for key, value in target.items():
        was = base.get(key)
        if value is was or value is None:
            continue  # shared with the base; an absent member counts as none
        if isinstance(value, dict) and isinstance(was, dict):
            deeper = difference(was, value)
            if deeper:
                found[key] = deeper
        elif was is None or not same_json(value, was):
            found[key] = value
    if not base.keys() <= target.keys() or None in target.values():
        for key, value in base.items():
            if value is not None and target.get(key) is None:
                found[key] = None
    return found


def effective(patch: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a merge patch that would change `base`.

    >>> effective({"a": 1, "b": None, "c": {"d": 2}}, {"a": 1, "c": {"d": 1}})
    {'c': {'d': 2}}
    """
    return difference(base, applied(dict(patch), base))


def operated(steps: Sequence[Mapping[str, Any]], base: Any) -> Any:
    """The result of JSON patch operations applied to `base`, which is not changed.

    Raises `OperationFailed` for an operation that cannot be applied.

    >>> operated([{"op": "add", "path": "/a/-", "value": 2}], {"a": [1]})
    {'a': [1, 2]}
    """
    for step in steps:
        try:
            base = _apply_operation(step, base)
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            known = {key: step[key] for key in ("op", "from", "path") if key in step}
            text = f"{known} is not a JSON patch operation ({problem})"
            raise OperationFailed(text) from problem
        except OperationFailed as problem:
            text = f"{OPERATION}{step['op']} {step['path']} fails: {problem}"
            raise OperationFailed(text) from problem
    return base


def operations(base: Any, target: Any, path: Path = ()) -> Iterator[dict[str, Any]]:
    """The JSON patch operations that turn `base` into `target` (RFC 6902).

    Each differing key has one operation, in the order of the keys; a list is replaced
    as a whole. Values that are equal in both are not named, whichever client wrote
    them.

    >>> [*operations({"a": 1, "b/c": [1]}, {"b/c": [1, 2], "d": None})]
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'op': 'remove', 'path': '/a'},
     {'op': 'replace', 'path': '/b~1c', 'value': [1, 2]},
     {'op': 'add', 'path': '/d', 'value': None}]
    """
    if base is target:
        return  # shared, as in `applied`
    if not (isinstance(base, dict) and isinstance(target, dict)):
        if not same_json(base, target):
            yield {"op": "replace", "path": pointer(path), "value": target}
        return
    for key in sorted(base.keys() | target.keys()):
        deeper = (*path, key)
        if key not in target:
            yield {"op": "remove", "path": pointer(deeper)}
        elif key not in base:
            yield {"op": "add", "path": pointer(deeper), "value": target[key]}
        else:
            yield from operations(base[key], target[key], deeper)


def is_idempotent(steps: Sequence[Mapping[str, Any]]) -> bool:
    """Whether JSON patch operations have the same result when applied twice.

    Operations that add an item to a list, or remove one, do not.

    >>> is_idempotent([{"op": "add", "path": "/spec/a", "value": 1}])
    True
    >>> is_idempotent([{"op": "add", "path": "/spec/a/-", "value": 1}])
    False
    """
    for step in steps:
        last = str(step.get("path")).rpartition("/")[2]
        is_item = last == "-" or last.isdigit()
        if step.get("op") == "move" or (
            is_item and step.get("op") in ("add", "remove", "copy")
        ):
            return False
    return True


def is_done(steps: Sequence[Mapping[str, Any]], found: Any) -> bool:
    """Whether a value already is the result of idempotent operations.

    >>> is_done([{"op": "remove", "path": "/a"}], {"b": 1})
    True
    """
    for step in steps:
        try:
            value = _resolve_pointer(found, _parse_pointer(str(step.get("path"))))
        except OperationFailed:
            if step.get("op") != "remove":
                return False
            continue
        if step.get("op") == "test":
            continue
        if step.get("op") not in ("add", "replace"):
            return False
        if not same_json(value, step.get("value")):
            return False
    return True


def shows(base: Any, made: Any, found: Any) -> bool:
    """Whether `found` has all changes from `base` to `made`, and maybe others.

    Changes of lists are items that were added or removed.

    >>> shows({"a": [1]}, {"a": [1, 2]}, {"a": [0, 1, 2], "b": 3})
    True
    >>> shows({"a": [1]}, {"a": [1, 2]}, {"a": [1]})
    False
    """
    if same_json(base, made):
        return True
    if isinstance(made, dict) and isinstance(found, dict):
        was = base if isinstance(base, dict) else {}
        return all(
            shows(was.get(key), made.get(key), found.get(key))
            for key in was.keys() | made.keys()
        )
    if isinstance(made, list) and isinstance(found, list):
        return _shows_items(base if isinstance(base, list) else [], made, found)
    return same_json(made, found)


def _shows_items(base: list[Any], made: list[Any], found: list[Any]) -> bool:
    was, now, is_ = (Counter(map(canonical, each)) for each in (base, made, found))
    if was == now:
        return same_json(made, found)  # only the order has changed
    return all(
        is_[item] >= now[item] if now[item] > was[item] else is_[item] <= now[item]
        for item in was.keys() | now.keys()
        if was[item] != now[item]
    )


def transformed(change: Callable[[dict[str, Any]], object], base: Any) -> Any:
    """The value of a copy of `base` after a function has changed it in place.

    Raises `OperationFailed` if the function raises, or leaves a value that is not JSON.

    >>> transformed(lambda found: found["a"].append(2), {"a": [1]})
    {'a': [1, 2]}
    """
    found = thaw_json(base)
    try:
        change(found)
        return freeze_written(found, "the object")
    except OperationFailed:
        raise
    except BaseException as problem:
        name = getattr(change, "__qualname__", repr(change))
        file, line = definition_of(change)
        where = f" at {file}:{line}" if file else ""
        text = f"{name}{where} fails: {described(problem)}"
        failed = (
            OperationFailed if isinstance(problem, TemporaryError) else FunctionFailed
        )
        raise failed(text) from problem


def _apply_operation(step: Mapping[str, Any], base: Any) -> Any:
    path = _parse_pointer(step["path"])
    match step["op"]:
        case "add":
            return _change_at(base, path, step.get("value"), "add")
        case "replace":
            _resolve_pointer(base, path)
            return _change_at(base, path, step.get("value"), "replace")
        case "remove":
            _resolve_pointer(base, path)
            return _change_at(base, path, None, "remove")
        case "test":
            if not same_json(_resolve_pointer(base, path), step.get("value")):
                raise OperationFailed("another value is there")
            return base
        case "copy" | "move" as kind:
            source = _parse_pointer(step["from"])
            value = _resolve_pointer(base, source)
            if kind == "move":
                base = _change_at(base, source, None, "remove")
            return _change_at(base, path, value, "add")
        case other:
            raise OperationFailed(f"there is no JSON patch operation {shown(other)}")


def _parse_pointer(path: str) -> Path:
    if path and not path.startswith("/"):
        raise OperationFailed(f"{path!r} is not a JSON pointer; it begins with a /")
    return path_at(path)


def _resolve_pointer(base: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if isinstance(base, list):
            base = base[_parse_index(part, len(base) - 1)]
        elif isinstance(base, dict) and part in base:
            base = base[part]
        else:
            raise OperationFailed(f"there is nothing at {pointer(path)}")
    return base


def _parse_index(part: str, last: int) -> int:
    is_index = part.isdecimal() and part.isascii() and len(part) <= len(str(last))
    if not is_index or (len(part) > 1 and part[0] == "0") or int(part) > last:
        raise OperationFailed(
            f"{part!r} is not an index of a list with {last + 1} items"
        )
    return int(part)


def _change_at(base: Any, path: tuple[str, ...], value: Any, how: str) -> Any:
    """A copy of `base` with the value at one path changed; the rest is shared."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(base, list):
        return _change_list(base, part, rest, value, how)
    if not isinstance(base, dict) or (rest and part not in base):
        raise OperationFailed(f"there is nothing to change at {pointer(path)}")
    found = dict(base)
    if rest:
        found[part] = _change_at(base[part], rest, value, how)
    elif how == "remove":
        del found[part]
    else:
        found[part] = value
    return found


def _change_list(
    base: list[Any], part: str, rest: tuple[str, ...], value: Any, how: str
) -> list[Any]:
    found = list(base)
    if rest:
        index = _parse_index(part, len(base) - 1)
        found[index] = _change_at(base[index], rest, value, how)
    elif how == "add":
        found.insert(len(base) if part == "-" else _parse_index(part, len(base)), value)
    elif how == "remove":
        del found[_parse_index(part, len(base) - 1)]
    else:
        found[_parse_index(part, len(base) - 1)] = value
    return found


def leaves(merge: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """The fields that a merge patch sets; a list is one of them.

    >>> [*leaves({"spec": {"a": 1, "b": {}}, "status": None})]
    [('spec', 'a'), ('spec', 'b'), ('status',)]
    """
    for key, each in merge.items():
        if isinstance(each, Mapping) and each:
            yield from leaves(each, (*path, key))
        else:
            yield (*path, key)


def collisions(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The fields that two merge patches set to different values, as JSON pointers.

    >>> collisions({"a": {"b": 1}}, {"a": {"b": 2}})
    ['/a/b']
    """
    found: list[str] = []
    for key in sorted(one.keys() & other.keys()):
        mine, theirs = one[key], other[key]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            found += [pointer((key,)) + deeper for deeper in collisions(mine, theirs)]
        elif not same_json(mine, theirs):
            found.append(pointer((key,)))
    return found
