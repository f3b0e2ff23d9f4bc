"""Look at reports and at the built site in a browser: `make look`.

Pages are opened in several widths, light and dark. A page may not be wider than its
window, and axe-core may not find a serious defect of accessibility. Without Chromium or
axe-core, one line says so.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docs.pictures.screenshots import pages_in
from fnop.adapters.common.plain import echo
from tests.browser import CHROMIUM, Tab, browser

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
AXE = ROOT / "build" / "look" / "node_modules" / "axe-core" / "axe.min.js"

# Pages of the site: the first one, the tutorial, a how-to and a reference page.
SITE_PAGES = (
    "index.html",
    "tutorial/index.html",
    "how-to/check-an-operator.html",
    "reference/handlers.html",
)

_OVERHANG = (
    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
)
_SERIOUS = """axe.run(document, {resultTypes: ['violations']}).then(found =>
  JSON.stringify(found.violations
    .filter(e => ['serious', 'critical'].includes(e.impact))
    .map(e => [e.id, e.nodes.length, e.nodes.slice(0, 3).map(n =>
      n.target.join(' ') + ': ' + (n.any[0]?.message || n.failureSummary))])))"""


class View(NamedTuple):
    """A page in a window of this width, light or dark."""

    file: Path
    width: int
    dark: bool

    def __str__(self) -> str:
        shade = "dark" if self.dark else "light"
        in_site = self.file.is_relative_to(SITE)
        name = self.file.relative_to(SITE) if in_site else self.file.name
        return f"{name} at {self.width} px, {shade}"


def views(reports: Path) -> Iterator[View]:
    """All views of the reports, and of the site if it is built."""
    shades = (False, True)
    for name in ("failure.html", "replicas.html"):
        for width in (390, 500, 1280):
            yield from (View(reports / name, width, dark) for dark in shades)
    if not SITE.is_dir():
        echo("the site is skipped: make docs builds it")
        return
    for page in SITE_PAGES:
        # The page may be in any folder of the site.
        file = next(iter(sorted(SITE.rglob(page), key=lambda e: len(e.parts))))
        for width in (390, 1280):
            yield from (View(file, width, dark) for dark in shades)


async def defects(tab: Tab, view: View) -> list[str]:
    """The defects of a view, in words."""
    await tab.prefer(dark=view.dark)
    await tab.open(view.file.as_uri(), view.width)
    found = []
    overhang = await tab.value(_OVERHANG)
    if overhang > 0:
        found.append(f"it is {overhang} px wider than its window")
    await tab.value(f"{AXE.read_text()};0")
    serious: Any = json.loads(await tab.value(_SERIOUS))
    found += [f"{rule}, {count} times: {nodes}" for rule, count, nodes in serious]
    return found


async def look(reports: Path) -> int:
    """Print the defects of all views; return their number."""
    number = seen = 0
    async with browser() as tab:
        for view in views(reports):
            seen += 1
            for each in await defects(tab, view):
                number += 1
                echo(f"{view}: {each}")
    echo(f"{seen} views, {number} defects")
    return number


def main() -> None:
    """Look at all pages; exit with 1 if one has a defect."""
    if not CHROMIUM or not AXE.is_file():
        what = "axe-core" if CHROMIUM else "Chromium"
        echo(f"the look at the pages is skipped: {what} is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        pages_in(Path(folder))
        sys.exit(min(1, asyncio.run(look(Path(folder)))))


if __name__ == "__main__":
    main()
