"""Requests that are bound to one version of an object, or to its uid."""

from __future__ import annotations

from typing import Any

from fnop.core.seam.effect_rules import uid_meant
from fnop.core.values.body import Body
from fnop.core.values.merge import (
    OperationFailed,
    applied,
    effective,
    is_done,
    is_idempotent,
    operated,
    shows,
)
from fnop.effects import Effect, Patch

__all__ = ["bound", "is_in", "needs_guard"]


def needs_guard(effect: Effect) -> bool:
    """Whether a patch must be bound to one version of the object.

    It must if a second application would change something more. It also must if nothing
    else ensures that it reaches the intended object.
    """
    if not isinstance(effect, Patch):
        return False
    if effect.json:
        return not is_idempotent(effect.json)
    return effect.subresource is not None and uid_meant(effect) is not None


def bound(patch: Patch, version: Body | None) -> Patch:
    """Return the patch as sent: bound to one version of the object, or to its uid."""
    if version is not None:
        return _bind_to_version(patch, version)
    uid = uid_meant(patch)
    if uid is None:
        return patch
    if patch.json:
        test = {"op": "test", "path": "/metadata/uid", "value": uid}
        return Patch(patch.target, None, (test, *patch.json), patch.subresource)
    return _with_metadata(patch, "uid", uid)


def _bind_to_version(patch: Patch, version: Body) -> Patch:
    """The patch, bound to one version of the object.

    The API server answers 409 if the patched object would have another resourceVersion
    than the stored object (API concepts: resource versions; optimistic concurrency).
    """
    if not patch.json:
        return _with_metadata(patch, "resourceVersion", version.version)
    step = {
        "op": "replace",
        "path": "/metadata/resourceVersion",
        "value": version.version,
    }
    return Patch(patch.target, patch.merge, (*patch.json, step), patch.subresource)


def _with_metadata(patch: Patch, name: str, value: str) -> Patch:
    """The merge patch with one more field of the object's metadata."""
    metadata = patch.merge.get("metadata", {})
    if not isinstance(metadata, dict):
        return patch  # the API server refuses it
    merge = {**patch.merge, "metadata": {**metadata, name: value}}
    return Patch(patch.target, merge, (), patch.subresource)


def is_in(patch: Patch, guard: Body | None, found: dict[str, Any]) -> bool:
    """Whether the object already has the changes of a patch."""
    if guard is None:
        return not effective(patch.merge or {}, found) and is_done(patch.json, found)
    if Body(found).version == guard.version:
        return False
    try:
        made = operated(patch.json, applied(patch.merge or {}, guard.data))
        return shows(guard.data, made, found)
    except OperationFailed:
        return False
