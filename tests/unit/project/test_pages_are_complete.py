"""The pages have a row for each fault and property, and a place for each command."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from fnop.adapters.cli.main import main
from fnop.interpreters.check.properties import EXPLAINED
from fnop.interpreters.check.trials.catalogue import BY_NAME
from tests.documentation import PAGES
from tests.simulations import ROOT

REFERENCE = ROOT / "docs/reference"


def rows(text: str) -> Iterator[str]:
    """The names in the first cells of tables."""
    for cell in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE):
        yield from re.findall(r"`([^`]+)`", cell)


FAULTS = sorted({*rows((REFERENCE / "faults.md").read_text("utf-8"))})
PROPERTIES = sorted({*rows((REFERENCE / "properties.md").read_text("utf-8"))})


def test_each_fault_has_a_row() -> None:
    assert sorted(BY_NAME) == FAULTS


def test_each_property_has_a_row() -> None:
    assert sorted(EXPLAINED) == PROPERTIES


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_each_command_has_a_place(name: str) -> None:
    """A page shows a call of it, or says in code what it does."""
    call = re.compile(rf"(^    |`|^\$ )fnop {name}\b", re.MULTILINE)
    assert [each.name for each in PAGES if call.search(each.read_text("utf-8"))]
