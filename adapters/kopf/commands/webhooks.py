"""Kopf's webhook servers: fnop's server, with the names of local clusters' hosts."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from fnop.adapters.webhooks.server import WebhookServer

__all__ = [
    "WebhookAutoServer",
    "WebhookAutoTunnel",
    "WebhookDockerDesktopServer",
    "WebhookK3dServer",
    "WebhookMinikubeServer",
    "WebhookNgrokTunnel",
    "WebhookServer",
]


class _HostedServer(WebhookServer):
    """A server that the API server of a local cluster reaches by a known name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"host": self.DEFAULT_HOST, **options})


class WebhookK3dServer(_HostedServer):
    """A server on this machine, for a cluster of k3d."""

    DEFAULT_HOST: ClassVar[str | None] = "host.k3d.internal"


class WebhookMinikubeServer(_HostedServer):
    """A server on this machine, for a cluster of minikube."""

    DEFAULT_HOST: ClassVar[str | None] = "host.minikube.internal"


class WebhookDockerDesktopServer(_HostedServer):
    """A server on this machine, for the cluster of Docker Desktop."""

    DEFAULT_HOST: ClassVar[str | None] = "host.docker.internal"


class _Refused:
    """A server that fnop does not have; the text says what to use.

    An operator may make one and then decide for another. It does not start with this.
    """

    REMEDY: str

    def __init__(self, **_options: Any) -> None:
        self.refusal = f"kopf.{type(self).__name__}: {self.REMEDY}"

    async def __call__(self, _fn: Any) -> NoReturn:
        raise NotImplementedError(self.refusal)


class WebhookNgrokTunnel(_Refused):
    """A tunnel of ngrok."""

    REMEDY = "fnop opens no tunnel; run ngrok, and name it in WebhookServer(host=...)"


class WebhookAutoTunnel(_Refused):
    """A detected server, or a tunnel."""

    REMEDY = "fnop opens no tunnel; use WebhookAutoServer() or WebhookServer(host=...)"


class WebhookAutoServer(WebhookServer):
    """A server whose host is that of the detected local cluster."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
