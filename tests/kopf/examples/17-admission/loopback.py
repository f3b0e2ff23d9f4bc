"""Loaded after the example: its server listens on this machine alone.

Its certificate is a file, because Kopf's generated ones need an old OpenSSL.
"""

import os
import pathlib
from typing import Any

import kopf

CERTIFICATES = pathlib.Path(os.environ["REPLICA_CERTIFICATES"])


@kopf.on.startup()
def on_loopback(settings: kopf.OperatorSettings, **_: Any) -> None:
    server = settings.admission.server
    assert isinstance(server, kopf.WebhookAutoServer)
    server.addr = "127.0.0.1"
    server.certfile = CERTIFICATES / "server.crt"
    server.pkeyfile = CERTIFICATES / "server.key"
    server.cafile = CERTIFICATES / "ca.crt"
