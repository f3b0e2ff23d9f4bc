"""The server of webhooks, called by a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import fnop
from fnop.adapters.kubernetes.client import connect
from fnop.adapters.webhooks.certificates import Own
from fnop.adapters.webhooks.server import WebhookServer
from fnop.adapters.webhooks.shared import SharedSecret
from fnop.core.admission.certificates import Lifetimes
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.runtime.clock import SystemClock
from tests.cluster.envtest import ApiServer
from tests.patience import patience, soon
from tests.webhook_servers import fn_of, serving

pytest.importorskip("cryptography")
GROUP = "/apis/admissionregistration.k8s.io/v1"
MERGE_PATCH = "application/merge-patch+json"
RULE = {
    **{"apiGroups": [""], "apiVersions": ["v1"]},
    **{"resources": ["configmaps"], "operations": ["*"]},
}
LOCAL: dict[str, Any] = {"addr": "127.0.0.1", "file_check_interval": 0.1}


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @fnop.on.mutate("configmaps", registry=registry, id="sized")
    def sized(body: Any, patch: Any, **_: Any) -> None:
        if "size" not in body.get("data", {}):
            patch["data"] = {"size": "1"}

    @fnop.on.validate("configmaps", registry=registry, id="small")
    def small(body: Any, warnings: list[str], **_: Any) -> None:
        size = int(body["data"]["size"])
        if size > 100:
            raise fnop.Denied("it is too large", field="data.size")
        if size > 10:
            warnings.append("it is large")

    return registry


class Webhooks:
    """The configurations of webhooks in a namespace, and writes there."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self.bundles: list[str] = []
        self._count = 0

    def configure(self, config: Any, names: dict[str, str]) -> None:
        """Register webhooks, by the sort of their configurations, or change them."""
        for sort, name in names.items():
            kind = f"{sort}WebhookConfiguration"
            hook = {
                "name": f"{name}.example.com",
                "clientConfig": {**config, "url": f"{config['url']}/{name}"},
                "rules": [RULE],
                "namespaceSelector": {"matchLabels": {"hooks": self._namespace}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 20,
            }
            manifest = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": self._namespace},
                "webhooks": [hook],
            }
            path = f"{GROUP}/{kind.lower()}s"
            status, answer = self._api.raw("POST", path, manifest)
            if status == 409:
                change = {"webhooks": [hook]}
                path = f"{path}/{self._namespace}"
                status, answer = self._api.raw("PATCH", path, change, MERGE_PATCH)
            assert status in (200, 201), answer
        self.bundles.append(config["caBundle"])

    def remove(self) -> None:
        for sort in ("mutating", "validating"):
            path = f"{GROUP}/{sort}webhookconfigurations/{self._namespace}"
            self._api.raw("DELETE", path)

    def label(self) -> None:
        """Have the webhooks asked about this namespace."""
        change = {"metadata": {"labels": {"hooks": self._namespace}}}
        path = f"/api/v1/namespaces/{self._namespace}"
        assert self._api.raw("PATCH", path, change, MERGE_PATCH)[0] == 200

    def write(self, **data: str) -> tuple[int, Any, list[str]]:
        """Create a ConfigMap: the answer and its warnings."""
        self._count += 1
        metadata = {"name": f"c-{self._count}"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        path = f"/api/v1/namespaces/{self._namespace}/configmaps"
        status, answer = self._api.raw("POST", path, {**body, "data": data})
        return status, answer, [*self._api.warnings]

    async def follow(self, configs: AsyncIterator[Any], names: dict[str, str]) -> None:
        async for config in configs:
            await asyncio.to_thread(self.configure, config, names)


@asynccontextmanager
async def registered(
    webhooks: Webhooks, server: WebhookServer, registry: Registry, **names: str
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve, and keep the configurations for as long as the block."""
    async with serving(server, fn_of(registry)) as configs:
        task = asyncio.create_task(webhooks.follow(configs, names))
        try:
            await soon(lambda: webhooks.bundles or task.done())
            yield task
            assert not task.done(), task
        finally:
            await asyncio.to_thread(webhooks.remove)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_writes_are_changed_warned_about_and_denied(
    apiserver: ApiServer, namespace: str, registry: Registry
) -> None:
    webhooks = Webhooks(apiserver, namespace)
    webhooks.label()
    async with registered(
        webhooks, WebhookServer(**LOCAL), registry, Mutating="sized", Validating="small"
    ):
        # The API server hears of a configuration a moment later.
        await soon(lambda: asyncio.to_thread(is_asked, webhooks), every=0.05)
        assert (await asyncio.to_thread(webhooks.write))[1]["data"] == {"size": "1"}
        status, _, warnings = await asyncio.to_thread(webhooks.write, size="11")
        assert (status, warnings) == (201, ["it is large"])
        status, answer, _ = await asyncio.to_thread(webhooks.write, size="101")
    assert status == 422
    assert answer["reason"] == "Invalid"
    assert answer["message"] == (
        'admission webhook "small.example.com" denied the request: it is too large'
    )
    assert answer["details"]["causes"][0]["field"] == "data.size"


def is_asked(webhooks: Webhooks) -> bool:
    """Whether the API server has heard of both configurations."""
    is_denied = webhooks.write(size="1000")[0] == 422
    return is_denied and webhooks.write()[1].get("data") == {"size": "1"}


@pytest.mark.parametrize("sort", ["Validating", "Mutating"])
async def test_a_webhook_of_another_version_asks_all_handlers(
    apiserver: ApiServer, namespace: str, registry: Registry, sort: str
) -> None:
    webhooks = Webhooks(apiserver, namespace)
    webhooks.label()

    def is_denied() -> bool:
        status, answer, _ = webhooks.write(size="101")
        is_by_it = 'webhook "gone.example.com" denied' in answer.get("message", "")
        return status == 422 and is_by_it

    server = WebhookServer(**LOCAL)
    async with registered(webhooks, server, registry, **{sort: "gone"}):
        await soon(lambda: asyncio.to_thread(is_denied), every=0.05)
        # To a validating webhook the API server allows no patch.
        data = {"size": "1"} if sort == "Validating" else {}
        status, made, _ = await asyncio.to_thread(lambda: webhooks.write(**data))
        assert (status, made["data"]) == (201, {"size": "1"})


class Hurried(SystemClock):
    """A clock on which twenty seconds pass as one."""

    def __init__(self) -> None:
        self._began = super().now().wall

    def now(self) -> Any:
        found = super().now()
        return found._replace(wall=self._began + 20 * (found.wall - self._began))


async def test_no_write_fails_while_certificates_are_renewed(
    apiserver: ApiServer, namespace: str, registry: Registry
) -> None:
    class Hasty(WebhookServer):
        lifetimes = Lifetimes(authority=120.0, leaf=60.0, overlap=30.0)
        clock = Hurried()

    webhooks = Webhooks(apiserver, namespace)
    webhooks.label()
    async with registered(
        webhooks, Hasty(**LOCAL), registry, Mutating="sized", Validating="small"
    ) as following:
        await soon(lambda: asyncio.to_thread(is_asked, webhooks), every=0.05)
        writes, begun = 0, SystemClock().now().mono
        async with asyncio.timeout(patience(60)):
            while len(webhooks.bundles) < 4 and not following.done():
                status, answer, _ = await asyncio.to_thread(webhooks.write)
                assert status == 201, answer
                writes += 1
        seconds = SystemClock().now().mono - begun
    assert writes > len(webhooks.bundles)
    print(f"{writes} writes, {writes / seconds:.0f} in a second, and none failed")


async def test_replicas_that_start_at_once_end_with_one_authority(
    apiserver: ApiServer, namespace: str
) -> None:
    api = await connect(kubeconfig=str(apiserver.kubeconfig), context=None)
    now = SystemClock().now().wall
    try:
        replicas = [
            Own(["h"], Lifetimes(), SharedSecret(api, namespace, "hooks"))
            for _ in range(4)
        ]
        served = await asyncio.gather(*(each.at(now) for each in replicas))
        assert len({each.bundle for each in served}) == 1
        later = now + 300 * 86_400  # when an authority is renewed
        await asyncio.gather(*(each.at(later) for each in replicas))
        again = await asyncio.gather(*(each.at(later) for each in replicas))
        assert {each.bundle.count(b"BEGIN CERT") for each in again} == {2}
        assert len({each.bundle for each in again}) == 1
    finally:
        await api.close()
