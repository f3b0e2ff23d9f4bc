"""Ownership between objects, as far as reconcilers need to know it.

It follows from the records of the owned kinds alone. Whenever one of these is stored,
its entry here changes, too, and its owners are due to be reconciled.
"""

from __future__ import annotations

from collections.abc import Mapping

from immutables import Map
from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.children.marks import is_unowned_child_of, unowned_bond
from fnop.core.children.owned import Owner, owners_of
from fnop.core.values.body import Body, Key
from fnop.core.values.table import Table

__all__ = ["Family"]

_NONE: Map[Key, str] = Map()


class Family(Struct, frozen=True):
    """The owned objects by the uid of their owner, with their versions.

    `owners` are the kinds that own objects, by the key of the owned kind. `unowned` are
    objects that name no owner now, though they were made for one: their bonds and
    versions.
    """

    owners: Table[str, tuple[Resource, ...]] = Table()
    children: Map[str, Map[Key, str]] = Map()
    unowned: Map[Key, tuple[str, str]] = Map()

    def owned_by(self, owner: Body) -> Mapping[Key, str]:
        """The versions of the objects that an object owns, by their keys."""
        found = self.children.get(owner.uid, _NONE)
        for key, (bond, version) in self.unowned.items():
            if is_unowned_child_of(owner, key, bond):
                found = found.set(key, version)
        return found

    def related(
        self, key: Key, was: Body | None, body: Body | None
    ) -> tuple[Family, list[Key], list[Key]]:
        """Return the family after a change of an owned object, and its owners' keys.

        The keys include previous owners. `was` is the object before, `body` as it is
        now; None if it does not exist.
        """
        before = owners_of(was) if was is not None else ()
        after = owners_of(body) if body is not None else ()
        former = [each for each in before if each not in after]
        children = self.children
        for each in former:
            rest = children.get(each.uid, _NONE)
            if key in rest:
                rest = rest.delete(key)
                kept = children.delete(each.uid)
                children = kept.set(each.uid, rest) if rest else kept
        for each in after:
            assert body is not None
            found = children.get(each.uid, _NONE)
            children = children.set(each.uid, found.set(key, body.version))
        keys = {found for each in after for found in self._keys(key, each)}
        lost = {found for each in former for found in self._keys(key, each)}
        unowned = self._unowned_after(key, None if after else body)
        return Family(self.owners, children, unowned), sorted(keys | lost), sorted(lost)

    def _unowned_after(self, key: Key, body: Body | None) -> Map[Key, tuple[str, str]]:
        """The objects without owner references, after a change of one of them."""
        bond = unowned_bond(body)
        if body is not None and bond:
            return self.unowned.set(key, (bond, body.version))
        return self.unowned.delete(key) if key in self.unowned else self.unowned

    def _keys(self, child: Key, owner: Owner) -> list[Key]:
        """The key of an owner, if its kind owns the child's kind."""
        return [
            owner.key(each)
            for each in self.owners.get(child.resource, ())
            if owner.is_of(each)
        ]
