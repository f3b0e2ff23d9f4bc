"""The error that is raised if no definition can be made of a class."""

from __future__ import annotations

__all__ = ["DefinitionProblem"]


class DefinitionProblem(Exception):
    """No definition can be made of a class; the text is one sentence for its author."""
