"""The error that classes raise if no definition can be made of them."""

from __future__ import annotations

__all__ = ["DefinitionProblem"]


class DefinitionProblem(Exception):
    """No definition can be made of a class; the text is one sentence for its author."""
