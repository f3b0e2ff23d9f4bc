"""The place of a type in the author's classes, which problems with it name."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from fnop.adapters.definitions.problems import DefinitionProblem
from fnop.adapters.definitions.type_fields import is_model

__all__ = ["Node", "Place"]

Node = dict[str, Any]
"""A structural schema, or a part of one."""


class Place(Struct, frozen=True):
    """A field of a class, or "" for all of it, and the classes around it.

    With `is_marked`, a mark of pydantic shows that pydantic reads it.
    """

    cls: type
    field: str
    around: tuple[type, ...]
    is_marked: bool = False

    @property
    def is_of_model(self) -> bool:
        """Whether pydantic reads and writes it, as part of a model."""
        return self.is_marked or any(map(is_model, (*self.around, self.cls)))

    def problem(self, text: str) -> DefinitionProblem:
        where = ".".join(filter(None, (self.cls.__qualname__, self.field)))
        return DefinitionProblem(f"{where}: {text}")
