"""Loaded after the example: its server listens on this machine alone."""

from typing import Any

import kopf


@kopf.on.startup()
def on_loopback(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.admission.server.addr = "127.0.0.1"
