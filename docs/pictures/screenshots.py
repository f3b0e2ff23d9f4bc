"""Screenshots of reports, from real recordings: a part of `make pictures`.

They need Chromium; without it, one line says so.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
from pathlib import Path
from typing import NamedTuple

from docs.pictures.diagrams import PICTURES, timeline_of_a_failure
from fnop.adapters.common.plain import echo
from fnop.adapters.recordings.html_report import page_of
from tests.browser import CHROMIUM, browser
from tests.commands import fnop
from tests.replicas import record_replicas

__all__ = ["pages_in"]


class Screenshot(NamedTuple):
    """A screenshot of a page, which is light or dark, with the cursor at its place."""

    name: str
    page: str
    width: int
    height: int
    dark: bool = False


SCREENSHOTS = (
    Screenshot("report", "failure", 1280, 1000),
    Screenshot("report-phone", "failure", 390, 844, dark=True),
    Screenshot("report-processes", "replicas", 1280, 900),
)
# Selects the first repair on a page.
_TO_REPAIR = "location.hash = document.querySelector('tr.repair')?.id ?? ''"
_PAINTED = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"


def pages_in(folder: Path) -> None:
    """Write the reports `failure.html` and `replicas.html` into a folder."""
    header, timeline = timeline_of_a_failure()
    page = page_of(header, timeline, "failure.fnop", cut_off=False)
    (folder / "failure.html").write_text(page)
    names = [each.name for each in record_replicas(folder)]
    fnop("replay", *names, "--html", "replicas.html", folder=folder)


async def take(folder: Path) -> None:
    """Take all screenshots of the pages in a folder."""
    async with browser() as tab:
        for each in SCREENSHOTS:
            await tab.prefer(dark=each.dark)
            url = (folder / f"{each.page}.html").as_uri()
            await tab.open(url, each.width, each.height)
            if each.page == "replicas":
                await tab.value(_TO_REPAIR)
                await tab.value(f"{_PAINTED}.then(() => scrollTo(0, 0))")
            await tab.value(_PAINTED)
            found = await tab.call("Page.captureScreenshot", format="webp", quality=80)
            file = PICTURES / f"{each.name}.webp"
            file.write_bytes(base64.b64decode(found["data"]))


def main() -> None:
    """Take all screenshots, if Chromium is installed."""
    if not CHROMIUM:
        echo("screenshots are skipped: no Chromium is installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        pages_in(Path(folder))
        asyncio.run(take(Path(folder)))


if __name__ == "__main__":
    main()
