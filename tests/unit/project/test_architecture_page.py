"""The files and functions exist that the pages for contributors name."""

from __future__ import annotations

import re

import pytest

from tests.simulations import ROOT
from tests.source_tree import names_in

PAGE = "\n".join(
    (ROOT / "docs" / "contributing" / f"{name}.md").read_text()
    for name in ("architecture", "rooms")
)
RECIPES = (ROOT / "CONTRIBUTING.md").read_text()
# `core/values/cause.py` `detect_cause`, `Reason`
_PLACE = re.compile(r"(?<!\[)`((?:[a-z_]+/)+\w+\.py)`((?:,?\s`[\w.]+`)*)")
# core/values/cause.py   `detect_cause`, `Reason`: in the picture of the way
_LINE = re.compile(r"^ {4} *((?:[a-z_]+/)+\w+\.py) +(.*)$", re.MULTILINE)
_QUESTIONS = (
    "retries",
    "which cause",
    "into a patch",
    "a new effect",
    "a new kind of handlers",
    "a new built-in kind",
    "a controller",
)


def named() -> list[tuple[str, str]]:
    """The files that the page names, and what it names in them."""
    found = []
    places = [*_PLACE.findall(PAGE), *_PLACE.findall(RECIPES), *_LINE.findall(PAGE)]
    for file, names in places:
        found += [(file, each) for each in re.findall(r"`([\w.]+)`", names) or [""]]
    return found


@pytest.mark.parametrize(("file", "name"), sorted(set(named())))
def test_what_the_page_names_is_there(file: str, name: str) -> None:
    assert (ROOT / file).is_file()
    assert not name or name in names_in(file)


@pytest.mark.parametrize("question", _QUESTIONS)
def test_the_page_says_where_to_change_it(question: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| {question}")]
    rows += [
        line for line in PAGE.splitlines() if line.startswith(f"| what goes {question}")
    ]
    assert len(rows) == 1
    assert "](" in rows[0] or _PLACE.search(rows[0])
