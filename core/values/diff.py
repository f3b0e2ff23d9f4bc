"""The differences between two JSON values, in a stable order.

Absent and None are the same. Lists are compared as a whole. bool is distinct from int.
A new or removed subtree is one item, not one per leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from fnop.effects.regexes import regex
from fnop.effects.values import same_json

__all__ = [
    "Diff",
    "DiffItem",
    "DiffOperation",
    "diff",
    "parse_field",
    "path_at",
    "pointer",
    "reduce",
    "resolve",
]

Path = tuple[str, ...]


class DiffOperation(StrEnum):
    """The operations of a difference; each equals its text, and is shown as it.

    >>> DiffOperation.ADD == "add", DiffOperation.ADD
    (True, 'add')
    """

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"

    def __repr__(self) -> str:
        return repr(self.value)


class DiffItem(NamedTuple):
    """One difference: its operation, its field, and the values before and after.

    `operation` is "add", "change" or "remove", `field` is a path of keys. `old` and
    `new` are JSON values, None if absent.

    >>> diff({"size": 1}, {"size": 2})[0].field
    ('size',)
    """

    operation: str
    field: Path
    old: Any
    new: Any

    @property
    def op(self) -> str:
        return self.operation


Diff = tuple[DiffItem, ...]
"""The type of the argument `diff`: all differences, in the order of their fields.

For example:

    def updated(diff: fnop.Diff, **_: Any) -> None:
        print([item.field for item in diff])
"""


def diff(old: Any, new: Any, path: Path = ()) -> Diff:
    """The differences from `old` to `new`, keys in sorted order.

    >>> diff({"a": 1, "b": None}, {"a": True})
    (DiffItem(operation='change', field=('a',), old=1, new=True),)
    >>> diff(None, {"a": 1})
    (DiffItem(operation='add', field=(), old=None, new={'a': 1}),)
    """
    return tuple(_diff_items(old, new, path))


def _diff_items(old: Any, new: Any, path: Path) -> Iterator[DiffItem]:
    if old is None and new is None:
        return
    if old is None:
        yield DiffItem("add", path, None, new)
    elif new is None:
        yield DiffItem("remove", path, old, None)
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _diff_items(old.get(key), new.get(key), (*path, key))
    elif not same_json(old, new):
        yield DiffItem("change", path, old, new)


def reduce(items: Diff, path: Path) -> Diff:
    """The differences of one field, with paths relative to it.

    >>> reduce(diff({"a": {"b": 1}}, None), ("a", "b"))
    (DiffItem(operation='remove', field=(), old=1, new=None),)
    """
    return tuple(item for each in items for item in _reduce_item(each, path))


def _reduce_item(item: DiffItem, path: Path) -> Diff:
    depth = len(item.field)
    if item.field[: len(path)] == path:
        return (item._replace(field=item.field[len(path) :]),)
    if path[:depth] == item.field:
        below = path[depth:]
        return diff(resolve(item.old, below), resolve(item.new, below))
    return ()


def resolve(value: Any, path: Path) -> Any:
    """The value at a path; None when it, or a parent, is absent.

    >>> resolve({"a": {"b": 1}}, ("a", "b"))
    1
    """
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def parse_field(field: Any) -> Path:
    """A field path from its dotted form, or from a list of keys.

    >>> parse_field("spec.size"), parse_field(["metadata", "labels", "a.b/c"])
    (('spec', 'size'), ('metadata', 'labels', 'a.b/c'))
    """
    if not field:
        return ()
    if isinstance(field, str):
        _check_dotted(field)
    path = tuple(field.split(".")) if isinstance(field, str) else tuple(field)
    is_path = all(isinstance(key, str) and key for key in path)
    if not is_path or not _FIRST.fullmatch(path[0]):
        raise ValueError(
            f"field={field!r} is not a path such as 'spec.size' or a list of keys"
        )
    return path


# The name of a field at the top of an object, such as `spec`.
_FIRST = regex(r"[A-Za-z_][A-Za-z0-9_-]*")


def _check_dotted(field: str) -> None:
    """Raise `ValueError` for a path in another notation, which no object has."""
    if "/" in field.partition(".")[0]:  # the keys of labels may have one
        meant = path_at(f"/{field.removeprefix('/')}")
        plain = ".".join(meant) if not any("." in key for key in meant) else [*meant]
        raise ValueError(f"field={field!r} is a JSON pointer; write field={plain!r}")
    if "[" in field:
        whole = field.partition("[")[0]
        raise ValueError(
            f"field={field!r} is in a list, whose items have no path; write "
            f"field={whole!r}, and look for the item in it"
        )


def pointer(path: Path) -> str:
    """The JSON pointer of a path (RFC 6901).

    >>> pointer(("metadata", "labels", "a/b"))
    '/metadata/labels/a~1b'
    """
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)


def path_at(pointer: str) -> Path:
    """The path that a JSON pointer names.

    >>> path_at("/metadata/labels/a~1b")
    ('metadata', 'labels', 'a/b')
    """
    keys = pointer.split("/")[1:]
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in keys)
