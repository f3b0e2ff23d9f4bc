"""Orders with prices of a shop's API, which a simulated run does not reach."""

import json
import urllib.request
from typing import Any

import fnop


def price_of(item: str) -> float:
    """Ask the shop; runs outside, so a simulated run needs a model of it."""
    with urllib.request.urlopen(f"https://shop.example.com/{item}") as response:
        return float(response.read())


@fnop.on.create("fnopexamples")
async def total(spec: fnop.Spec, **_: Any) -> dict[str, float]:
    prices = [await fnop.call(price_of, item=item) for item in spec["items"]]
    return {"euro": sum(prices)}


@fnop.on.create("fnopexamples", impure=True, retries=3)
def announce(name: str, retry: int, patch: fnop.Patch, **_: Any) -> None:
    """Talks to the world by itself: a simulated run needs a model of all of it."""
    order = json.dumps({"order": name, "attempt": retry}).encode()
    with urllib.request.urlopen("https://mail.example.com", data=order) as response:
        patch.status["mail"] = response.status
