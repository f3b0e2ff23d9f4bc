"""The address of a request, and the requests that one effect needs."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.values.body import Key
from fnop.effects import (
    Effect,
)

__all__ = ["Address", "Request", "Steps"]


class Address(Struct, frozen=True):
    """The collection or object that a request goes to.

    All fields are None for effects that leave the cluster.
    """

    resource: Resource | None = None
    namespace: str | None = None
    name: str | None = None

    @property
    def key(self) -> Key:
        """The key of the addressed object in the store."""
        resource = self.resource.key if self.resource else ""
        return Key(resource, self.namespace or "", self.name or "")


class Request(Struct, frozen=True):
    """One primitive effect with its address."""

    effect: Effect
    address: Address


Steps = tuple[Any, ...]
