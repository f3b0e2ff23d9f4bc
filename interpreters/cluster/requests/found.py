"""Updates of objects that came from another server.

A server reads stored objects by its own types. Null means absence, unknown fields are
dropped, and its defaults are filled in. So two objects are compared in that plain form.
An update without changes there does not count, and does not break a rule that a field
is immutable. Parts that an update does not change stay as they were found: neither
nulls nor legacy fields are lost, and no default of this server appears.
"""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.apply.managed import under_schema, with_entries
from fnop.interpreters.cluster.kinds.builtins import defaulted
from fnop.interpreters.cluster.kinds.conversion import served, to_storage
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.requests.body import decoded
from fnop.interpreters.cluster.storage.store import Cluster, lookup
from fnop.interpreters.cluster.values.objects import Key, Object, same
from fnop.interpreters.cluster.values.status import Refusal

__all__ = ["as_found", "plain"]


def plain(cluster: Cluster, kind: Kind, key: Key) -> Object | None:
    """The stored object as this server's types have it, or None."""
    obj = lookup(cluster, kind.resource, key)
    if obj is None or (kind.resource, key) not in cluster.found:
        return obj
    # Clients do not write these; older servers wrote them in another form.
    entries = obj["metadata"].get("managedFields", ())
    entries = under_schema(cluster.registry, kind, entries)
    own = obj
    if not kind.custom:
        try:
            own = decoded(kind, served(kind, obj))
        except Refusal:
            return obj  # this server has another type for it
        own = defaulted(kind, to_storage(kind, own))
    own = with_entries(own, entries)
    return obj if same(own, obj) else own


def as_found(new: Any, old: Any, found: Any) -> Any:
    """A new value in the form in which the old one was `found`.

    `old` is the plain form of `found`.

    >>> found = {"a": 1, "at": None, "legacy": 2}
    >>> old = {"a": 1, "default": 3}
    >>> as_found({"a": 5, "default": 3}, old, found)
    {'a': 5, 'at': None, 'legacy': 2}
    >>> as_found({"default": 4}, old, found)
    {'default': 4, 'at': None, 'legacy': 2}
    """
    if same(new, old):
        return found
    if same(old, found):
        return new
    if all(isinstance(each, dict) for each in (new, old, found)):
        return _fields_as_found(new, old, found)
    if all(isinstance(each, list) for each in (new, old, found)):
        return _items_as_found(new, old, found)
    return new


def _fields_as_found(new: Object, old: Object, found: Object) -> Object:
    result = {}
    for name, value in new.items():
        if name not in old:
            result[name] = value
        elif name in found:
            result[name] = as_found(value, old[name], found[name])
        elif not same(value, old[name]):  # else it is a default of this server
            result[name] = value
    lost = found.keys() - old.keys() - new.keys()
    return {**result, **{name: each for name, each in found.items() if name in lost}}


def _items_as_found(new: list[Any], old: list[Any], found: list[Any]) -> list[Any]:
    """The items of a list, each by the old item that is equal or has its name."""
    if len(old) != len(found):
        return new
    twins = [*zip(old, found, strict=True)]
    result = []
    for index, item in enumerate(new):
        near = next((each for each in twins if same(item, each[0])), None)
        if near is None and (name := _name_of(item)) is not None:
            near = next((each for each in twins if _name_of(each[0]) == name), None)
        elif near is None and len(new) == len(old):
            near = twins[index]
        result.append(item if near is None else as_found(item, *near))
    return result


def _name_of(item: Any) -> Any:
    """The name that identifies an item of a list, or None."""
    if not isinstance(item, dict):
        return None
    inside = item.get("metadata")
    named = inside if isinstance(inside, dict) else item
    return named.get("name")
