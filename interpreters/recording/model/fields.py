"""Fields that differ between two versions of an object, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fnop.core.values.diff import Diff, DiffItem, diff
from fnop.core.values.paths import path_text

__all__ = ["brief", "changes_of", "fields_text", "listed"]

_SHOWN_MAX = 8
# These fields change with each write, or as its consequence.
_ALWAYS = frozenset(
    ("metadata", each) for each in ("managedFields", "resourceVersion", "generation")
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_WORDS = {"add": " added", "remove": " removed", "change": ""}


def changes_of(old: Any, new: Any) -> Diff:
    """The fields that differ in two versions, without those that always differ.

    New metadata are listed by their names.

    >>> new = {"metadata": {"labels": {"a": "1"}, "resourceVersion": "7"}}
    >>> [each.field for each in changes_of({}, new)]
    [('metadata', 'labels', 'a')]
    """
    found = (leaf for each in diff(old, new) for leaf in _labels_apart(each))
    return tuple(each for each in found if not _is_aside(each))


def _labels_apart(item: DiffItem) -> Iterator[DiffItem]:
    """Each label and each annotation of new or removed metadata."""
    if item.field[:1] != ("metadata",) or len(item.field) > 2:
        yield item
        return
    values = item.old, item.new
    if not any(isinstance(each, dict) and each for each in values):
        yield item
        return
    old, new = (each if isinstance(each, dict) else {} for each in values)
    for each in diff(old, new, item.field):
        yield from _labels_apart(each)


def _is_aside(item: DiffItem) -> bool:
    return item.field[:2] in _ALWAYS or item.field[-1:] == (_LAST_APPLIED,)


def fields_text(items: Iterable[DiffItem]) -> str:
    """The fields of a diff, as `--why` takes them.

    >>> old, new = {"spec": {"a": 1}}, {"spec": {"b": 1}, "status": {}}
    >>> fields_text(changes_of(old, new))
    'spec.a removed, spec.b added, status added'
    """
    return listed(
        (path_text(each.field) or "all of it") + _WORDS[each.operation]
        for each in items
    )


def listed(words: Iterable[str]) -> str:
    """The first of some words, and the number of further ones.

    >>> listed(map(str, range(11)))
    '0, 1, 2, 3, 4, 5, 6, 7 and 3 more'
    """
    found = [*words]
    more = len(found) - _SHOWN_MAX
    text = ", ".join(found[:_SHOWN_MAX])
    return f"{text} and {more} more" if more > 0 else text


_TEXT_LENGTH_MAX = 300


def brief(text: Any) -> str:
    """A text from someone else, on one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= _TEXT_LENGTH_MAX else f"{line[:_TEXT_LENGTH_MAX]}..."
