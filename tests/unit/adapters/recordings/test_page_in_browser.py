"""`fnop replay --html` in a browser: cursor, filter and widths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser import CHROMIUM, browser
from tests.checks import failure
from tests.commands import fnop
from tests.pages import page_text, read_recording, spoilt
from tests.replicas import record_replicas

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium is installed: apt-get install chromium"
)

CURRENT = "document.querySelector('tr[aria-current]')?.id"
PANEL = "document.querySelector('#panel').innerText"
SHOWN = "[...document.querySelectorAll('tr[id]')].filter(e => !e.hidden).length"
# A link is followed, and has been dealt with.
FOLLOWED = """new Promise(done => {
  addEventListener('hashchange', () => setTimeout(done));
  location.hash = '#5';
})"""
# The number of pixels by which the page is wider than its window.
OVERHANG = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    header, records = read_recording(failure(folder))
    (folder / "page.html").write_text(page_text(header, records))
    hostile = page_text(spoilt(header), [spoilt(each) for each in records])
    (folder / "hostile.html").write_text(hostile)
    record_replicas(folder)
    done = fnop("replay", "--html", "replicas.html", ".", folder=folder)
    assert done.status == 0, done.err
    return folder


async def test_the_cursor_goes_by_keys(pages: Path) -> None:
    url = (pages / "page.html").as_uri()
    async with browser() as tab:
        await tab.open(url)
        first = await tab.value(CURRENT)  # the step of the fault
        panel = await tab.value(PANEL)
        assert "crash after `create secrets/x-a`" in panel
        assert "Truth | what the handler saw" in panel
        assert "secrets/x-a unseen it is in version" in panel
        await tab.press("ArrowRight")
        following = await tab.value(CURRENT)
        assert following != first
        assert await tab.value("location.hash") == f"#{following}"
        assert await tab.value(PANEL) != panel
        await tab.press("ArrowLeft")
        assert await tab.value(CURRENT) == first
        # The request before it has written the object that the cursor is at.
        await tab.press("p")
        written = await tab.value(f"document.getElementById({CURRENT}).className")
        assert written == "send"
        at = await tab.value(CURRENT)
        await tab.press("p")
        assert await tab.value(CURRENT) == at  # no event has written it before
        assert tab.complaints() == []
        assert tab.asked() == [url]


async def test_links_lead_into_folded_groups(pages: Path) -> None:
    url = (pages / "page.html").as_uri()
    async with browser() as tab:
        await tab.open(f"{url}#1")
        assert await tab.value(CURRENT) == "1"
        folded = "document.getElementById('1').closest('details.eq')"
        assert await tab.value(f"{folded}.open") is True
        assert await tab.value("document.getElementById('1').checkVisibility()")
        await tab.value(FOLLOWED)
        assert await tab.value(CURRENT) == "5"
        # Next to an event that is not a decision is the operator's view.
        assert "Truth | what the operator saw" in await tab.value(PANEL)
        assert tab.complaints() == []


async def test_the_filter(pages: Path) -> None:
    async with browser() as tab:
        await tab.open((pages / "page.html").as_uri())
        every = await tab.value(SHOWN)
        await tab.press("/", *"patch")
        some = await tab.value(SHOWN)
        assert 0 < some < every
        told = await tab.value("document.querySelector('#told').textContent")
        assert told == (f"{some} events" if some > 1 else "1 event")
        await tab.press("Escape")
        assert await tab.value(SHOWN) == every
        before = await tab.value(CURRENT)
        await tab.press("ArrowRight")
        assert await tab.value(CURRENT) != before
        assert tab.complaints() == []


async def test_the_cursor_shows_the_state_of_each_process(pages: Path) -> None:
    url = (pages / "replicas.html").as_uri()
    async with browser() as tab:
        # The second process has not seen yet that the first one has repaired the child.
        # A row has no `innerText` before the browser has laid it out.
        find = "[...document.querySelectorAll('tr.shown')].find(e => {}).id"
        await tab.open(url)
        row = "/pod-b sees .* deleted/.test(e.textContent)"
        step = await tab.value(find.format(row))
        await tab.value(f"location.hash = '#{step}'; new Promise(setTimeout)")
        panel = await tab.value(PANEL)
        one, two = panel.partition("Process pod-a")[2].split("Process pod-b")
        assert "leading: lease default/operator is held" in one
        assert "as it is" in one
        assert "standing by: lease default/operator is held by pod-a" in two
        assert "1 revision old" in two
        assert tab.complaints() == []


@pytest.mark.parametrize("name", ["page", "replicas"])
@pytest.mark.parametrize("width", [1280, 500, 390])
async def test_it_fits_its_window(pages: Path, width: int, name: str) -> None:
    async with browser() as tab:
        await tab.open((pages / f"{name}.html").as_uri(), width)
        assert await tab.value(OVERHANG) <= 0
        assert await tab.value("document.querySelector('td.n').offsetWidth") < 80
        await tab.press("ArrowRight")
        assert await tab.value(OVERHANG) <= 0


async def test_what_is_hostile_stays_text(pages: Path) -> None:
    """No element comes of it, neither of the page's text nor of the script's."""
    async with browser() as tab:
        await tab.open((pages / "hostile.html").as_uri())
        rows: Any = await tab.value("document.querySelectorAll('tr[id]').length")
        for _ in range(int(rows)):
            await tab.press("ArrowRight")
        assert "onerror=alert(1)" in await tab.value(PANEL)
        assert await tab.value("document.images.length") == 0
        assert await tab.value("document.scripts.length") == 2
        assert tab.complaints() == []
        assert len(tab.asked()) == 1
