"""The same ConfigMaps, looked at by a spy: nothing is decided, nothing is kept."""

from typing import Any

import fnop

LABELS = {"fnop.dev/set": fnop.PRESENT}


@fnop.on.event("configmaps", labels=LABELS)
def seen(name: str, body: fnop.Body, **_: Any) -> None:
    pass
