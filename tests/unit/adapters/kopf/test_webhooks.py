"""Kopf's webhook servers."""

from __future__ import annotations

from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.running.handlers import handlers_of
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.states import KopfStates
from fnop.adapters.kopf.running.translation import Unsupported, settings_of
from fnop.adapters.webhooks.server import WebhookServer
from fnop.core.admission.configurations import (
    Registration,
    asked_by,
    configurations_of,
    groups_of,
)
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.lifecycles import asap
from tests.unit.adapters.kopf.simulated import author_loop

theirs = pytest.importorskip("kopf")
references = pytest.importorskip("kopf._cogs.structs.references")
build_webhooks = pytest.importorskip("kopf._core.engines.admission").build_webhooks

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
async def test_a_tunnel_is_refused_with_the_remedy(name: str) -> None:
    tunnel: Any = getattr(kopf, name)(token="t", port=5)
    with pytest.raises(NotImplementedError, match=rf"kopf\.{name}: .*WebhookServer"):
        await tunnel(print)


async def test_a_tunnel_may_be_made_if_another_server_is_chosen() -> None:
    settings = kopf.OperatorSettings()
    settings.admission.server = kopf.WebhookNgrokTunnel(token="t")
    settings.admission.server = kopf.WebhookServer()
    states = KopfStates(settings.persistence)
    assert settings_of(settings, (), asap, states, 0.0).admission_server is not None


async def test_a_tunnel_ends_an_operator_that_starts() -> None:
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(id="configure", registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.admission.server = kopf.WebhookNgrokTunnel()

    with pytest.raises(Unsupported, match=r"kopf\.WebhookNgrokTunnel: .*no tunnel"):
        await kopf.operator(registry=registry, clusterwide=True)


# ------------------------------------------------------------------- configurations

GATES = ("example.com", "v1", "gates")
SERVED = Catalogue((Resource(*GATES, "Gate", "gate"),))
KOPFS_GATES = references.Resource(*GATES, kind="Gate", namespaced=True)


def configured(registry: OperatorRegistry) -> list[Any]:
    """The webhooks that fnop registers for the handlers of an operator."""
    with author_loop() as loop:
        mine = Operator(registry, kopf.OperatorSettings(), None, loop)
        groups = groups_of(handlers_of(mine))
    about = Registration("x.dev", {"url": "https://host/base"}, labelled=False)
    made = configurations_of(groups, SERVED, about)
    for group in groups:
        assert asked_by(groups, group.path) == group.ids
    return [webhook for each in made.values() for webhook in each["webhooks"]]


DECLARED: dict[str, Any] = {
    "nothing_else": {},
    "with_operations": {"operations": ["CREATE", "UPDATE"]},
    "of_a_field": {"field": "spec.keeper"},
    "with_side_effects": {"side_effects": True},
    "ignored": {"ignore_failures": True},
    "labelled": {"labels": {"a": "PRESENT", "c": "ABSENT"}},
    "named": {"id": "An.id/with_parts"},
    "of_status": {"subresource": "status"},
}


@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize("verb", ["validate", "mutate"])
def test_each_handler_has_the_webhook_that_kopf_registers(name: str, verb: str) -> None:
    def judge(**_: Any) -> None:
        """Admit everything."""

    judge.__name__ = judge.__qualname__ = name
    found = []
    for module in (kopf, theirs):
        registry = module.OperatorRegistry()
        options = dict(DECLARED[name])
        if "labels" in options:
            labels = options["labels"].items()
            options["labels"] = {key: getattr(module, name) for key, name in labels}
        getattr(module.on, verb)(*GATES, registry=registry, **options)(judge)
        found.append(registry)
    ours, wanted = found
    (expected,) = build_webhooks(
        wanted._webhooks.get_all_handlers(),
        resources=[KOPFS_GATES],
        name_suffix="x.dev",
        client_config={"url": "https://host/base"},
    )
    expected |= {"namespaceSelector": {}}
    expected["objectSelector"] = expected["objectSelector"] or {}
    if verb == "mutate":
        expected["reinvocationPolicy"] = "Never"
    assert configured(ours) == [expected]
