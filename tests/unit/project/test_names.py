"""docs/reference/names.md has each public name, with its meaning."""

from __future__ import annotations

from types import ModuleType

import pytest

import fnop
import fnop.testing
from tests.names import OTHERS, PAGE, meaning_of, names_of, page


@pytest.mark.parametrize("module", [fnop, fnop.testing], ids=lambda each: each.__name__)
def test_each_public_name_has_a_meaning(module: ModuleType) -> None:
    found = {name: meaning_of(name, getattr(module, name)) for name in names_of(module)}
    assert [name for name, meaning in found.items() if not meaning] == []


def test_no_other_name_is_explained() -> None:
    assert set(OTHERS) <= {*names_of(fnop), *names_of(fnop.testing)}


def test_the_page_is_as_the_docstrings_are() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.names writes it again"
