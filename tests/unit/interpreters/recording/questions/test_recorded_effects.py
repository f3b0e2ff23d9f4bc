"""The table of effects in recordings: a new effect is in every question."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from fnop.core.seam.effect_rules import EFFECTS
from fnop.interpreters.recording.comparison.sorts import WORDS
from fnop.interpreters.recording.model.effects import (
    RECORDED,
    changes_objects,
    has_answer,
    is_request,
    named,
)
from tests.simulations import ROOT

PLACE = "interpreters/recording/model/effects.py"


def test_stories_name_every_effect() -> None:
    assert [*RECORDED] == [*EFFECTS], f"give {PLACE} a row in the same order"


def test_every_effect_that_changes_objects_has_a_word() -> None:
    lacks = {
        each.__name__
        for each, row in RECORDED.items()
        if changes_objects(each.__name__) and row.change not in WORDS
    }
    assert not lacks, f"name the change of {lacks} in {PLACE}, and in WORDS of sorts.py"


def test_an_effect_of_another_release_is_named_and_changes_nothing() -> None:
    assert named({"is": "Evict", "target": {"kind": "pods", "name": "a"}}) == (
        "Evict pods/a"
    )
    assert is_request("Evict")
    assert not changes_objects("Evict")
    assert not has_answer("Evict")


def test_no_question_names_an_effect_by_a_text() -> None:
    """A set of texts would silently lack a new effect."""
    folders = ("model", "questions", "comparison")
    files = [
        file
        for folder in folders
        for file in (ROOT / "interpreters/recording" / folder).glob("*.py")
    ]
    names = {each.__name__ for each in EFFECTS}
    found = [
        f"{file.relative_to(ROOT)}: {text!r}"
        for file in files
        for text in texts_in(file)
        if text in names
    ]
    assert found == [], f"ask the tables: {PLACE}, or the name of the class"


def texts_in(file: Path) -> Iterator[str]:
    """All texts of a module apart from the names that it exports."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            continue
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value
