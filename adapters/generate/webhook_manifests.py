"""The configurations of an operator's webhooks as manifests, without a cluster."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.adapters.common.loading import load
from fnop.adapters.common.manifests import read_manifests
from fnop.adapters.definitions.class_kinds import definitions_for
from fnop.adapters.testing.cases import definitions_beside
from fnop.adapters.webhooks.addresses import hosts_of
from fnop.core.admission.configurations import (
    CONFIGURATIONS,
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import joined
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters.check.campaign.explore import Case, prepared
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = ["WebhooksProblem", "catalogue_for", "manifests_for"]

Manifest = dict[str, Any]
_DEFINITION = "CustomResourceDefinition"
_CERT_MANAGER = "cert-manager.io"


class WebhooksProblem(Exception):
    """No configurations can be made; the text is one sentence with the remedy."""


def catalogue_for(
    program: Program, paths: Sequence[str], modules: Sequence[str], crds: Sequence[str]
) -> Catalogue:
    """The kinds that an operator's handlers may mean.

    They are Kubernetes' own kinds, the kinds of definitions (`crds`, or next to the
    operator), and the kinds of classes in its files that the handlers name.
    """
    found = read_manifests(crds) if crds else definitions_beside(paths)
    defined = [each for each in found if each.get("kind") == _DEFINITION]
    defined += definitions_for(program.handlers, defined, load(paths, modules))
    catalogue = catalogue_of(prepared(Case(program, defined)).base)
    named = [*_resources_by_name(program.handlers, catalogue)]
    return replace(catalogue, resources=(*catalogue.resources, *named))


def _resources_by_name(
    handlers: Iterable[Handler], catalogue: Catalogue
) -> Iterator[Resource]:
    """The kinds whose handlers name everything in a rule: group, version and plural."""
    unknown: dict[str, list[str]] = {}
    for each in handlers:
        selector = each.selector
        if each.role not in ADMISSION or selector is None or catalogue.find(selector):
            continue
        plural = selector.plural or selector.any_name
        if plural and selector.group is not None and selector.version:
            yield Resource(selector.group, selector.version, plural, "", plural)
        elif not selector.is_broad:
            unknown.setdefault(str(selector), []).append(each.id)
    for kind, names in unknown.items():
        raise WebhooksProblem(
            f"the version of {kind!r} is not known, so there is no rule for "
            f"{joined(names)}; give its definition with --crd"
        )


def manifests_for(
    program: Program,
    catalogue: Catalogue,
    about: Registration,
    *,
    cert_manager: bool = False,
    conditions: bool = True,
) -> list[Manifest]:
    """The configurations of a program's webhooks, except for those without webhooks.

    With `cert_manager` there are also an Issuer and a Certificate, whose CA bundle
    cert-manager injects into the configurations. Without `conditions` there are no
    match conditions: kubectl does not send them to an API server that lacks them.
    """
    groups = groups_of(program.handlers)
    if not groups:
        raise WebhooksProblem(
            "there are no admission handlers; declare one with @fnop.on.validate or "
            "@fnop.on.mutate"
        )
    made = configurations_of(groups, catalogue, about)
    found = [thaw_json(made[role]) for role in CONFIGURATIONS if made[role]["webhooks"]]
    if not found:
        raise WebhooksProblem(
            "none of the admission handlers has a kind that is known here; give its "
            "definition with --crd"
        )
    if not conditions:
        for webhook in (each for manifest in found for each in manifest["webhooks"]):
            webhook.pop("matchConditions", None)
    if not cert_manager:
        return found
    certificate = _Certificate.of(about)
    source = f"{certificate.namespace}/{certificate.name}"
    for each in found:
        each["metadata"]["annotations"] = {f"{_CERT_MANAGER}/inject-ca-from": source}
    return [*certificate.manifests(), *found]


class _Certificate(Struct, frozen=True):
    """A certificate of cert-manager, and the Secret with its name."""

    namespace: str
    name: str
    hosts: tuple[str, ...]

    @classmethod
    def of(cls, about: Registration) -> _Certificate:
        service: Mapping[str, Any] = about.client.get("service") or {}
        namespace = service.get("namespace") or about.namespace
        name = f"{service.get('name') or 'fnop'}-webhooks"
        return cls(namespace, name, hosts_of(about.client))

    def manifests(self) -> list[Manifest]:
        version = f"{_CERT_MANAGER}/v1"
        metadata = {"name": self.name, "namespace": self.namespace}
        addresses = [each for each in self.hosts if _is_address(each)]
        names = [each for each in self.hosts if each not in addresses]
        spec = {
            "secretName": self.name,
            **({"dnsNames": names} if names else {}),
            **({"ipAddresses": addresses} if addresses else {}),
            "issuerRef": {"kind": "Issuer", "name": self.name},
        }
        issuer = {"apiVersion": version, "kind": "Issuer", "metadata": metadata}
        return [
            {**issuer, "spec": {"selfSigned": {}}},
            {**issuer, "kind": "Certificate", "spec": spec},
        ]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
