"""Loaded after the example: its server listens on this machine alone.

Its certificate is a file, and it detects no cluster: the library that Kopf uses for
both does not know today's OpenSSL.
"""

import os
import pathlib
from typing import Any

import kopf

CERTIFICATES = pathlib.Path(os.environ["REPLICA_CERTIFICATES"])


async def no_host() -> None:
    """No cluster is detected."""


@kopf.on.startup()
def on_loopback(settings: kopf.OperatorSettings, **_: Any) -> None:
    server = settings.admission.server
    assert isinstance(server, kopf.WebhookAutoServer)
    vars(server)["guess_host"] = no_host
    server.addr = "127.0.0.1"
    server.certfile = CERTIFICATES / "server.crt"
    server.pkeyfile = CERTIFICATES / "server.key"
    server.cafile = CERTIFICATES / "ca.crt"
