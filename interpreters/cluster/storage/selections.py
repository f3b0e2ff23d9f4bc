"""Find objects by their labels, and objects with selectors by the labels they want.

A controller looks for the pods that its selector matches, and a pod for the services
that select it. To test all objects of a namespace takes time proportional to their
number, at each of their writes. So they are found by one label, and only these are
tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from immutables import Map

from fnop.interpreters.cluster.values.objects import Key, Object, Resource

__all__ = ["Selections", "labelled", "reselected", "selecting", "selector_of"]

# Resource, namespace, and a label, or a label that a selector wants -> keys of objects.
Selections: TypeAlias = Map[tuple[Resource, str, str], Map[Key, None]]

# All kinds that controllers find by a selector.
_LABELLED: Resource = ("", "pods")
_SERVICES: Resource = ("", "services")
_SELECTING: frozenset[Resource] = frozenset(
    {
        _SERVICES,
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("policy", "poddisruptionbudgets"),
    }
)
# The key of a selector that does not name a label with its value.
_ANY = ">"


def selector_of(resource: Resource, obj: Object) -> Any:
    """The selector of an object, as a `metav1.LabelSelector`; None selects nothing.

    >>> selector_of(("", "services"), {"spec": {"selector": {"app": "web"}}})
    {'matchLabels': {'app': 'web'}}
    """
    selector = (obj.get("spec") or {}).get("selector")
    if resource == _SERVICES:
        return {"matchLabels": selector} if selector else None
    return selector


def _label(key: str, value: object) -> str:
    return f"{key}={value}"


def _wanted_label(selector: Any) -> str | None:
    """One label that a selector wants; None if the selector matches nothing."""
    if not isinstance(selector, Mapping):
        return None
    pairs = selector.get("matchLabels")
    return _ANY + _label(*min(pairs.items())) if pairs else _ANY


def _places(resource: Resource, obj: Object | None) -> set[str]:
    found: set[str] = set()
    if obj is None:
        return found
    if resource == _LABELLED:
        labels = obj["metadata"].get("labels") or {}
        found.update(_label(*each) for each in labels.items())
    if resource in _SELECTING:
        wanted = _wanted_label(selector_of(resource, obj))
        if wanted is not None:
            found.add(wanted)
    return found


def reselected(
    selections: Selections,
    resource: Resource,
    key: Key,
    old: Object | None,
    new: Object | None,
) -> Selections:
    """The index of objects by labels, after one of them was written."""
    if resource != _LABELLED and resource not in _SELECTING:
        return selections
    before, after = _places(resource, old), _places(resource, new)
    if before == after:
        return selections
    for each in sorted(after - before):
        place = resource, key[0], each
        there = selections.get(place, Map[Key, None]())
        selections = selections.set(place, there.set(key, None))
    for each in sorted(before - after):
        place = resource, key[0], each
        rest = selections[place].delete(key)
        selections = selections.set(place, rest) if rest else selections.delete(place)
    return selections


def labelled(
    selections: Selections, resource: Resource, namespace: str, selector: Any
) -> list[Key] | None:
    """The keys of all objects that a selector may match, by name; None for any.

    Some of them it may not match.
    """
    wanted = _wanted_label(selector)
    if wanted is None:
        return []
    if wanted == _ANY or resource != _LABELLED:
        return None
    return sorted(selections.get((resource, namespace, wanted[len(_ANY) :]), ()))


def selecting(
    selections: Selections,
    resource: Resource,
    namespace: str,
    labels: Mapping[str, str],
) -> Iterator[Key]:
    """The keys of the objects that may select an object with such labels, by name."""
    wanted = (_ANY, *(_ANY + _label(*each) for each in labels.items()))
    found = (selections.get((resource, namespace, each), ()) for each in wanted)
    yield from sorted(key for keys in found for key in keys)
