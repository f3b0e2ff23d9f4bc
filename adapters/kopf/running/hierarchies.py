"""Kopf's functions for children: they change manifests and models in place.

The owner, and what is taken from it, is by default the object of the running handler.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from enum import Enum
from importlib import import_module
from typing import Any

from fnop.adapters.kopf.declaring.context import current_owner
from fnop.core.api import hierarchies
from fnop.core.values.diff import parse_field

__all__ = [
    "adjust_namespace",
    "adopt",
    "append_owner_reference",
    "build_object_reference",
    "build_owner_reference",
    "harmonize_naming",
    "label",
    "remove_owner_reference",
]

Json = dict[str, Any]


class _Unset(Enum):
    TOKEN = "token"


UNSET = _Unset.TOKEN

build_object_reference = hierarchies.build_object_reference


def build_owner_reference(
    body: Any,
    *,
    controller: bool | None = True,
    block_owner_deletion: bool | None = True,
) -> Json:
    """The entry of a child's `ownerReferences` for an owner; None omits a field."""
    found = hierarchies.build_owner_reference(
        body,
        controller=controller,  # type: ignore[arg-type]
        block_owner_deletion=block_owner_deletion,  # type: ignore[arg-type]
    )
    return {key: value for key, value in found.items() if value is not None}


# --------------------------------------------------------------- models, in place


class _Model(MutableMapping[str, Any]):
    """A model of a client library as a mapping with the names of the API.

    Nested models are created by their classes, which the model itself names
    (`openapi_types`, `attribute_map` of kubernetes and kubernetes_asyncio).
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._attributes = {v: k for k, v in model.attribute_map.items()}

    def __getitem__(self, key: str) -> Any:
        value = getattr(self._model, self._attributes[key], None)
        if value is None:
            raise KeyError(key)
        return _place_of(value)

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._attributes[key]
        kind = self._model.openapi_types[attribute]
        setattr(self._model, attribute, _as_model(self._model, kind, value))

    def __delitem__(self, key: str) -> None:
        setattr(self._model, self._attributes[key], None)

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._attributes if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        attribute = self._attributes.get(key)
        return attribute is not None and getattr(self._model, attribute) is not None


def _place_of(value: Any) -> Any:
    """A value of a model as something to change in place."""
    if hasattr(value, "attribute_map"):
        return _Model(value)
    if isinstance(value, list) and value and hasattr(value[0], "attribute_map"):
        return [_Model(each) for each in value]
    return value


def _as_model(near: Any, kind: str, value: Any) -> Any:
    """A JSON value as the type that a model's attribute has, such as V1ObjectMeta."""
    inner = kind.removeprefix("list[").removesuffix("]")
    if kind.startswith("list[") and isinstance(value, list):
        return [_as_model(near, inner, each) for each in value]
    if isinstance(value, _Model):
        return value._model
    module = import_module(type(near).__module__.rsplit(".", 1)[0])
    cls = getattr(module, kind, None)
    if cls is None or not isinstance(value, Mapping):
        return value
    names = {api: attribute for attribute, api in cls.attribute_map.items()}
    known = {
        names[k]: _as_model(near, _kind_of(cls, names[k]), v)
        for k, v in value.items()
        if k in names
    }
    return cls(**known)


def _kind_of(cls: Any, attribute: str) -> str:
    return str(cls.openapi_types[attribute])


def _each(objs: Any) -> Iterator[Any]:
    """Every manifest in nested iterables, as a mapping that can be changed."""
    if objs is None:
        return
    if isinstance(objs, MutableMapping):
        yield objs
    elif isinstance(getattr(objs, "obj", None), MutableMapping):  # pykube
        yield objs.obj
    elif hasattr(objs, "attribute_map") and hasattr(objs, "openapi_types"):
        yield _Model(objs)
    elif isinstance(objs, Iterable) and not isinstance(objs, (str, bytes, Mapping)):
        for each in objs:
            yield from _each(each)
    else:
        raise TypeError(
            f"{type(objs).__name__} is neither a manifest nor a model of a client"
        )


def _in_place(fn: Callable[..., None]) -> Callable[..., None]:
    """Make a function of one manifest a function of many."""

    @functools.wraps(fn)
    def each(objs: Any, *given: Any, **options: Any) -> None:
        for obj in _each(objs):
            fn(obj, *given, **options)

    return each


def _meta(obj: Any) -> Any:
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    return obj["metadata"]


def _owner(owner: Any) -> Mapping[str, Any]:
    return current_owner() if owner is None else owner


# ---------------------------------------------------------------------- functions


@_in_place
def append_owner_reference(
    obj: Any,
    owner: Any = None,
    *,
    controller: bool | None = True,
    block_owner_deletion: bool | None = True,
) -> None:
    """Add a reference to the owner, unless one with its uid exists."""
    reference = build_owner_reference(
        _owner(owner), controller=controller, block_owner_deletion=block_owner_deletion
    )
    meta = _meta(obj)
    known = meta.get("ownerReferences") or []
    if all(each.get("uid") != reference.get("uid") for each in known):
        _set_references(meta, [*known, reference])


@_in_place
def remove_owner_reference(obj: Any, owner: Any = None) -> None:
    """Remove the references to the owner, by its uid."""
    uid = (_owner(owner).get("metadata") or {}).get("uid")
    meta = _meta(obj)
    known = meta.get("ownerReferences") or []
    _set_references(meta, [each for each in known if each.get("uid") != uid])


def _set_references(meta: Any, found: list[Any]) -> None:
    """Replace the references, in the same list if the manifest has one."""
    known = meta.get("ownerReferences")
    if known is None or isinstance(meta, _Model):
        meta["ownerReferences"] = found
    else:
        known[:] = found


@_in_place
def label(
    obj: Any,
    labels: Any = UNSET,
    *,
    forced: bool = False,
    nested: Any = None,
    force: bool | None = None,
) -> None:
    """Add labels, by default the owner's; existing ones stay, unless `forced`.

    `nested` is a path, or several, to existing parts with labels of their own.
    """
    forced = forced if force is None else force
    if labels is UNSET:
        labels = (_owner(None).get("metadata") or {}).get("labels") or {}
    places = [obj]
    for path in _paths(nested):
        place: Any = obj
        for key in path:
            place = place.get(key) if isinstance(place, Mapping) else None
        if isinstance(place, MutableMapping):
            places.append(place)
    for place in places:
        meta = _meta(place)
        if meta.get("labels") is None:
            meta["labels"] = {}
        own = meta["labels"]
        own.update({k: v for k, v in labels.items() if forced or k not in own})


def _paths(nested: Any) -> list[tuple[str, ...]]:
    if nested is None:
        return []
    if isinstance(nested, str):
        return [parse_field(nested)]
    return [parse_field(each) for each in nested]


@_in_place
def harmonize_naming(
    obj: Any, name: Any = UNSET, *, forced: bool = False, strict: bool = False
) -> None:
    """Give the owner's name, or with `strict=False` the prefix of a generated one."""
    if name is UNSET:
        name = (_owner(None).get("metadata") or {}).get("name")
    if name is None:
        raise LookupError("there is no name to give")
    meta = _meta(obj)
    has_one = meta.get("name") is not None or meta.get("generateName") is not None
    if has_one and not forced:
        return
    for key in ("name", "generateName"):
        if key in meta:
            del meta[key]
    meta["name" if strict else "generateName"] = name if strict else f"{name}-"


@_in_place
def adjust_namespace(obj: Any, namespace: Any = UNSET, *, forced: bool = False) -> None:
    """Give the owner's namespace, unless there is one already."""
    if namespace is UNSET:
        namespace = (_owner(None).get("metadata") or {}).get("namespace")
    meta = _meta(obj)
    if forced or meta.get("namespace") is None:
        meta["namespace"] = namespace


def adopt(
    objs: Any,
    owner: Any = None,
    *,
    forced: bool = False,
    strict: bool = False,
    nested: Any = None,
) -> None:
    """Make manifests children of the owner: reference, name, namespace and labels."""
    found = _owner(owner)
    meta = found.get("metadata") or {}
    append_owner_reference(objs, owner=found)
    harmonize_naming(objs, name=meta.get("name"), forced=forced, strict=strict)
    adjust_namespace(objs, namespace=meta.get("namespace"), forced=forced)
    label(objs, labels=meta.get("labels") or {}, forced=forced, nested=nested)
