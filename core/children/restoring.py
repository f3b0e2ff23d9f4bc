"""Restore the last applied manifest from the object that it made.

The managed fields list the applied fields. The annotation `fnop.dev/applied` has a
digest of the manifest, which shows whether the result is right. A recording needs it:
if an object's contents are replaced, the digest of the applied manifest must match the
replaced contents.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from fnop.core.children.fields import applied_with, owned_element
from fnop.core.children.marks import (
    APPLIED_ANNOTATION,
    APPLIED_PATH,
    KEEP_ANNOTATION,
    SET_LABEL,
)
from fnop.core.children.owned import OWNER_ANNOTATION
from fnop.effects.values import digest

__all__ = ["applied_digests", "recorded_digest", "sent_digests"]

Json = dict[str, Any]
_MARKS = (APPLIED_ANNOTATION, KEEP_ANNOTATION, OWNER_ANNOTATION)


def recorded_digest(live: Mapping[str, Any]) -> str:
    """The digest of the last applied manifest; "" without one.

    >>> notes = {"fnop.dev/applied": "52780133.87aa8ede.e0e83550.4b170ec32f01205f27a4"}
    >>> recorded_digest({"metadata": {"annotations": notes}})
    '4b170ec32f01205f27a4'
    """
    mark = _mapping_or_empty(_mapping_or_empty(live.get("metadata")).get("annotations"))
    found = mark.get(APPLIED_ANNOTATION)
    parts = found.split(".") if isinstance(found, str) else ()
    return parts[3] if len(parts) == 4 else ""


def applied_digests(live: Mapping[str, Any]) -> Sequence[str]:
    """The digests of all manifests that may have been applied, in a fixed order.

    Authors may omit the namespace, and write `stringData` for `data`. The elements of a
    list are restored in their order in the object. Quantities and times are restored in
    the form that the API server gives them.
    """
    applied = applied_with(live, APPLIED_PATH)
    return () if applied is None else _digests(live, _pick_fields(live, applied))


def sent_digests(manifest: Mapping[str, Any]) -> Sequence[str]:
    """As `applied_digests`, for a manifest that is sent to be applied."""
    return _digests(manifest, {**manifest})


def _digests(live: Mapping[str, Any], manifest: Json) -> Sequence[str]:
    meta = _mapping_or_empty(live.get("metadata"))
    annotations = _mapping_or_empty(meta.get("annotations"))
    keep = annotations.get(KEEP_ANNOTATION) == "true"
    manifest |= {name: live[name] for name in ("apiVersion", "kind") if name in live}
    manifest["metadata"] = _without_marks(manifest.get("metadata") or {}, meta)
    return [
        digest([each, keep, foreground])
        for each, foreground in product(_possible_forms(manifest, meta), (False, True))
    ]


def _without_marks(applied: Json, meta: Mapping[str, Any]) -> Json:
    """The author's part of the applied metadata."""
    found: Json = {"name": meta.get("name")}
    for part, marks in (("labels", (SET_LABEL,)), ("annotations", _MARKS)):
        rest = {
            k: v
            for k, v in _mapping_or_empty(applied.get(part)).items()
            if k not in marks
        }
        if rest:
            found[part] = rest
    return found


def _possible_forms(manifest: Json, meta: Mapping[str, Any]) -> Iterator[Json]:
    """Yield the forms in which an author may have written it."""
    placed = {**manifest["metadata"], "namespace": meta.get("namespace")}
    for named in (manifest, {**manifest, "metadata": placed}):
        yield named
        texts = _secret_texts(named)
        if texts is not None:
            yield {k: v for k, v in named.items() if k != "data"} | {
                "stringData": texts
            }


def _secret_texts(manifest: Json) -> Json | None:
    """The contents of a Secret as `stringData`; None if they are not texts."""
    if manifest.get("kind") != "Secret":
        return None
    try:
        return {
            name: base64.b64decode(value, validate=True).decode()
            for name, value in _mapping_or_empty(manifest.get("data")).items()
        }
    except (binascii.Error, ValueError, TypeError):
        return None


def _pick_fields(value: Any, fields: Any) -> Any:
    """The part of a value with these fields, as managed fields name them.

    >>> owned = {'k:{"name":"x"}': {".": {}, "f:name": {}}}
    >>> _pick_fields([{"name": "x", "image": "y"}, {"name": "z"}], owned)
    [{'name': 'x'}]
    """
    if not fields or not isinstance(fields, Mapping):
        return value
    if isinstance(value, Mapping):
        # A managed but missing field was empty (`omitempty`): a text, most often.
        return {
            key[2:]: _pick_fields(value.get(key[2:], ""), inner)
            for key, inner in fields.items()
            if key[:2] == "f:"
        }
    if isinstance(value, list):
        found = ((each, owned_element(each, fields)) for each in value)
        return [_pick_fields(each, inner) for each, inner in found if inner is not None]
    return value


def _mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
