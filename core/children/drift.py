"""The drift of a child: the part of its manifest that an apply has to set again.

`fnop.core.children.fields` reads the managed fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fnop.core.children.fields import (
    fields_digest,
    folded,
    lost_fields,
    managers_of,
    names_in,
)
from fnop.core.children.marks import APPLIED_PATH, applied_mark
from fnop.core.children.owned import AsDesired
from fnop.core.children.planning import Keeper, Planned, manifest_for
from fnop.core.values.body import Body
from fnop.core.values.merge import applied
from fnop.effects.structs import replace

__all__ = ["Drift", "as_known", "as_now", "drift_of", "drift_of_all"]


class Drift(Struct, frozen=True):
    """The manifest to apply, and the fields that others have changed.

    `folded` are the managed fields, if an apply alone would not have its full effect.
    """

    manifest: Mapping[str, Any]
    folded: list[dict[str, Any]] | None = None
    lost: tuple[str, ...] = ()

    @property
    def lists(self) -> dict[str, Any]:
        """The lists of the manifest with lost elements, as a merge patch."""
        found: dict[str, Any] = {}
        for path in self.lost:
            value = self.value_at(path)
            if isinstance(value, list):
                for name in reversed(names_in(path)):
                    value = {name: value}
                found = applied(value, found)
        return found

    def value_at(self, path: str) -> Any:
        """The value of a lost field, or the list that contains it."""
        value: Any = self.manifest
        for name in names_in(path):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def managers(self, live: Body, keeper: Keeper) -> list[str]:
        """The other clients that manage the lost fields now."""
        found = {name for path in self.lost for name in managers_of(live.data, path)}
        return sorted(found - {keeper.manager})

    def missing_in(self, after: Mapping[str, Any], keeper: Keeper) -> list[str]:
        """The fields that an object lacks although they have just been applied."""
        return lost_fields(self.manifest, after, keeper.manager)


def drift_of_all(planned: Planned, live: Body | None, keeper: Keeper) -> Drift:
    """The drift of an object that is applied whatever its fields are."""
    manifest = manifest_for(planned, keeper)
    return Drift(manifest, _folded_fields(live, manifest, keeper))


def drift_of(
    planned: Planned, live: Body | None, known: AsDesired | None, keeper: Keeper
) -> Drift | None:
    """The drift of a child; None if nothing is to be applied.

    `known` is the child as it was last found as desired.
    """
    found = drift_of_all(planned, live, keeper)
    if live is None:
        return found
    if applied_mark(live) != planned.applied:
        is_undone = known is not None and known.applied == planned.applied
        return replace(found, lost=("metadata.annotations",) if is_undone else ())
    if found.folded is not None:
        return found
    lost = tuple(found.missing_in(live.data, keeper))
    return replace(found, lost=lost) if lost else None


def _folded_fields(
    live: Body | None, manifest: Mapping[str, Any], keeper: Keeper
) -> list[dict[str, Any]] | None:
    if live is None:
        return None
    return folded(live.data, keeper.manager, APPLIED_PATH, manifest)


def as_known(known: AsDesired, live: Body, keeper: Keeper) -> AsDesired | None:
    """The child in its present form, if others have not changed what was applied."""
    if not known.version:
        return None
    if known.version == live.version:
        return known
    if applied_mark(live) != known.applied:
        return None
    fields = fields_digest(live.data, keeper.manager)
    return replace(known, version=live.version) if fields == known.fields else None


def as_now(planned: Planned, live: Body, keeper: Keeper) -> AsDesired:
    """The child as desired, in its present form."""
    fields = fields_digest(live.data, keeper.manager)
    return AsDesired(live.version, planned.applied, fields)
