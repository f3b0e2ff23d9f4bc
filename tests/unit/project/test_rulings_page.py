"""docs/decisions/rulings.md: complete, and the names in it exist."""

from __future__ import annotations

import re

import pytest

from tests.simulations import ROOT
from tests.source_tree import names_in

PAGE = ROOT / "docs" / "decisions" / "rulings.md"
NUMBERS = range(1, 39)
PARTS = ("Question", "Ruling", "Why", "Code", "Tests")
UNCITED = "No comment or test name cites this ruling."
# `core/handlers/declare/plans.py` `plan_of`, `Again`
_PLACE = re.compile(r"`([\w/]+\.py)`((?:,?\s`[\w.]+`)+)")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_CITED = re.compile(r"\bR(\d{1,2})\b|\bdef test_r(\d{1,2})_")


def rulings() -> dict[int, str]:
    """The text of each ruling, by its number."""
    page = re.split(r"^##+ ", PAGE.read_text(), flags=re.MULTILINE)
    found = [re.match(r"R(\d+): ", each) for each in page]
    return {
        int(m[1]): text for m, text in zip(found, page, strict=True) if m is not None
    }


TEXTS = rulings()


def test_all_rulings_are_there_in_their_order() -> None:
    assert list(TEXTS) == list(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_ruling_has_all_its_parts(number: int) -> None:
    at = [TEXTS[number].find(f"\n**{part}.**") for part in PARTS]
    assert -1 not in at
    assert at == sorted(at)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_code_and_the_tests_that_it_names_exist(number: int) -> None:
    code, tests = _PLACE.findall(TEXTS[number]), _TEST.findall(TEXTS[number])
    assert code
    assert tests
    named = [(f, n) for f, names in code for n in re.findall(r"`([\w.]+)`", names)]
    assert [(f, n) for f, n in [*named, *tests] if n not in names_in(f)] == []


def test_what_is_cited_is_a_ruling_and_which_are_not_is_told() -> None:
    cited: set[int] = set()
    for room in ("adapters", "core", "effects", "interpreters", "tests"):
        for file in (ROOT / room).rglob("*.py"):
            found = _CITED.findall(file.read_text())
            cited |= {int(one or other) for one, other in found}
    assert cited - set(NUMBERS) == set()
    assert {n for n, text in TEXTS.items() if UNCITED in text} == {*NUMBERS} - cited
