"""The pictures of terminals in the documentation show what the commands print now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

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


def test_each_picture_of_a_command_is_on_a_page() -> None:
    pages = "".join(each.read_text() for each in (ROOT / "docs").rglob("*.md"))
    for each in PICTURES_MADE:
        assert f"pictures/{each.name}.svg" in pages


def test_the_picture_of_a_plan_has_the_reconciler_of_the_tutorial() -> None:
    operator = (ROOT / "docs/pictures/slips/shop.py").read_text()
    reconciler = operator.removeprefix("import fnop\n\n\n")
    assert reconciler in (ROOT / "docs/tutorial/reconcile.md").read_text()
