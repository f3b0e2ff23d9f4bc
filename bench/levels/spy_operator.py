"""The same ConfigMaps, read by an event handler that decides and keeps nothing."""

from typing import Any

import fnop

LABELS = {"fnop.dev/set": fnop.PRESENT}


@fnop.on.event("configmaps", labels=LABELS)
def seen(name: str, body: fnop.Body, **_: Any) -> None:
    pass
