"""Manifests as authors write them: mappings, and models of client libraries.

fnop imports no client library: it recognizes a model by its attributes.

| library                              | a model has                        |
|--------------------------------------|------------------------------------|
| `kubernetes`, `kubernetes_asyncio`   | `openapi_types`, `attribute_map`   |
| lightkube, kr8s                      | `to_dict()`                        |
| kr8s                                 | `raw`                              |
| pykube-ng                            | `obj`                              |

Objects of the author's classes (`fnop.effects.models`) are accepted, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from itertools import chain
from typing import Any, Protocol, TypeAlias

from fnop.effects.models import (
    Model,
    definition_of_model,
    is_model,
    moment_text,
    plain_model,
)

__all__ = ["Manifest", "cannot_own", "each_manifest", "manifest_of"]


class _OpenApiModel(Protocol):
    openapi_types: Any
    attribute_map: Any


class _DictModel(Protocol):
    def to_dict(self) -> Any: ...


class _RawModel(Protocol):
    @property
    def raw(self) -> Any: ...


class _ObjModel(Protocol):
    @property
    def obj(self) -> Any: ...


Manifest: TypeAlias = (
    Mapping[str, Any] | _OpenApiModel | _DictModel | _RawModel | _ObjModel | Model
)


def manifest_of(value: Any) -> Mapping[str, Any]:
    """Return the manifest of a mapping, or of a client library's model.

    Dates of a model become texts as Kubernetes writes them; unset fields are omitted.
    Raises `TypeError` for anything else.

    >>> manifest_of({"kind": "Pod"})
    {'kind': 'Pod'}
    >>> manifest_of("Pod")
    Traceback (most recent call last):
        ...
    TypeError: str is not a manifest; give a mapping, or a model of a client library
    """
    found = _read(value)
    if found is None:
        raise TypeError(
            f"{_name_of(value)} is not a manifest; give a mapping, or a model of a "
            "client library"
        )
    return found


def each_manifest(
    values: Any, make: Callable[[Mapping[str, Any]], Any], *, flat: bool = False
) -> Any:
    """Call `make` with each manifest; return its result, or a list for an iterable.

    Iterables may be nested. Then the lists are nested, too, unless they are to be
    `flat`. Raises `TypeError` for anything that is not a manifest.

    >>> pods = [{"kind": "Pod"}, ({"kind": "Job"},)]
    >>> each_manifest(pods, lambda one: one["kind"])
    ['Pod', ['Job']]
    >>> each_manifest(pods, lambda one: one["kind"], flat=True)
    ['Pod', 'Job']
    """
    found = _read(values)
    if found is not None:
        return make(found)
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, type)):
        raise TypeError(
            f"{_name_of(values)} is not a manifest; give a mapping, a model of a "
            "client library, or a list of them"
        )
    made = [each_manifest(value, make, flat=flat) for value in values]
    if not flat:
        return made
    return [*chain.from_iterable(e if isinstance(e, list) else (e,) for e in made)]


def cannot_own(child: Mapping[str, Any], owner: Manifest, where: str) -> str:
    """The sentence for a child `where` its owner, a namespaced object, is not.

    The garbage collector looks for an owner in its dependent's own namespace, and
    deletes a dependent whose owner it does not find (Kubernetes: owners and
    dependents).
    """
    what = f"{child.get('kind') or 'the child'} {child['metadata'].get('name') or ''}"
    meta = manifest_of(owner).get("metadata") or {}
    return (
        f"{what.rstrip()} is {where}, and its owner {meta.get('name')} in "
        f"{meta.get('namespace')}: the garbage collector would delete it; leave the "
        "owner out, and delete the object in an on.delete handler, or let a "
        "reconcile handler desire it"
    )


def _name_of(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return type(value).__name__


def _read(value: Any) -> Mapping[str, Any] | None:
    """The manifest, or None without one."""
    if type(value) is dict:
        return value  # as nearly all are
    if isinstance(value, type):
        return None
    if _is_openapi(value):
        found = value
    elif callable(getattr(value, "to_dict", None)):
        found = value.to_dict()
    elif is_model(value):
        return _manifest_of_model(value)
    elif isinstance(value, Mapping):
        return value
    else:
        found = getattr(value, "raw", None) or getattr(value, "obj", None)
    plain = _plain_value(found)
    return plain if isinstance(plain, dict) else None


def _manifest_of_model(value: Any) -> Mapping[str, Any] | None:
    """The manifest of an author's object; the definition of its kind names the kind."""
    found = plain_model(value, without_none=True)
    if not isinstance(found, dict):
        return None
    if (known := definition_of_model(value)) is not None:
        found = {"apiVersion": known.api_version, "kind": known.kind, **found}
    return found


def _is_openapi(value: Any) -> bool:
    return isinstance(getattr(value, "attribute_map", None), Mapping) and isinstance(
        getattr(value, "openapi_types", None), Mapping
    )


def _plain_value(value: Any) -> Any:
    """The fields of a client library's model, as plain JSON."""
    if isinstance(value, Mapping):
        return {key: _plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_value(item) for item in value]
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, type) and _is_openapi(value):
        given = ((key, getattr(value, name)) for name, key in _attributes_of(value))
        return {key: _plain_value(item) for key, item in given if item is not None}
    return value


def _attributes_of(model: Any) -> Iterable[tuple[str, str]]:
    return model.attribute_map.items()  # type: ignore[no-any-return]
