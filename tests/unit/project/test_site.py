"""The site has every public name, and every page."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

import fnop
import fnop.testing
from tests.names import names_of
from tests.simulations import ROOT

_NAME = re.compile(
    r"(?m)^\.\. (?:auto(?:class|exception|function|data)|py:data):: (\w+)$"
)


def listed(module: str) -> list[str]:
    """The names of a module on the pages of the API reference."""
    pages = sorted((ROOT / "docs/api").glob("*.md"))
    texts = [each.read_text() for each in pages]
    marked = [t for t in texts if f".. currentmodule:: {module}\n" in t]
    return [name for text in marked for name in _NAME.findall(text)]


@pytest.mark.parametrize("module", [fnop, fnop.testing])
def test_the_reference_has_each_public_name_once(module: ModuleType) -> None:
    names = listed(module.__name__)
    assert sorted(names) == sorted(names_of(module))


def test_each_page_is_in_the_navigation() -> None:
    docs = ROOT / "docs"
    linked = {docs / "index.md"}
    for page in docs.rglob("*.md"):
        for tree in re.findall(r"(?ms)^```{toctree}\n(.*?)^```$", page.read_text()):
            lines = (each.strip() for each in tree.splitlines())
            files = (each for each in lines if each and not each.startswith(":"))
            linked |= {(page.parent / f"{each}.md").resolve() for each in files}
    assert {*docs.rglob("*.md")} == linked
