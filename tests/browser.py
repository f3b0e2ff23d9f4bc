"""A Chromium without a window, over its DevTools protocol."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.patience import patience

__all__ = ["CHROMIUM", "Tab", "browser"]

Json = dict[str, Any]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), "")
"""The program; "" where there is none."""

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--hide-scrollbars"),
    *("--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
)


class Tab:
    """A tab, and its reports so far: `events` by the protocol's names."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[Json] = []

    async def call(self, method: str, **params: Any) -> Json:
        """Do something, as the protocol names it."""
        self._number += 1
        number = self._number
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            found = await self._next()
            if found.get("id") == number:
                assert "error" not in found, found
                result: Json = found["result"]
                return result

    async def _next(self) -> Json:
        message = await asyncio.wait_for(self._socket.receive(), patience(20))
        found: Json = message.json()
        if "method" in found:
            self.events.append(found)
        return found

    async def open(self, url: str, width: int = 1280, height: int = 800) -> None:
        """Load a page in a window of this size."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1},
            mobile=False,
        )
        await self.call("Page.setLifecycleEventsEnabled", enabled=True)
        loader = (await self.call("Page.navigate", url=url))["loaderId"]
        while not any(_is_loaded(each, loader) for each in self.events):
            await self._next()

    async def prefer(self, *, dark: bool) -> None:
        """Let the reader's system be light or dark."""
        value = "dark" if dark else "light"
        feature = {"name": "prefers-color-scheme", "value": value}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def value(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise, once it is kept."""
        found = await self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, *keys: str) -> None:
        """Press keys, by their names."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def complaints(self) -> list[Json]:
        """Errors and whatever else was written to the console."""
        words = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [
            each for each in self.events if each["method"] in (*words, "Log.entryAdded")
        ]

    def asked(self) -> list[str]:
        """The addresses that the page has asked for."""
        return [
            each["params"]["request"]["url"]
            for each in self.events
            if each["method"] == "Network.requestWillBeSent"
        ]


def _is_loaded(event: Json, loader: str) -> bool:
    if event["method"] != "Page.lifecycleEvent":
        return False
    found = event["params"]
    return bool(found["name"] == "load" and found["loaderId"] == loader)


@asynccontextmanager
async def browser() -> AsyncIterator[Tab]:
    """A browser of its own, with one tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            *(CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"),
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            address = await asyncio.wait_for(_address(process), patience(20))
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://{address}/json") as response:
                    tabs = await response.json()
                (url,) = (
                    each["webSocketDebuggerUrl"]
                    for each in tabs
                    if each["type"] == "page"
                )
                async with session.ws_connect(url, max_msg_size=0) as socket:
                    yield Tab(socket)
        finally:
            process.kill()
            await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        found = re.search(rb"listening on ws://([^/]+)/", line)
        if found:
            return found[1].decode()
    raise AssertionError("the browser has ended before it listened")
