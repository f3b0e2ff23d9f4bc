"""The pictures in the documentation show what the commands print and do now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from docs.pictures.diagrams import (
    DIAGRAMS,
    Drawing,
    Words,
    a_crash_between_two_requests,
)
from docs.pictures.terminal import (
    PICTURES,
    PICTURES_MADE,
    Picture,
    output_of,
    texts_in,
)
from tests.commands import fnop
from tests.simulations import ROOT

# The check's picture needs seconds; the tutorial's test runs that check.
CHEAP = [each for each in PICTURES_MADE if each.name != "check"]


def run(command: str, folder: Path, variables: Mapping[str, str]) -> str:
    """Run a command in a forked process, which has imported fnop already."""
    _, *arguments = command.split()
    return fnop(*arguments, folder=folder, variables=variables).out


@pytest.mark.parametrize("picture", CHEAP, ids=lambda each: each.name)
def test_a_picture_shows_what_its_command_prints(picture: Picture) -> None:
    words = " ".join(" ".join(output_of(picture, run)).split())
    shown = texts_in((PICTURES / f"{picture.name}.svg").read_text())
    assert shown == words


def test_each_picture_is_on_a_page() -> None:
    pages = "".join(each.read_text() for each in (ROOT / "docs").rglob("*.md"))
    for each in PICTURES.iterdir():
        assert f"pictures/{each.name}" in pages


# This one runs `fnop check`, which takes seconds.
LONG = pytest.param(a_crash_between_two_requests, marks=pytest.mark.long)
QUICK = [each for each in DIAGRAMS if each is not a_crash_between_two_requests]


@pytest.mark.parametrize("diagram", [*QUICK, LONG])
def test_a_diagram_shows_the_present_names(diagram: Callable[[], Drawing]) -> None:
    drawing = diagram()
    assert drawing.svg() == (PICTURES / f"{drawing.name}.svg").read_text()


def test_a_text_that_is_too_long_for_its_box_is_refused() -> None:
    with pytest.raises(ValueError, match="too long for its box"):
        Drawing("one", "One").box(0, 0, 60, [Words("a long sentence")])


def test_the_picture_of_a_plan_has_the_reconciler_of_the_tutorial() -> None:
    operator = (ROOT / "docs/pictures/slips/shop.py").read_text()
    reconciler = operator.removeprefix("import fnop\n\n\n")
    assert reconciler in (ROOT / "docs/tutorial/reconcile.md").read_text()
