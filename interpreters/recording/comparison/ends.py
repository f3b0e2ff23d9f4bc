"""The state in which an operator leaves an object, as a test may expect it again."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from fnop.interpreters.recording.identities.metadata import OWN
from fnop.interpreters.recording.identities.volatile import (
    MADE,
    UID,
    has_token,
    is_time,
)

__all__ = ["expected_of", "is_named_anew"]

Json = Mapping[str, Any]

# Metadata that are the same for an object in any run.
_META = ("labels", "annotations", "finalizers")
# The annotations of fnop and of kubectl.
_NOTES = (OWN, "kubectl.kubernetes.io/")
_HIDDEN = ("data", "stringData")
_OUT = object()


def expected_of(
    found: Json, manager: str, derived: Container[str] = ()
) -> dict[str, Any]:
    """The fields of an object that a manager has written and that another run has.

    All fields count if the object has no managed fields. Skipped are secrets, times,
    uids and texts derived from them, owners, the notes of fnop itself, and the
    `derived` texts.

    >>> fields = {"f:status": {"f:phase": {}}}
    >>> meta = {"name": "c", "managedFields": [{"manager": "me", "fieldsV1": fields}]}
    >>> expected_of({"kind": "C", "metadata": meta, "status": {"phase": "A"}}, "me")
    {'kind': 'C', 'metadata': {'name': 'c'}, 'status': {'phase': 'A'}}
    >>> expected_of({"kind": "C", "metadata": meta, "status": {"phase": "A"}}, "you")
    {'kind': 'C', 'metadata': {'name': 'c'}}
    """
    meta = found["metadata"]
    names = {key: meta[key] for key in ("name", "namespace") if meta.get(key)}
    head = {key: found[key] for key in ("apiVersion", "kind") if key in found}
    rest = {key: value for key, value in found.items() if key not in head}
    if found.get("kind") == "Secret":  # its values are tokens, or drawn again
        rest = {key: value for key, value in rest.items() if key not in _HIDDEN}
    rest["metadata"] = {key: meta[key] for key in _META if key in meta}
    fields = meta.get("managedFields")
    if isinstance(fields, list) and fields:
        tree = _tree_of(fields, manager)
        rest = _managed_part(rest, tree) if tree else {}
    lasting = _lasting_part(rest, derived)
    lasting = {} if lasting is _OUT else lasting
    own = lasting.pop("metadata", {})
    return {**head, "metadata": {**names, **own}, **lasting}


def is_named_anew(found: Json) -> bool:
    """Whether objects such as this one get another name in each run.

    >>> is_named_anew({"metadata": {"name": "orders-0123456789"}})
    True
    """
    meta = found["metadata"]
    return bool(meta.get("generateName") or MADE.search(meta["name"]))


def _tree_of(fields: list[Any], manager: str) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for each in fields:
        if isinstance(each, Mapping) and each.get("manager") == manager:
            _merge(tree, each.get("fieldsV1"))
    return tree


def _merge(tree: dict[str, Any], more: Any) -> None:
    for key, value in more.items() if isinstance(more, Mapping) else ():
        _merge(tree.setdefault(key, {}), value)


def _managed_part(value: Any, tree: Json) -> Any:
    """The part of a value that a tree of fields covers; a list as a whole."""
    fields = {key[2:]: below for key, below in tree.items() if key.startswith("f:")}
    if not fields or not isinstance(value, Mapping):
        return value
    return {
        key: _managed_part(value[key], below)
        for key, below in fields.items()
        if key in value
    }


def _lasting_part(value: Any, derived: Container[str]) -> Any:
    """A value without the parts that differ in each run; `_OUT` if nothing remains."""
    match value:
        case Mapping():
            kept = {
                key: _lasting_part(item, derived)
                for key, item in value.items()
                if not str(key).startswith(_NOTES)
            }
            kept = {key: item for key, item in kept.items() if item is not _OUT}
            return kept if kept or not value else _OUT
        case list():
            items = [_lasting_part(each, derived) for each in value]
            return _OUT if any(each is _OUT for each in items) else items
        case str() if UID.search(value) or MADE.search(value):
            return _OUT
        case str() if is_time(value) or has_token(value) or value in derived:
            return _OUT
        case _:
            return value
