"""Requests that are for one version, or one object, alone."""

from __future__ import annotations

from typing import Any

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
from fnop.effects import (
    Apply,
    Effect,
    Patch,
    Target,
)

__all__ = ["bound", "is_in", "needs_guard", "uid_meant"]


def needs_guard(effect: Effect) -> bool:
    """Whether a patch has to be for one version of the object.

    One that is applied twice does more than one applied once; or nothing else sees to
    it that the object is the one that is meant.
    """
    if not isinstance(effect, Patch):
        return False
    if effect.json:
        return not is_idempotent(effect.json)
    return effect.subresource is not None and uid_meant(effect) is not None


def uid_meant(effect: Effect) -> str | None:
    """The uid of the only object that a change is for, where it says one.

    >>> uid_meant(Patch(Target("pods", "p", uid="u-1"), {"spec": {}}))
    'u-1'
    """
    match effect:
        case Patch(target=Target(uid=uid)):
            return uid
        case Apply(manifest=manifest):
            return manifest.get("metadata", {}).get("uid") or None
        case _:
            return None


def bound(patch: Patch, version: Body | None) -> Patch:
    """The patch as it is sent: for one version of the object, or for its uid, alone."""
    if version is not None:
        return _guarded(patch, version)
    uid = uid_meant(patch)
    if uid is None:
        return patch
    if patch.json:
        test = {"op": "test", "path": "/metadata/uid", "value": uid}
        return Patch(patch.target, None, (test, *patch.json), patch.subresource)
    return _with_metadata(patch, "uid", uid)


def _guarded(patch: Patch, version: Body) -> Patch:
    """A patch that is for one version of the object alone.

    The API server answers 409 where a patch leaves another resourceVersion in the
    object than it has (API concepts: resource versions; optimistic concurrency).
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
    """A merge patch that says this of the object's metadata, too."""
    metadata = patch.merge.get("metadata", {})
    if not isinstance(metadata, dict):
        return patch  # which the API server refuses
    merge = {**patch.merge, "metadata": {**metadata, name: value}}
    return Patch(patch.target, merge, (), patch.subresource)


def is_in(patch: Patch, guard: Body | None, found: dict[str, Any]) -> bool:
    """Whether the object already shows what a patch asks for."""
    if guard is None:
        return not effective(patch.merge or {}, found) and is_done(patch.json, found)
    if Body(found).version == guard.version:
        return False
    try:
        made = operated(patch.json, applied(patch.merge or {}, guard.data))
        return shows(guard.data, made, found)
    except OperationFailed:
        return False
