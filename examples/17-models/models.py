"""Models that stand in for the outside world of `orders.py` in a simulated run.

Each function stands for the called function, or the impure handler, of its name. It
gets the same arguments (of a handler's, those that the handler names) and answers the
same things.
"""

import fnop

PRICES = {"item1": 2.5, "item2": 4.0}


def price_of(item: str) -> float:
    if item not in PRICES:
        raise fnop.PermanentError(f"nobody sells {item}")
    return PRICES[item]


def announce(name: str, retry: int, patch: fnop.Patch) -> None:
    if retry == 0:
        raise fnop.TemporaryError(f"{name}: the mail server is busy", delay=30)
    patch.status["mail"] = 202
