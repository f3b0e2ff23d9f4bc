"""Configurations applied by hand, as the operator that they are for sees them."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.admission.configurations import (
    Group,
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.admission.unmanaged import astray
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role

CLAIMS = Resource("example.com", "v1", "claims", "Claim", "claim", namespaced=True)
URL = {"url": "https://hooks.example.com/acme"}


def service(**more: Any) -> dict[str, Any]:
    return {"service": {"namespace": "prod", "name": "claims", **more}}


@pytest.fixture
def groups() -> tuple[Group, ...]:
    registry = Registry()

    @fnop.on.validate("claims.example.com", registry=registry, id="judge")
    def judge(**_: Any) -> None:
        pass

    return groups_of(registry.handlers)


def applied(groups: tuple[Group, ...], client: Any, **how: Any) -> dict[str, Any]:
    about = Registration("acme.dev", client, **how)
    return configurations_of(groups, Catalogue((CLAIMS,)), about)[Role.VALIDATE]


@pytest.mark.parametrize(
    ("client", "own"),
    [
        (URL, URL),
        (URL, {**URL, "caBundle": "QQ=="}),
        (URL, {"url": "https://hooks.example.com"}),
        (URL, service()),
        (service(), URL),
        (service(), service(port=443)),
        (URL, {"url": "https://localhost:9443"}),
        ({"url": "https://127.0.0.1:9443"}, {"url": "https://localhost:9443"}),
    ],
)
def test_nothing_is_said_of_those_that_may_lead_here(
    groups: tuple[Group, ...], client: Any, own: Any
) -> None:
    assert astray(applied(groups, client), groups, own, labelled=True) == ""


@pytest.mark.parametrize(
    ("client", "own", "words"),
    [
        (URL, {"url": "https://hooks.example.com/other"}, URL["url"]),
        (URL, {"url": "https://hooks.example.com:8443/acme"}, URL["url"]),
        ({"url": "https://[::1]:1"}, {"url": "https://[::1]:2"}, "https://[::1]:1"),
        (service(), service(port=9443), "the Service prod/claims:443"),
        (service(name="a"), service(), "the Service prod/a:443"),
    ],
)
def test_those_that_lead_elsewhere_are_named(
    groups: tuple[Group, ...], client: Any, own: Any, words: str
) -> None:
    said = astray(applied(groups, client), groups, own, labelled=True)
    assert said.startswith("ValidatingWebhookConfiguration acme.dev leads to ")
    assert words in said
    assert "apply what fnop webhooks prints" in said


def test_webhooks_of_others_in_it_are_theirs(groups: tuple[Group, ...]) -> None:
    found = applied(groups, URL)
    for each in found["webhooks"]:
        each["name"] = "other.acme.dev"
    assert astray(found, groups, {"url": "https://b"}, labelled=True) == ""


def test_an_older_server_does_not_label_namespaces(groups: tuple[Group, ...]) -> None:
    for namespaces in (("default",), None):
        found = applied(groups, URL, namespaces=namespaces)
        assert astray(found, groups, URL, labelled=True) == ""
        said = astray(found, groups, URL, labelled=False)
        assert "kubernetes.io/metadata.name" in said
        assert "--kube-version" in said
        older = applied(groups, URL, namespaces=namespaces, labelled=False)
        assert astray(older, groups, URL, labelled=False) == ""
