"""Where a request goes, and the requests that one effect takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fnop.core.api.resources import Resource
from fnop.core.values.body import Key
from fnop.effects import (
    Effect,
)

__all__ = ["Address", "Request", "Steps"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes; all None for effects that leave the cluster."""

    resource: Resource | None = None
    namespace: str | None = None
    name: str | None = None

    @property
    def key(self) -> Key:
        """The object that it is about, as the store names it."""
        resource = self.resource.key if self.resource else ""
        return Key(resource, self.namespace or "", self.name or "")


@dataclass(frozen=True, slots=True)
class Request:
    """One primitive effect with its address."""

    effect: Effect
    address: Address


Steps = tuple[Any, ...]
