"""Bundles for the Operator Lifecycle Manager, made of an operator's known facts.

A bundle is a folder: `manifests/` with a ClusterServiceVersion and the definitions of
the kinds that the operator owns, `metadata/annotations.yaml`, and a Dockerfile.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from fnop.adapters.common.manifests import dump_yaml
from fnop.adapters.generate.olm_about import About, BundleProblem
from fnop.adapters.generate.rights import Study, Wishes
from fnop.adapters.generate.roles import rules_for
from fnop.adapters.testing.cases import SERVING
from fnop.adapters.webhooks.addresses import SERVICE_PORT
from fnop.core.admission.configurations import (
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.admission.keeping import WEBHOOKS
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.roles import ROLES, Family
from fnop.core.handlers.program.rights import Need
from fnop.effects.values import thaw_json

__all__ = ["ANNOTATIONS", "PREFIX", "made"]

PREFIX = "operators.operatorframework.io.bundle."
ANNOTATIONS = {
    f"{PREFIX}mediatype.v1": "registry+v1",
    f"{PREFIX}manifests.v1": "manifests/",
    f"{PREFIX}metadata.v1": "metadata/",
}

Manifest = dict[str, Any]
_UI = "urn:alm:descriptor:com.tectonic.ui:"
_CONDITIONS = "urn:alm:descriptor:io.kubernetes.conditions"
# Consoles do not show deeper fields.
_DEPTH_MAX = 3


def made(study: Study, wishes: Wishes, about: About) -> dict[str, str]:
    """The files of the bundle: their texts, by path. Raises `BundleProblem`."""
    owned, required = _definitions(study)
    csv = _version(study, wishes, about, owned, required)
    name = about.package
    files = {f"manifests/{name}.clusterserviceversion.yaml": dump_yaml([csv])}
    for each in owned:
        crd = {key: value for key, value in each.items() if key != "status"}
        files[f"manifests/{each['metadata']['name']}.crd.yaml"] = dump_yaml([crd])
    notes = _annotations(about)
    files["metadata/annotations.yaml"] = dump_yaml([{"annotations": notes}])
    files["bundle.Dockerfile"] = _dockerfile(notes)
    return files


def _annotations(about: About) -> dict[str, str]:
    return {
        **ANNOTATIONS,
        f"{PREFIX}package.v1": about.package,
        f"{PREFIX}channels.v1": ",".join(about.channels),
        f"{PREFIX}channel.default.v1": about.channels[0],
    }


def _dockerfile(annotations: Mapping[str, str]) -> str:
    labels = "\n".join(f"LABEL {key}={value}" for key, value in annotations.items())
    return (
        f"FROM scratch\n\n{labels}\n\n"
        "COPY manifests /manifests/\nCOPY metadata /metadata/\n"
    )


# -------------------------------------------------------------------- definitions


def _definitions(study: Study) -> tuple[list[Manifest], list[Manifest]]:
    """The definitions of kinds that the operator owns, and of kinds that it needs."""
    if study.subjects.made_up:
        names, searched = ", ".join(study.subjects.made_up), study.subjects.searched
        why = f": {searched}" if searched else ""
        raise BundleProblem(
            f"there is no definition of {names}{why}; give it with --crd"
        )
    catalogue = Catalogue(tuple(study.kinds))
    handled: set[tuple[str, str]] = set()
    # An operator that serves no kind exists for the kinds that it admits.
    for families in (SERVING, {Family.ADMISSION}):
        handled = handled or {
            (kind.group, kind.plural)
            for handler in study.program.handlers
            if handler.selector is not None and handler.rule.family in families
            for kind in catalogue.find(handler.selector)
        }
    asked = {(each.right.group, each.right.resource) for each in study.needs}
    owned, required = [], []
    for each in study.subjects.definitions:
        kind = (each["spec"]["group"], each["spec"]["names"]["plural"])
        if kind in handled:
            owned.append(each)
        elif kind in asked:
            required.append(each)
    return owned, required


def _described_versions(
    definition: Manifest, study: Study, *, is_owned: bool
) -> Iterator[Manifest]:
    """An entry for each version of a kind that is served."""
    spec = definition["spec"]
    kind = spec["names"]["kind"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        entry = {
            "name": definition["metadata"]["name"],
            "version": version["name"],
            "kind": kind,
            "displayName": _words_of(kind),
            "description": schema.get("description") or f"{_words_of(kind)}.",
        }
        if is_owned:
            parts = schema.get("properties") or {}
            entry |= {
                "resources": [*_children(study)],
                "specDescriptors": [
                    *_descriptors(parts.get("spec") or {}, _spec_descriptors)
                ],
                "statusDescriptors": [
                    *_descriptors(parts.get("status") or {}, _status_descriptors)
                ],
            }
        yield {key: value for key, value in entry.items() if value != []}


def _words_of(name: str) -> str:
    """A name as people read it.

    >>> _words_of("FnopExample"), _words_of("maxReplicas"), _words_of("spec.tlsSecret")
    ('Fnop Example', 'Max Replicas', 'Tls Secret')
    """
    last = name.rpartition(".")[2]
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", last) or [last]
    return " ".join(word[:1].upper() + word[1:] for word in words)


def _children(study: Study) -> Iterator[Manifest]:
    """The kinds of objects that handlers create."""
    kinds: dict[tuple[str, str], Resource] = {}
    for kind in study.kinds:
        if kind.preferred:
            kinds.setdefault((kind.group, kind.plural), kind)
    created = {
        (each.right.group, each.right.resource)
        for each in study.needs
        if each.right.verb == "create" and each.who.is_handler
    }
    for key in sorted(created - {("", "events")}):
        if key in kinds:
            found = kinds[key]
            yield {"kind": found.kind, "name": "", "version": found.api_version}


def _descriptors(
    schema: Mapping[str, Any], hint: Any, path: str = "", depth: int = 0
) -> Iterator[Manifest]:
    for name, inner in (schema.get("properties") or {}).items():
        where = f"{path}.{name}" if path else name
        if inner.get("type") == "object" and inner.get("properties"):
            if depth < _DEPTH_MAX:
                yield from _descriptors(inner, hint, where, depth + 1)
            continue
        found = {"path": where, "displayName": _words_of(where)}
        if inner.get("description"):
            found["description"] = inner["description"]
        hints = hint(name, inner)
        yield {**found, **({"x-descriptors": hints} if hints else {})}


_HINTS = {"integer": "number", "number": "number", "boolean": "booleanSwitch"}


def _spec_descriptors(name: str, schema: Mapping[str, Any]) -> list[str]:
    if schema.get("enum"):
        return [f"{_UI}select:{value}" for value in schema["enum"]]
    hint = _HINTS.get(schema.get("type", ""))
    if schema.get("type") == "string":
        hint = "text"
    return [f"{_UI}{hint}"] if hint else []


def _status_descriptors(name: str, schema: Mapping[str, Any]) -> list[str]:
    return [_CONDITIONS] if name == "conditions" else []


# ------------------------------------------------------------------------ version


def _version(
    study: Study,
    wishes: Wishes,
    about: About,
    owned: Sequence[Manifest],
    required: Sequence[Manifest],
) -> Manifest:
    examples = [*_examples(study, owned)]
    short = about.description.strip().partition("\n")[0]
    annotations = {
        "alm-examples": orjson.dumps(examples, option=orjson.OPT_INDENT_2).decode(),
        "capabilities": about.capabilities,
        "categories": ", ".join(about.categories),
        "containerImage": about.image,
        "description": short,
    }
    names = {"name": about.name, "namespace": "placeholder"}
    found = [*_entries(owned, study, is_owned=True)]
    wanted = [*_entries(required, study, is_owned=False)]
    kinds = {"owned": found, **({"required": wanted} if wanted else {})}
    spec: Manifest = {
        "displayName": about.display or _words_of(about.package.replace("-", " ")),
        "description": about.description,
        "version": about.version,
        "minKubeVersion": about.min_kube_version,
        "maturity": about.maturity,
        "replaces": about.replaces,
        "keywords": [*about.keywords],
        "provider": _without_empty_values(
            {"name": about.provider, "url": about.provider_url}
        ),
        "maintainers": [{"name": n, "email": e} for n, e in about.maintainers],
        "links": [{"name": name, "url": url} for name, url in about.links],
        "icon": [*_icons(about)],
        "installModes": [*_modes(wishes)],
        "install": {"strategy": "deployment", "spec": _install(study, wishes, about)},
        "customresourcedefinitions": kinds if found or wanted else {},
        "webhookdefinitions": [*_webhooks(study, wishes, about)],
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {**names, "annotations": _without_empty_values(annotations)},
        "spec": _without_empty_values(spec),
    }


def _webhooks(study: Study, wishes: Wishes, about: About) -> Iterator[Manifest]:
    """The webhooks as OLM registers them: with a Service and certificates of its own.

    OLM sets the namespaces by the OperatorGroup, and does not support match conditions.
    """
    groups = groups_of(study.program.handlers)
    registration = Registration(study.program.settings.domain, {"service": {}})
    made = configurations_of(groups, Catalogue(tuple(study.kinds)), registration)
    for role, manifest in made.items():
        sort = "Mutating" if ROLES[role].mutates else "Validating"
        for each in manifest["webhooks"]:
            kept = {key: each[key] for key in _OF_WEBHOOKS if key in each}
            yield {
                "type": f"{sort}AdmissionWebhook",
                "generateName": each["name"],
                "deploymentName": about.package,
                "containerPort": SERVICE_PORT,
                "targetPort": SERVICE_PORT,
                "webhookPath": each["clientConfig"]["service"]["path"],
                **_without_empty_values(thaw_json(kept)),
            }


_OF_WEBHOOKS = (
    *("rules", "failurePolicy", "matchPolicy", "objectSelector", "sideEffects"),
    *("timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy"),
)
# OLM mounts the certificate here (operator-lifecycle-manager: webhooks).
_CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"


def _webhook_variables() -> Iterator[Manifest]:
    """The environment variables of an operator whose webhooks OLM registers."""
    for name, value in (
        ("WEBHOOKS", "true"),
        ("WEBHOOK_UNMANAGED", "true"),
        ("WEBHOOK_ADDR", f":{SERVICE_PORT}"),
        ("WEBHOOK_CERT", f"{_CERTIFICATES}/tls.crt"),
        ("WEBHOOK_KEY", f"{_CERTIFICATES}/tls.key"),
    ):
        yield {"name": f"FNOP_RUN_{name}", "value": value}


def _without_empty_values(found: Mapping[str, Any]) -> Manifest:
    return {key: value for key, value in found.items() if value not in ("", [], {})}


def _entries(
    definitions: Iterable[Manifest], study: Study, *, is_owned: bool
) -> Iterator[Manifest]:
    for each in definitions:
        yield from _described_versions(each, study, is_owned=is_owned)


def _examples(study: Study, owned: Sequence[Manifest]) -> Iterator[Manifest]:
    kinds = {(each["spec"]["group"], each["spec"]["names"]["kind"]) for each in owned}
    for each in study.subjects.subjects:
        group = str(each.get("apiVersion", "")).partition("/")[0]
        if (group, each.get("kind")) in kinds:
            meta = {k: v for k, v in each["metadata"].items() if k != "namespace"}
            yield {**each, "metadata": meta}


def _icons(about: About) -> Iterator[Manifest]:
    if about.icon is not None:
        media_type, data = about.icon
        text = base64.b64encode(data).decode()
        yield {"base64data": text, "mediatype": media_type}


def _modes(wishes: Wishes) -> Iterator[Manifest]:
    """Whole clusters, or one namespace: fnop has no option for a list of several."""
    local = wishes.namespaces is not None
    for name, supported in (
        ("OwnNamespace", local),
        ("SingleNamespace", local),
        ("MultiNamespace", False),
        ("AllNamespaces", not local),
    ):
        yield {"type": name, "supported": supported}


def _install(study: Study, wishes: Wishes, about: About) -> Manifest:
    account = wishes.account.name
    needs = (each for each in study.needs if not _is_of_olm(each))
    wide, local = _split_needs(needs, wishes)
    has_webhooks = bool(groups_of(study.program.handlers))
    found: Manifest = {"deployments": [_deployment(wishes, about, has_webhooks)]}
    for key, some in (("clusterPermissions", wide), ("permissions", local)):
        rules = [each for part in rules_for(some).values() for each in part]
        if rules:
            found[key] = [{"serviceAccountName": account, "rules": rules}]
    return found


def _is_of_olm(need: Need) -> bool:
    """Whether OLM does the task of a need in the operator's place.

    OLM registers webhooks, and makes their certificates.
    """
    return need.who == WEBHOOKS and need.right.group != "authentication.k8s.io"


def _split_needs(
    needs: Iterable[Need], wishes: Wishes
) -> tuple[tuple[Need, ...], tuple[Need, ...]]:
    """The needs everywhere, and the needs in the operator's or served namespaces.

    OLM grants the second group in the namespaces of the OperatorGroup.
    """
    served = {*(wishes.namespaces or ()), wishes.lease_namespace}
    served.add(wishes.account.namespace)
    wide, local = [], []
    for each in needs:
        if each.namespace is not None and each.namespace in served:
            local.append(each._replace(namespace="here"))
        else:
            wide.append(each._replace(namespace=None))
    return tuple(dict.fromkeys(wide)), tuple(dict.fromkeys(local))


def _deployment(wishes: Wishes, about: About, has_webhooks: bool) -> Manifest:
    """The Deployment, as in docs/how-to/deploy.md."""
    labels = {"app": about.package}
    pod = {
        "serviceAccountName": wishes.account.name,
        "terminationGracePeriodSeconds": 60,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(wishes, about, has_webhooks)],
    }
    spec: Manifest = {
        "replicas": 2 if wishes.elects else 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if not wishes.elects:
        spec["strategy"] = {"type": "Recreate"}
    return {"name": about.package, "label": labels, "spec": spec}


def _container(wishes: Wishes, about: About, has_webhooks: bool) -> Manifest:
    """The operator's container, with its probes and limits."""
    ports: list[Manifest] = [{"name": "probes", "containerPort": 8080}]
    if has_webhooks:
        ports.append({"name": "webhooks", "containerPort": SERVICE_PORT})
    return {
        "name": "operator",
        "image": about.image,
        "env": _environment(wishes, has_webhooks=has_webhooks),
        "ports": ports,
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "probes"},
            "periodSeconds": 10,
            "failureThreshold": 3,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "probes"},
            "periodSeconds": 5,
        },
        "resources": {
            "requests": {"cpu": "50m", "memory": "96Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _environment(wishes: Wishes, *, has_webhooks: bool) -> list[Manifest]:
    """The environment variables of the container."""
    env: list[Manifest] = [
        {"name": "FNOP_RUN_LIVENESS", "value": "http://0.0.0.0:8080/healthz"},
        {"name": "FNOP_RUN_LOG_FORMAT", "value": "json"},
    ]
    if wishes.operator != "default":
        env.append({"name": "FNOP_RUN_NAME", "value": wishes.operator})
    if not wishes.peers:
        env.append({"name": "FNOP_RUN_STANDALONE", "value": "true"})
    if wishes.elects:
        env.append({"name": "FNOP_RUN_LEADER_ELECT", "value": "true"})
    if wishes.namespaces is not None:
        env.append(
            _variable_from_field(
                "FNOP_RUN_NAMESPACE", "annotations['olm.targetNamespaces']"
            )
        )
    if has_webhooks:
        env += _webhook_variables()
    return [*env, _variable_from_field("POD_ID", "name")]


def _variable_from_field(name: str, field: str) -> Manifest:
    path = {"fieldPath": f"metadata.{field}"}
    return {"name": name, "valueFrom": {"fieldRef": path}}
