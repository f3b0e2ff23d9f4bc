"""Index entries that belong to an object, observed like a field of it.

A handler with `requeue_on=` is called again when these entries change. Their path is
`("@index", index, keys)`: the names of the index, and of another index that maps an
object to the keys of its entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.values.body import Body, Key
from fnop.core.values.diff import Path

__all__ = ["ENTRIES", "entries_at", "is_known", "is_of_entries", "key_name"]

# No object has a field with this name.
ENTRIES = "@index"


def is_of_entries(path: Path) -> bool:
    """Whether a path names entries of an index instead of a field."""
    return path[:1] == (ENTRIES,)


def is_known(path: Path, indices: Mapping[str, Any]) -> bool:
    """Whether entries can be looked up: the index has all objects.

    An object's keys are known with the object itself, whatever other objects exist.
    """
    return all(name in indices for name in path[1:])


def entries_at(
    path: Path, body: Body, indices: Mapping[str, Any], resource: str
) -> dict[str, list[Any]] | None:
    """The values of an index that belong to an object, by key; None without any."""
    _, index, keys = path
    found, named = indices[index], indices[keys]
    of_object = named.keys_of(Key(resource, body.namespace or "", body.name))
    values = {key_name(key): [*found.get(key, ())] for key in of_object}
    return {name: each for name, each in values.items() if each} or None


def key_name(key: Any) -> str:
    """The text of a key, the same in each process: sets are unordered.

    >>> key_name(("a", 1)), key_name(frozenset("ab"))
    ("('a', 1)", '{a, b}')
    """
    if isinstance(key, frozenset):
        return f"{{{', '.join(sorted(map(str, key)))}}}"
    return repr(key)
