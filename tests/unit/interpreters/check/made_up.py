"""Operators as text, with the scripts that are made up for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from textwrap import dedent
from typing import Any

from fnop.adapters.common.loading import handlers_of_file
from fnop.adapters.testing.cases import cases_of, sound, subjects_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.campaign import heeded_together
from fnop.interpreters.check.campaign.explore import Case, Explorer
from tests.checks import CRD, OBJECT

__all__ = ["NUMBER", "TEXT", "Manifest", "alarms", "cases", "definition", "x"]

Manifest = dict[str, Any]
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def definition(required: tuple[str, ...] = (), **fields: Any) -> Manifest:
    """The definition of xs.example.com with these fields of its spec."""
    found = deepcopy(CRD)
    (version,) = found["spec"]["versions"]
    if fields:
        spec = {"type": "object", "properties": fields, "required": [*required]}
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    return found


def x(**spec: Any) -> Manifest:
    return {**OBJECT, "spec": spec}


def cases(
    folder: Path,
    code: str,
    found: Manifest,
    crd: Manifest,
    *given: Manifest,
    calls: Mapping[Any, Callable[..., Any]] | None = None,
) -> tuple[list[Case], list[str]]:
    """The cases of an operator, and the notes to its author."""
    file = folder / "operator.py"
    file.write_text(f"import fnop\n\n{dedent(code)}")
    program = Program(tuple(handlers_of_file(str(file))), Settings())
    notes: list[str] = []
    subjects = subjects_of(program, [crd, found, *given])
    return cases_of(program, subjects, calls=calls, tell=notes.append), notes


def alarms(several: list[Case]) -> dict[str, set[str]]:
    """The properties that are violated without any fault, by the script."""
    explorers, _ = sound([Explorer(each) for each in several])
    heeded_together(explorers)
    found = {
        each.case.name: {e.property for e in each.confirmed(each.benign)}
        for each in explorers
    }
    return {name: properties for name, properties in found.items() if properties}
