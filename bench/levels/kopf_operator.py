"""The same spy, written with Kopf."""

from typing import Any

import kopf


@kopf.on.event("configmaps", labels={"fnop.dev/set": kopf.PRESENT})
def seen(name: str, body: Any, **_: Any) -> None:
    pass
