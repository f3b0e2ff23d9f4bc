"""Kopf's webhook servers."""

from __future__ import annotations

from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.running.startup import ActivityError
from fnop.adapters.webhooks.server import WebhookServer

theirs = pytest.importorskip("kopf")

HOSTED = ("WebhookK3dServer", "WebhookMinikubeServer", "WebhookDockerDesktopServer")


@pytest.mark.parametrize("name", HOSTED)
def test_a_local_cluster_reaches_its_host(name: str) -> None:
    cls = getattr(kopf, name)
    wanted = getattr(theirs, name).DEFAULT_HOST
    assert wanted == cls.DEFAULT_HOST
    assert isinstance(cls(), WebhookServer)
    assert cls().host == wanted
    assert cls(host="own.example.com", port=5).host == "own.example.com"


def test_a_server_takes_the_options_of_kopf() -> None:
    server = kopf.WebhookAutoServer(port=5, path="/x", insecure=True)
    assert isinstance(server, kopf.WebhookServer)
    assert (server.port, server.path, server.insecure) == (5, "/x", True)
    with pytest.raises(TypeError, match="unknown"):
        kopf.WebhookK3dServer(unknown=1)


@pytest.mark.parametrize("name", ["WebhookNgrokTunnel", "WebhookAutoTunnel"])
def test_a_tunnel_is_refused_with_the_remedy(name: str) -> None:
    cls: Any = getattr(kopf, name)
    for options in ({}, {"token": "t", "port": 5}):
        with pytest.raises(
            NotImplementedError, match=rf"kopf\.{name}: .*WebhookServer"
        ):
            cls(**options)


async def test_a_refused_server_ends_an_operator_that_starts() -> None:
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(id="configure", registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.admission.server = kopf.WebhookNgrokTunnel()

    with pytest.raises(ActivityError, match=r"configure has failed.* opens no tunnel"):
        await kopf.operator(registry=registry, clusterwide=True)
