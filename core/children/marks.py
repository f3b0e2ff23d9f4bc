"""The marks that identify a child: its handler, its owner, and its manifest.

The owner reference or annotation names a child's owner. A copy of the child has both,
too. So fnop also uses these marks:

- the label `fnop.dev/set`: `<operator>.<handler>`, digests of the two names
- the annotation `fnop.dev/applied`: `<operator>.<handler>.<bond>.<manifest>`, with the
  bond as a digest of the owner's uid and of the child's own kind, namespace and name

So a copy under another name has no bond. Neither has an object that was left for an
owner of another uid. A child that has lost the annotation is identified by the label,
if the label is in the operator's managed fields: a client that copies an object manages
the copy's labels itself. A child that names no owner now is a stray. Its owner is found
by the bond, as long as the owner lives. (The garbage collector removes references
before it releases an owner whose dependents are orphaned.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from fnop.core.children.fields import manages
from fnop.core.children.owned import OWNER_ANNOTATION, owners_of
from fnop.core.values.body import Body, Key
from fnop.effects.values import digest

__all__ = [
    "APPLIED_ANNOTATION",
    "APPLIED_PATH",
    "KEEP_ANNOTATION",
    "SET_LABEL",
    "ChildSet",
    "applied_mark",
    "is_far",
    "is_unowned_child_of",
    "outside",
    "set_of",
    "unowned_bond",
]

SET_LABEL = "fnop.dev/set"
APPLIED_ANNOTATION = "fnop.dev/applied"
# The child is released, and not deleted, when it is not desired any longer.
KEEP_ANNOTATION = "fnop.dev/keep"
APPLIED_PATH = ("metadata", "annotations", APPLIED_ANNOTATION)
_LABEL_PATH = ("metadata", "labels", SET_LABEL)


@lru_cache(1024)
def set_of(marker: str, handler: str) -> str:
    """The label of a handler's children: short, and the same at every run.

    >>> set_of("fnop.dev/default", "database")
    '52780133.87aa8ede'
    """
    return f"{digest(marker)[:8]}.{digest(handler)[:8]}"


@lru_cache(8192)
def _bond_of(owner: str, key: Key) -> str:
    """The bond between a child and the owner of this uid."""
    return digest([owner, *key])[:8]


class ChildSet(Struct, frozen=True):
    """The children that one handler of an operator makes for one owner.

    `manager` is the operator's name in managed fields, `owner` is the owner's uid, and
    `place` is the owner's namespace, if it has one.
    """

    manager: str
    label: str
    owner: str
    place: str = ""

    def mark(self, key: Key, manifest: str) -> str:
        """The annotation of a child, for the digest of the applied manifest."""
        return f"{self.label}.{_bond_of(self.owner, key)}.{manifest}"

    def made(self, key: Key, body: Body) -> bool:
        """Whether an object was made as a child of this set."""
        return applied_mark(body).startswith(self.mark(key, ""))

    def has(self, key: Key, body: Body) -> bool:
        """Whether an object that the owner owns belongs to this set."""
        if self.made(key, body):
            return True
        is_labelled = body.mapping("labels").get(SET_LABEL) == self.label
        return is_labelled and manages(body.data, self.manager, _LABEL_PATH)

    def made_by_any(self, key: Key, body: Body) -> bool:
        """Whether any handler of the operator has made an object for the owner.

        This includes handlers of an earlier release that were renamed or removed.
        """
        label, _, bond = applied_mark(body).rpartition(".")[0].rpartition(".")
        is_ours = label.partition(".")[0] == self.label.partition(".")[0]
        return is_ours and bond == _bond_of(self.owner, key)


def applied_mark(body: Body) -> str:
    """The last applied mark, as it is on the child, else ""."""
    found = body.mapping("annotations").get(APPLIED_ANNOTATION)
    return found if isinstance(found, str) else ""


def unowned_bond(body: Body | None) -> str:
    """The bond of an object that was made for an owner and names none, else ""."""
    if body is None or owners_of(body):
        return ""
    parts = applied_mark(body).split(".")
    return parts[2] if len(parts) == 4 else ""


def is_unowned_child_of(owner: Body, key: Key, bond: str) -> bool:
    """Whether this object with this bond was made for an owner, and still is its."""
    is_his = is_far(owner.namespace, key) or not owner.is_deleting
    return is_his and bond == _bond_of(owner.uid, key)


def is_far(place: str | None, key: Key) -> bool:
    """Whether an object cannot refer to an owner in this namespace."""
    return bool(place) and key.namespace != place


def outside(bodies: Mapping[Key, Body], set: ChildSet) -> dict[Key, Body]:
    """The children that only the operator deletes with their owner.

    Regardless of the handler that made them: all are deleted with their owner.
    """
    return {
        key: body
        for key, body in bodies.items()
        if (OWNER_ANNOTATION in body.mapping("annotations") or is_far(set.place, key))
        and KEEP_ANNOTATION not in body.mapping("annotations")
        and (set.has(key, body) or set.made_by_any(key, body))
    }
