"""Structural schemas: what a CRD lets through, fills in and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fnop.interpreters.cluster.status import Fault

__all__ = ["Schema", "compile_schema"]


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema node."""

    source: dict[str, Any]

    def filled(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Pruned and with defaults."""
        return obj

    def faults(self, obj: dict[str, Any]) -> Iterator[Fault]:
        """What the schema refuses."""
        return iter(())


def compile_schema(source: dict[str, Any] | None) -> Schema | None:
    """Prepare a structural schema for fast use."""
    return None if source is None else Schema(source)
