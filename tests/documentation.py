"""The pages of the documentation, and the Python in them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.simulations import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


# The tutorial's pages build on each other: test_tutorial follows them.
ALONE = [each for each in PAGES if each.parent.name != "tutorial"]


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(text: str) -> list[str]:
    """The Python in a page."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
