"""Faults in fields of built-in kinds, and the defaults of correct objects.

They are grouped by the families in which random ones were found
(`tests/conformance/field_faults.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH
from tests.conformance.samples import Sample, samples
from tests.conformance.suite import Case, Step

__all__ = ["CASES"]

Json = dict[str, Any]
NAME = "faulty"

# The kinds, with the spoiled fields, the faults, and the reported fields. A path ends
# in "-" if the field is removed.
Spoil = tuple[str, Any, str]
REFUSED: dict[str, tuple[Spoil, ...]] = {
    "Pod": (
        (
            "spec.affinity.nodeAffinity",
            {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": []
                }
            },
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        ),
        ("spec.tolerations.0.effect", "Nonsense", "spec.tolerations[0].effect"),
        (
            "spec.topologySpreadConstraints.0.maxSkew",
            0,
            "spec.topologySpreadConstraints[0].maxSkew",
        ),
        ("spec.securityContext.runAsUser", -1, "spec.securityContext.runAsUser"),
        ("spec.hostAliases.0.ip", "one", "spec.hostAliases.ip"),
        ("spec.volumes.4.hostPath.type", "Nonsense", "spec.volumes[4].hostPath.type"),
        (
            "spec.containers.0.envFrom.0.configMapRef.name",
            "",
            "spec.containers[0].envFrom[0].configMapRef.name",
        ),
        (
            "spec.containers.0.lifecycle.preStop.exec.command",
            [],
            "spec.containers[0].lifecycle.preStop.exec.command",
        ),
        (
            "spec.containers.0.volumeMounts.1.subPath",
            "../up",
            "spec.containers[0].volumeMounts.subPath",
        ),
        (
            "spec.containers.0.livenessProbe.httpGet.scheme",
            "FTP",
            "spec.containers[0].livenessProbe.httpGet.scheme",
        ),
        (
            "spec.containers.0.resources.requests.memory",
            "2Gi",
            "spec.containers[0].resources.requests",
        ),
    ),
    "Service": (
        (
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
            0,
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        ),
        ("spec.externalIPs.0", "127.0.0.1", "spec.externalIPs[0]"),
        ("spec.ports.0.appProtocol", "a b", "spec.ports[0].appProtocol"),
    ),
    "ReplicationController": (
        ("spec.selector", {"app": "other"}, "spec.template.metadata.labels"),
        ("spec.template.metadata.labels.bad key", "x", "spec.template.labels"),
        (
            "spec.template.spec.activeDeadlineSeconds",
            5,
            "spec.template.spec.activeDeadlineSeconds",
        ),
    ),
    "ControllerRevision": (
        ("data-", None, "data"),
        ("revision", -1, "revision"),
    ),
    "Job": (("spec.selector", {"matchLabels": {"app": "a"}}, "spec.selector"),),
    "PersistentVolumeClaim": (
        ("spec.selector.matchLabels.disk", "a b", "spec.selector.matchLabels"),
    ),
    "PersistentVolume": (
        ("spec.capacity-", None, "spec.capacity"),
        ("spec.accessModes.0", "Sometimes", "spec.accessModes"),
        ("spec.nodeAffinity.required-", None, "spec.nodeAffinity.required"),
    ),
    "Ingress": (
        ("spec.tls.0.hosts.0", "not_a_name", "spec.tls[0].hosts[0]"),
        ("spec.rules.0.http.paths", [], "spec.rules[0].http.paths"),
        (
            "spec.defaultBackend.service.port.name",
            "Nonsense",
            "spec.defaultBackend.service.port.name",
        ),
    ),
    "IngressClass": (
        ("spec.controller", "web", "spec.controller"),
        ("spec.parameters.kind", "a/b", "spec.parameters.kind"),
    ),
    "NetworkPolicy": (
        (
            "spec.egress.0.to.0.ipBlock.except.0",
            "192.168.0.0/16",
            "spec.egress[0].to[0].ipBlock.except[0]",
        ),
    ),
    "ClusterRole": (
        (
            "aggregationRule.clusterRoleSelectors",
            [],
            "aggregationRule.clusterRoleSelectors",
        ),
    ),
    "RoleBinding": (("subjects.0.name", "Bad_Name", "subjects[0].name"),),
    "Event": (("involvedObject.namespace", "elsewhere", "involvedObject.namespace"),),
    "Endpoints": (
        ("subsets.0.addresses.0.ip", "127.0.0.1", "subsets[0].addresses[0].ip"),
        ("subsets.0.ports.0.port", 0, "subsets[0].ports[0].port"),
    ),
    "PriorityClass": (
        ("value", 1_000_000_001, "value"),
        ("preemptionPolicy", "Nonsense", "preemptionPolicy"),
    ),
    "StorageClass": (
        ("provisioner", "", "provisioner"),
        ("volumeBindingMode", "Later", "volumeBindingMode"),
        (
            "allowedTopologies.0.matchLabelExpressions.0.key",
            "a b",
            "allowedTopologies[0].matchLabelExpressions[0].key",
        ),
    ),
    "LimitRange": (
        ("spec.limits.0.type", "Nonsense", "spec.limits[0].type"),
        ("spec.limits.0.min.cpu", "3", "spec.limits[0].min[cpu]"),
    ),
    "ResourceQuota": (
        ("spec.hard.pods", "1.5", "spec.hard[pods]"),
        ("spec.scopes.0", "Nonsense", "spec.scopes"),
    ),
    "Namespace": (("spec.finalizers.0", "Bad Name", "spec.finalizers"),),
    "ValidatingWebhookConfiguration": (
        (
            "webhooks.0.rules.0.operations.0",
            "READ",
            "webhooks[0].rules[0].operations[0]",
        ),
        (
            "webhooks.1.clientConfig.url",
            "http://one.dev",
            "webhooks[1].clientConfig.url",
        ),
        (
            "webhooks.0.clientConfig.service.path",
            "check",
            "webhooks[0].clientConfig.service.path",
        ),
    ),
}


def left_alone(deployment: dict[str, Any]) -> dict[str, Any]:
    """One that no controller changes, and that the collector of garbage leaves."""
    found = spoiled(deployment, "spec.paused", True)
    found["metadata"].pop("ownerReferences", None)
    return found


def spoiled(obj: Json, path: str, value: Any) -> Json:
    """The object with another value at a dotted path, or without it."""
    result = deepcopy(obj)
    owner: Any = result
    *names, last = path.removesuffix("-").split(".")
    for name in names:
        owner = owner[int(name) if isinstance(owner, list) else name]
    if path.endswith("-"):
        del owner[last]
    else:
        owner[int(last) if isinstance(owner, list) else last] = value
    return result


TOLD = ("reason", "details.causes.0.field", "details.causes.0.reason")


def first(kind: str) -> Sample:
    return next(one for one in samples() if one.object["kind"] == kind)


def refused() -> Iterator[Case]:
    for kind, faults in REFUSED.items():
        sample = first(kind)
        obj = sample.named(NAME, "{ns}")
        yield Case(
            f"what is wrong in a {kind}",
            tuple(
                Step(
                    "POST",
                    sample.at,
                    spoiled(obj, path, value),
                    code=422,
                    has={"details.causes.0.field": field},
                    compare=TOLD,
                )
                for path, value, field in faults
            ),
        )


# ------------------------------------------------------------ what is filled in


def filled(
    title: str, kind: str, change: tuple[str, Any], has: Mapping[str, Any]
) -> Case:
    sample = first(kind)
    path, value = change
    body = spoiled(sample.named(NAME, "{ns}"), path, value)
    return Case(
        title,
        (Step("POST", sample.at, body, code=201, has=has, compare=tuple(has)),),
    )


STRICT_EVENT: Json = {
    "metadata": {"name": "strict", "namespace": "{ns}"},
    "regarding": {"kind": "Pod", "name": "a", "namespace": "{ns}"},
    "reason": "Started",
    "action": "Start",
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "reportingController": "example.dev/operator",
    "reportingInstance": "one",
    "type": "Normal",
}
EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
SETS = "/apis/apps/v1/namespaces/{ns}/"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
OWNER: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}


def strict(**parts: Any) -> Json:
    return {k: v for k, v in {**STRICT_EVENT, **parts}.items() if v is not None}


DOTS = (
    (".", "must not be '.'"),
    ("..", "must not be '..'"),
    ("..a", "must not start with '..'"),
)


def others() -> Iterator[Case]:
    yield Case(
        "events of their own group say all that is asked",
        (
            Step("POST", EVENTS, strict(), code=201, compare="code"),
            *(
                Step(
                    "POST",
                    EVENTS,
                    strict(**parts),
                    code=422,
                    has={"details.causes.0.field": field},
                    compare=TOLD,
                )
                for parts, field in (
                    ({"type": "Nonsense"}, "type"),
                    ({"reportingInstance": ""}, "reportingInstance"),
                    ({"reportingController": "a b"}, "reportingController"),
                    ({"action": None}, "action"),
                    ({"deprecatedCount": 3}, "count"),
                    (
                        {
                            "series": {
                                "count": 1,
                                "lastObservedTime": "2024-01-01T00:00:00.000000Z",
                            }
                        },
                        "series.count",
                    ),
                )
            ),
            Step(
                "POST", EVENTS, strict(eventTime="yesterday"), code=400, compare="code"
            ),
        ),
    )
    yield Case(
        "keys and variables do not begin with two dots",
        tuple(
            Step(
                "POST",
                MAPS,
                {"metadata": {"name": NAME}, "data": {key: "a"}},
                code=422,
                has={
                    "details.causes.0.field": f"data[{key}]",
                    "details.causes.0.message": f'Invalid value: "{key}": {why}',
                },
                compare=(*TOLD, "details.causes.0.message"),
            )
            for key, why in DOTS
        )
        + tuple(
            Step(
                "POST",
                PODS,
                spoiled(
                    first("Pod").named(NAME, "{ns}"),
                    "spec.containers.0.env.0.name",
                    name,
                ),
                code=422,
                has={
                    "details.causes.0.field": "spec.containers[0].env[0].name",
                    "details.causes.0.message": f'Invalid value: "{name}": {why}',
                },
                compare=(*TOLD, "details.causes.0.message"),
            )
            for name, why in DOTS
        ),
    )
    unknown = {**OWNER, "of": "me", "controller": None}
    untrue = {**OWNER, "controller": "yes"}
    yield Case(
        "owner references have the fields of their type",
        (
            Step(
                "POST",
                MAPS,
                {"metadata": {"name": NAME, "ownerReferences": [unknown]}},
                code=201,
                has={"metadata.ownerReferences": [OWNER]},
            ),
            Step(
                "POST",
                MAPS,
                {"metadata": {"name": "other", "ownerReferences": [untrue]}},
                code=400,
                compare="code",
            ),
        ),
    )
    yield Case(
        "an apply of what its type cannot hold is an error of the server",
        (
            Step(
                "PATCH",
                MAPS + "/applied",
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "applied"},
                    "binaryData": {"a": "no base64"},
                },
                APPLY_PATCH,
                query={"fieldManager": "me"},
                code=500,
                compare="code",
            ),
        ),
    )
    yield Case(
        "a stateful set without a service has an empty name of one",
        (
            Step(
                "POST",
                SETS + "statefulsets",
                spoiled(
                    first("StatefulSet").named(NAME, "{ns}"), "spec.serviceName-", None
                ),
                code=201,
                has={"spec.serviceName": ""},
                compare=("spec.serviceName",),
            ),
        ),
    )
    yield Case(
        "annotations of deployments count as a generation",
        (
            Step(
                "POST",
                SETS + "deployments",
                left_alone(first("Deployment").named(NAME, "{ns}")),
                code=201,
                has={"metadata.generation": 1},
                compare="code",
            ),
            Step(
                "PATCH",
                f"{SETS}deployments/{NAME}",
                {"metadata": {"annotations": {"other": "one"}}},
                MERGE_PATCH,
                has={"metadata.generation": 2},
                compare=("metadata.generation",),
            ),
        ),
    )
    yield filled(
        "an account keeps the names of its secrets alone",
        "ServiceAccount",
        ("secrets", [{"name": "token", "namespace": "elsewhere"}]),
        {"secrets": [{"name": "token"}]},
    )
    yield filled(
        "limits of containers are their requests, too",
        "LimitRange",
        ("spec.limits.0.default-", None),
        {"spec.limits.0.default": {"cpu": "2"}},
    )
    yield filled(
        "a replication controller takes labels and selector from its template",
        "ReplicationController",
        ("spec.selector-", None),
        {"spec.selector": {"app": "a"}},
    )
    yield filled(
        "ports of endpoints are of TCP",
        "Endpoints",
        ("subsets.0.ports.0.protocol-", None),
        {"subsets.0.ports.0.protocol": "TCP"},
    )
    yield filled(
        "a rolling update has bounds",
        "DaemonSet",
        ("spec.updateStrategy", {}),
        {"spec.updateStrategy.type": "RollingUpdate"},
    )
    yield filled(
        "ports of the host's network are its own",
        "Pod",
        ("spec.hostNetwork", True),
        {"spec.containers.0.ports.0.hostPort": 80},
    )
    yield filled(
        "an affinity of clients has a time",
        "Service",
        ("spec.sessionAffinityConfig-", None),
        {"spec.sessionAffinityConfig.clientIP.timeoutSeconds": 10800},
    )


CASES = (*refused(), *others())
