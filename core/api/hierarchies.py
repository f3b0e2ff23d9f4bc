"""Manifests of children: owner references, labels, names, namespaces.

Each function takes one manifest, or an iterable of them, however nested, and returns
new ones. It changes nothing in place. Models of client libraries are manifests, too
(`fnop.effects.manifests`). `fnop.adopt` does all of this for the handled object; these
functions are for objects that are created or applied in another way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from fnop.core.values.diff import parse_field
from fnop.effects.manifests import (
    Manifest,
    cannot_own,
    each_manifest,
    manifest_of,
)
from fnop.effects.values import thaw_json

__all__ = [
    "adjust_namespace",
    "append_owner_reference",
    "build_object_reference",
    "build_owner_reference",
    "harmonize_naming",
    "label",
    "remove_owner_reference",
]

ObjectDict = dict[str, Any]
P = ParamSpec("P")
R = TypeVar("R")


def _require_argument(
    name: str, example: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator that explains a missing second argument in its error."""

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) < 2 and name not in kwargs:
                raise TypeError(
                    f"fnop.{fn.__name__} knows of no handled object: give {name}, as "
                    f"in child = fnop.{fn.__name__}(child, {example})"
                )
            return fn(*args, **kwargs)

        return wrapper

    return decorate


@overload
def label(
    manifests: Manifest,
    labels: Mapping[str, Any],
    *,
    forced: bool = ...,
    nested: Iterable[Any] | str = ...,
) -> ObjectDict: ...
@overload
def label(
    manifests: Iterable[Manifest],
    labels: Mapping[str, Any],
    *,
    forced: bool = ...,
    nested: Iterable[Any] | str = ...,
) -> list[ObjectDict]: ...
@_require_argument("labels", "labels")
def label(
    manifests: Any,
    labels: Mapping[str, Any],
    *,
    forced: bool = False,
    nested: Iterable[Any] | str = (),
) -> Any:
    """Add labels to manifests; existing labels stay, unless `forced`.

    `manifests` are one, or an iterable of them; the function returns new ones. `labels`
    is a mapping of texts. `nested` are paths to parts of a manifest with labels of
    their own, such as `"spec.template"`: existing parts are labelled, too.

    >>> label({"kind": "Pod"}, {"app": "db"})
    {'kind': 'Pod', 'metadata': {'labels': {'app': 'db'}}}
    >>> label({"spec": {"template": {}}}, {"app": "db"}, nested="spec.template")["spec"]
    {'template': {'metadata': {'labels': {'app': 'db'}}}}
    """
    paths = [parse_field(each) for each in _list_paths(nested)]

    def labelled(made: ObjectDict) -> None:
        for place in (made, *_found(made, paths)):
            own = place.setdefault("metadata", {}).setdefault("labels", {})
            place["metadata"]["labels"] = (
                {**own, **labels} if forced else {**labels, **own}
            )

    return _change_each(manifests, labelled)


def _list_paths(nested: Any) -> list[Any]:
    """One path, dotted or as a tuple of keys, or several of them."""
    if isinstance(nested, str) or (isinstance(nested, tuple) and nested):
        is_one = isinstance(nested, str) or all(
            isinstance(key, str) and "." not in key for key in nested
        )
        return [nested] if is_one else list(nested)
    return list(nested)


def _found(made: ObjectDict, paths: Iterable[tuple[str, ...]]) -> Iterable[ObjectDict]:
    for path in paths:
        place: Any = made
        for key in path:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict):
            yield place


@overload
def append_owner_reference(
    manifests: Manifest,
    owner: Manifest,
    *,
    controller: bool = ...,
    block_owner_deletion: bool = ...,
) -> ObjectDict: ...
@overload
def append_owner_reference(
    manifests: Iterable[Manifest],
    owner: Manifest,
    *,
    controller: bool = ...,
    block_owner_deletion: bool = ...,
) -> list[ObjectDict]: ...
@_require_argument("owner", "body")
def append_owner_reference(
    manifests: Any,
    owner: Manifest,
    *,
    controller: bool = True,
    block_owner_deletion: bool = True,
) -> Any:
    """Add a reference to an owner, unless one with its uid exists.

    `manifests` are one child, or an iterable of them; the function returns new ones.
    `owner` is an object that was read. `controller` means that the owner manages the
    child. `block_owner_deletion` lets a foreground deletion of the owner wait for the
    child (Kubernetes: garbage collection). Raises `ValueError` for a child in another
    namespace than its owner: the garbage collector would delete it.

    >>> owner = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "o", "uid": "u"}}
    >>> append_owner_reference({}, owner)["metadata"]["ownerReferences"][0]["name"]
    'o'
    """
    reference = build_owner_reference(
        owner, controller=controller, block_owner_deletion=block_owner_deletion
    )

    home = (manifest_of(owner).get("metadata") or {}).get("namespace")

    def referring(made: ObjectDict) -> None:
        meta = made.setdefault("metadata", {})
        if home and meta.get("namespace", home) not in (home, None, ""):
            raise ValueError(cannot_own(made, owner, f"in {meta['namespace']}"))
        references = meta.get("ownerReferences") or []
        if all(each.get("uid") != reference.get("uid") for each in references):
            meta["ownerReferences"] = [*references, dict(reference)]

    return _change_each(manifests, referring)


def build_owner_reference(
    body: Manifest, *, controller: bool = True, block_owner_deletion: bool = True
) -> ObjectDict:
    """Build the entry of a child's `ownerReferences` that names an object.

    `body` is the owner; fields that it lacks are omitted. `controller` and
    `block_owner_deletion` are as in `append_owner_reference`.

    >>> owner = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "o", "uid": "u"}}
    >>> build_owner_reference(owner, controller=False)["controller"]
    False
    """
    found = build_object_reference(body)
    found.pop("namespace", None)  # an owner is in its child's namespace
    return {
        "controller": controller,
        "blockOwnerDeletion": block_owner_deletion,
        **found,
    }


def build_object_reference(body: Manifest) -> ObjectDict:
    """Build a reference to an object, as Kubernetes writes it (core/v1
    ObjectReference).

    Fields that the object, `body`, lacks are omitted.

    >>> build_object_reference({"kind": "K", "metadata": {"name": "o"}})
    {'kind': 'K', 'name': 'o'}
    """
    given = manifest_of(body)
    meta = given.get("metadata") or {}
    found = {key: given.get(key) for key in ("apiVersion", "kind")}
    found |= {key: meta.get(key) for key in ("name", "uid", "namespace")}
    return {key: value for key, value in found.items() if value}


@overload
def remove_owner_reference(manifests: Manifest, owner: Manifest) -> ObjectDict: ...
@overload
def remove_owner_reference(
    manifests: Iterable[Manifest], owner: Manifest
) -> list[ObjectDict]: ...
@_require_argument("owner", "body")
def remove_owner_reference(manifests: Any, owner: Manifest) -> Any:
    """Remove the references to an owner, by its uid.

    `manifests` are one child, or an iterable of them; the function returns new ones.
    `owner` is an object that was read.

    >>> owner = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "o", "uid": "u"}}
    >>> child = append_owner_reference({}, owner)
    >>> remove_owner_reference(child, owner)["metadata"]["ownerReferences"]
    []
    """
    uid = (manifest_of(owner).get("metadata") or {}).get("uid")

    def released(made: ObjectDict) -> None:
        meta = made.get("metadata") or {}
        if "ownerReferences" in meta:
            references = meta["ownerReferences"] or []
            meta["ownerReferences"] = [e for e in references if e.get("uid") != uid]

    return _change_each(manifests, released)


@overload
def harmonize_naming(
    manifests: Manifest, name: str, *, forced: bool = ..., strict: bool = ...
) -> ObjectDict: ...
@overload
def harmonize_naming(
    manifests: Iterable[Manifest], name: str, *, forced: bool = ..., strict: bool = ...
) -> list[ObjectDict]: ...
@_require_argument("name", "name")
def harmonize_naming(
    manifests: Any, name: str, *, forced: bool = False, strict: bool = False
) -> Any:
    """Give manifests a name, or the prefix of a generated one.

    `manifests` are one, or an iterable of them; the function returns new ones. `name`
    is the name (`strict`), or the prefix that the server completes. A manifest that has
    either of them keeps it, unless `forced`. A generated name creates a new object each
    time that it is sent; `fnop.adopt` makes stable ones. Raises `ValueError` for an
    empty name.

    >>> harmonize_naming({}, "db")
    {'metadata': {'generateName': 'db-'}}
    >>> harmonize_naming({"metadata": {"name": "x"}}, "db", strict=True, forced=True)
    {'metadata': {'name': 'db'}}
    """

    if not name:
        raise ValueError("harmonize_naming needs a name; None or an empty one is none")

    def named(made: ObjectDict) -> None:
        meta = made.setdefault("metadata", {})
        if not forced and (meta.get("name") or meta.get("generateName")):
            return
        for key in ("name", "generateName"):
            meta.pop(key, None)
        meta["name" if strict else "generateName"] = name if strict else f"{name}-"

    return _change_each(manifests, named)


@overload
def adjust_namespace(
    manifests: Manifest, namespace: str | None, *, forced: bool = ...
) -> ObjectDict: ...
@overload
def adjust_namespace(
    manifests: Iterable[Manifest], namespace: str | None, *, forced: bool = ...
) -> list[ObjectDict]: ...
@_require_argument("namespace", "namespace")
def adjust_namespace(
    manifests: Any, namespace: str | None, *, forced: bool = False
) -> Any:
    """Put manifests into a namespace; an existing one stays, unless `forced`.

    `manifests` are one, or an iterable of them; the function returns new ones. A
    `namespace` of None, as of a cluster-scoped owner, leaves them as they are.

    >>> adjust_namespace({}, "prod"), adjust_namespace({}, None)
    ({'metadata': {'namespace': 'prod'}}, {})
    """

    def placed(made: ObjectDict) -> None:
        if namespace is None:
            return
        meta = made.setdefault("metadata", {})
        if forced or not meta.get("namespace"):
            meta["namespace"] = namespace

    return _change_each(manifests, placed)


def _change_each(manifests: Any, change: Callable[[ObjectDict], None]) -> Any:
    """Return a changed copy of each manifest; raise `TypeError` for other values."""

    def changed(manifest: Mapping[str, Any]) -> ObjectDict:
        made: ObjectDict = thaw_json(dict(manifest))
        if made.get("metadata") is None:
            made.pop("metadata", None)
        change(made)
        return made

    return each_manifest(manifests, changed)
