"""The addresses of objects in recordings.

`Ref` names an object as stories and pages do, and `Place` as its own JSON does. `Named`
has the kind as the API server serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fnop.core.api.resources import Resource

__all__ = ["Named", "Place", "Ref", "ref_of"]

Json = Mapping[str, Any]


class Ref(NamedTuple):
    """An object by its names, which a later object may reuse."""

    kind: str  # plural.group
    namespace: str
    name: str

    @property
    def label(self) -> str:
        """The kind and the names of the object: `pods/default/web`."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.partition('.')[0]}/{place}{self.name}"


def ref_of(resource: str, namespace: object = "", name: object = "") -> Ref:
    """The object with a resource's key; without names it stands for the kind.

    >>> ref_of("deployments.v1.apps", "default", "web").kind
    'deployments.apps'
    """
    plural, _, rest = resource.partition(".")
    group = rest.partition(".")[2]
    kind = f"{plural}.{group}" if group else plural
    return Ref(kind, str(namespace or ""), str(name or ""))


class Place(NamedTuple):
    """The identity of an object, as it was shown."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, found: Json) -> Place:
        """The place of an object, by its JSON form."""
        meta = found["metadata"]
        where = str(meta.get("namespace") or ""), str(meta.get("name") or "")
        return cls(str(found.get("apiVersion")), str(found.get("kind")), *where)


class Named(NamedTuple):
    """An object of a recording: its kind, its namespace ("" for none), and its name."""

    resource: Resource
    namespace: str
    name: str

    @property
    def where(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.resource.label} {self.where}"
