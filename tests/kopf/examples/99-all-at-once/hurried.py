"""Loaded after the example: a failed handler is tried again soon, not in a minute."""

from typing import Any

import kopf


@kopf.on.startup()
def hurry(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.execution.default_backoff = 1.0
