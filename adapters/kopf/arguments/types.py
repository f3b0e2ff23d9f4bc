"""The types that Kopf exports for annotations, and its enumerations."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NewType, TypeAlias, TypedDict

from fnop.core.values import diff as diffs
from fnop.effects.values import thaw_json

__all__ = [
    "Annotations",
    "BodyEssence",
    "Diff",
    "DiffItem",
    "FieldPath",
    "FieldSpec",
    "HandlerId",
    "Headers",
    "Labels",
    "Logger",
    "ObjectReference",
    "Operation",
    "OwnerReference",
    "RawBody",
    "RawEvent",
    "RawEventType",
    "SSLPeer",
    "UserInfo",
]

Annotations: TypeAlias = Mapping[str, str]
Labels: TypeAlias = Mapping[str, str]
FieldPath: TypeAlias = tuple[str, ...]
FieldSpec: TypeAlias = str | tuple[str, ...] | list[str] | None
HandlerId = NewType("HandlerId", str)
Headers: TypeAlias = dict[str, str]
SSLPeer: TypeAlias = dict[str, Any]
Logger: TypeAlias = logging.Logger | logging.LoggerAdapter[Any]
Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
RawEventType: TypeAlias = Literal[None, "ADDED", "MODIFIED", "DELETED"]


class RawMeta(TypedDict, total=False):
    """The `metadata` of an object as the API server sends it."""

    uid: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: list[str]
    resourceVersion: str
    deletionTimestamp: str
    creationTimestamp: str
    selfLink: str


class RawBody(TypedDict, total=False):
    """An object as the API server sends it."""

    apiVersion: str
    kind: str
    metadata: RawMeta
    spec: Mapping[str, Any]
    status: Mapping[str, Any]


class RawEvent(TypedDict):
    """A watch event; the type of a listed object is None."""

    type: RawEventType
    object: RawBody


class BodyEssence(TypedDict, total=False):
    """The parts of an object whose changes are updates."""

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]


class ObjectReference(TypedDict, total=False):
    """A reference to an object (Kubernetes: core/v1 ObjectReference)."""

    apiVersion: str
    kind: str
    namespace: str | None
    name: str
    uid: str


class OwnerReference(TypedDict, total=False):
    """A reference to an owner (Kubernetes: metav1.OwnerReference)."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool
    blockOwnerDeletion: bool


class UserInfo(TypedDict, total=False):
    """The user whose request an admission handler reviews."""

    username: str
    uid: str
    groups: list[str]
    extra: Mapping[str, list[str]]


class DiffItem(diffs.DiffItem):
    """One difference. It looks like a tuple of its parts, and may equal a list of them.

    >>> DiffItem("add", ("spec",), None, 1)
    ('add', ('spec',), None, 1)
    """

    __slots__ = ()
    __hash__ = diffs.DiffItem.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return repr(tuple(self))


# In Kopf's order, the additions of a mapping precede all else, and its removals follow.
_RANKS: Mapping[str, int] = {diffs.DiffOperation.ADD: 0, diffs.DiffOperation.REMOVE: 1}
_LAST = len(_RANKS)


def _place_of(item: DiffItem) -> list[tuple[int, str]]:
    """The place of a difference among others in Kopf's order."""
    *above, own = item.field or ("",)
    return [*((_LAST, key) for key in above), (_RANKS.get(item.op, _LAST), own)]


class Diff(tuple[DiffItem, ...], Sequence[DiffItem]):
    """All differences of an object.

    >>> Diff([("add", ("spec", "size"), None, 1)])[0].op
    'add'
    """

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __new__(cls, items: Iterable[Iterable[Any]] = ()) -> Diff:
        """Make a difference of its items, or of tuples with their fields."""
        found = (DiffItem(*each) for each in items)
        plain = (
            each._replace(old=thaw_json(each.old), new=thaw_json(each.new))
            for each in found
        )
        return super().__new__(cls, plain)

    @classmethod
    def of(cls, items: Iterable[Iterable[Any]]) -> Diff:
        """Make a difference in Kopf's order; keys of one mapping are sorted.

        >>> was_changed, was_added = ("change", ("a",), 1, 2), ("add", ("b",), None, 1)
        >>> [str(item.op) for item in Diff.of([was_changed, was_added])]
        ['add', 'change']
        """
        found: list[DiffItem] = [*cls(items)]
        found.sort(key=_place_of)
        return cls(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other
