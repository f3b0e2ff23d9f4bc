"""Built-in kinds: what the server fills in, counts, protects and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fnop.interpreters.runtime.protocol import MERGE_PATCH, STRATEGIC_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

Json = dict[str, Any]

CORE = "/api/v1/namespaces/{ns}/"
APPS = "/apis/apps/v1/namespaces/{ns}/"
BATCH = "/apis/batch/v1/namespaces/{ns}/"
RBAC = "rbac.authorization.k8s.io"
ROLES = f"/apis/{RBAC}/v1/namespaces/{{ns}}/"
NETWORK = "/apis/networking.k8s.io/v1/namespaces/{ns}/"
HOOKS = "/apis/admissionregistration.k8s.io/v1/"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"

CONTAINER: Json = {"name": "c", "image": "i"}
POD_SPEC: Json = {
    "automountServiceAccountToken": False,
    "containers": [CONTAINER],
    "serviceAccountName": "default",
}
LABELS = {"app": "a"}
SELECTOR: Json = {"matchLabels": LABELS}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": POD_SPEC}
WORKLOAD: Json = {"selector": SELECTOR, "template": TEMPLATE}
JOB_TEMPLATE: Json = {"spec": {**POD_SPEC, "restartPolicy": "Never"}}
META = ("metadata.generation", "metadata.labels", "spec.replicas")


# ------------------------------------------------------------------ shorthands


def named(name: str, spec: Json | None = None, **more: Any) -> Json:
    """A body that leaves its type to the path."""
    metadata = {"name": name, **more.pop("metadata", {})}
    body: Json = {"metadata": metadata, **more}
    return body if spec is None else {**body, "spec": spec}


def post(path: str, body: Json, code: int = 201, **more: Any) -> Step:
    return Step("POST", path, body, code=code, **more)


def put(path: str, body: Any, **more: Any) -> Step:
    return Step("PUT", path, body, **more)


def patch(path: str, body: Any, type: str = MERGE_PATCH, **more: Any) -> Step:
    return Step("PATCH", path, body, type, **more)


def get(path: str, **more: Any) -> Step:
    return Step("GET", path, **more)


def delete(path: str, **more: Any) -> Step:
    return Step("DELETE", path, **more)


def refused(path: str, body: Json, **more: Any) -> Step:
    return post(path, body, 422, **more)


def many(*bodies: Json) -> tuple[Json, ...]:
    return bodies


def with_container(**more: Any) -> Json:
    return {**POD_SPEC, "containers": [{**CONTAINER, **more}]}


def at(index: int, part: str = "") -> str:
    """A reference to the answer of an earlier step, or to a part of it."""
    return f"${index}.{part}"


# -------------------------------------------------------------------- creating


def defaulting() -> Iterator[Case]:
    yield Case(
        "a plain pod is filled in",
        (post(CORE + "pods", named("p", POD_SPEC), has={"status.phase": "Pending"}),),
    )
    yield Case(
        "a pod with everything is filled in",
        (post(CORE + "pods", named("p", RICH_POD)),),
    )
    yield Case(
        "pull policies follow tags",
        tuple(
            post(
                CORE + "pods",
                named(f"p{n}", with_container(image=image)),
                has={"spec.containers.0.imagePullPolicy": policy},
            )
            for n, (image, policy) in enumerate(
                (
                    ("i", "Always"),
                    ("i:latest", "Always"),
                    ("i:1", "IfNotPresent"),
                    ("r:5000/i", "Always"),
                    ("r:5000/i:v2", "IfNotPresent"),
                )
            )
        ),
    )
    yield Case(
        "classes of service follow requests and limits",
        tuple(
            post(
                CORE + "pods",
                named(f"p{n}", with_container(resources=resources)),
                has={"status.qosClass": quality},
            )
            for n, (resources, quality) in enumerate(
                (
                    ({}, "BestEffort"),
                    ({"requests": {"cpu": "1"}}, "Burstable"),
                    ({"limits": {"cpu": "1"}}, "Burstable"),
                    ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
                    (
                        {
                            "limits": {"cpu": 1, "memory": "1Gi"},
                            "requests": {"cpu": "500m"},
                        },
                        "Burstable",
                    ),
                )
            )
        ),
    )
    for plural in ("deployments", "replicasets"):
        yield Case(
            f"{plural} are filled in",
            (post(APPS + plural, named("w", WORKLOAD)),),
        )
    yield Case(
        "daemon sets are filled in",
        (
            post(
                APPS + "daemonsets",
                named("w", WORKLOAD),
                has={"spec.updateStrategy.rollingUpdate.maxSurge": 0},
                old=(201, {"spec.updateStrategy.rollingUpdate.maxUnavailable": 1}),
            ),
            get(
                APPS + "daemonsets/w",
                compare=(
                    "metadata.annotations",
                    # Not observedGeneration: its controller may have looked by now.
                    "status.currentNumberScheduled",
                    "status.desiredNumberScheduled",
                    "status.numberMisscheduled",
                    "status.numberReady",
                ),
            ),
        ),
    )
    yield Case(
        "stateful sets are filled in",
        (
            post(
                APPS + "statefulsets",
                named("w", {**WORKLOAD, "serviceName": "s"}),
                compare=("metadata", "spec"),
            ),
            post(
                APPS + "statefulsets",
                named(
                    "claims",
                    {
                        **WORKLOAD,
                        "replicas": 0,
                        "serviceName": "s",
                        "volumeClaimTemplates": [named("data", CLAIM)],
                    },
                ),
                compare=("metadata", "spec"),
            ),
        ),
    )
    yield Case(
        "recreating deployments have no rolling update",
        (
            post(
                APPS + "deployments",
                named("w", {**WORKLOAD, "strategy": {"type": "Recreate"}}),
                has={"spec.strategy": {"type": "Recreate"}},
            ),
            post(
                APPS + "deployments",
                named(
                    "x",
                    {**WORKLOAD, "strategy": {"rollingUpdate": {"maxSurge": 2}}},
                ),
                has={"spec.strategy.type": "RollingUpdate"},
            ),
            post(
                APPS + "statefulsets",
                named(
                    "y",
                    {
                        **WORKLOAD,
                        "serviceName": "s",
                        "updateStrategy": {"type": "OnDelete"},
                    },
                ),
                has={"spec.updateStrategy": {"type": "OnDelete"}},
                compare=("metadata", "spec"),
            ),
            post(
                APPS + "daemonsets",
                named("z", {**WORKLOAD, "updateStrategy": {"type": "OnDelete"}}),
                has={"spec.updateStrategy": {"type": "OnDelete"}},
            ),
        ),
    )
    yield Case(
        "services are filled in",
        (
            post(
                CORE + "services",
                named("s", {"ports": [{"port": 80}], "selector": LABELS}),
                has={"spec.type": "ClusterIP", "spec.ports.0.targetPort": 80},
                old=(201, {"spec.type": "ClusterIP"}),
            ),
            post(
                CORE + "services",
                named("headless", {"clusterIP": "None"}),
                has={"spec.clusterIP": "None", "spec.clusterIPs": ["None"]},
                old=(201, {"spec.clusterIP": "None", "spec.clusterIPs": ["None"]}),
            ),
            post(
                CORE + "services",
                named("outside", {"type": "ExternalName", "externalName": "a.b"}),
                has={"spec.clusterIP": ABSENT},
            ),
            post(
                CORE + "services",
                named(
                    "node",
                    {"type": "NodePort", "ports": [{"port": 80, "targetPort": "x"}]},
                ),
                has={"spec.externalTrafficPolicy": "Cluster"},
                old=(201, {"spec.externalTrafficPolicy": "Cluster"}),
            ),
        ),
    )
    service, no_check = CORE + "services/s", {"spec.healthCheckNodePort": ABSENT}
    local: Json = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    yield Case(
        "ports of the nodes are allocated, kept and given back",
        (
            post(CORE + "services", named("s", {**local, "ports": [{"port": 80}]})),
            patch(service, {"metadata": {"labels": LABELS}}),
            patch(
                service, {"spec": {"externalTrafficPolicy": "Cluster"}}, has=no_check
            ),
            patch(service, {"spec": {"type": "NodePort"}}, has=no_check),
            patch(service, {"spec": {"type": "ClusterIP"}}, has=no_check),
            get(service, has={"spec.ports.0.nodePort": ABSENT, **no_check}),
        ),
    )
    yield Case(
        "claims are filled in",
        (
            # Claims are not protected here: no controller would remove that finalizer.
            post(
                CORE + "persistentvolumeclaims",
                named("c", CLAIM),
                compare=("spec", "status"),
            ),
            post(
                CORE + "persistentvolumeclaims",
                named("d", {**CLAIM, "storageClassName": "", "volumeMode": "Block"}),
                compare=("spec", "status"),
            ),
        ),
    )
    yield Case(
        "jobs find their pods by the uid",
        (
            post(
                BATCH + "jobs",
                named("j", {"template": JOB_TEMPLATE}),
                has={"spec.completions": 1, "spec.parallelism": 1},
                old=(201, {"spec.completions": 1, "spec.backoffLimit": 6}),
            ),
            post(
                BATCH + "jobs",
                named("k", {"parallelism": 2, "template": JOB_TEMPLATE}),
                has={"spec.completions": ABSENT},
                old=(201, {"spec.completions": ABSENT}),
            ),
        ),
    )
    yield Case(
        "roles and bindings are filled in",
        (
            post(
                ROLES + "roles",
                named(
                    "r",
                    rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}],
                ),
            ),
            post(ROLES + "roles", named("empty"), has={"rules": None}),
            post(
                ROLES + "rolebindings",
                named(
                    "b",
                    roleRef={"apiGroup": RBAC, "kind": "Role", "name": "r"},
                    subjects=[
                        {"kind": "User", "name": "u"},
                        {"kind": "ServiceAccount", "name": "s", "namespace": "x"},
                    ],
                ),
                has={"subjects.0.apiGroup": RBAC},
            ),
        ),
    )
    yield Case(
        "network policies are filled in",
        (
            post(
                NETWORK + "networkpolicies",
                named("n", {"podSelector": {}}),
                has={"spec.policyTypes": ["Ingress"]},
            ),
            post(
                NETWORK + "networkpolicies",
                named(
                    "o",
                    {
                        "podSelector": SELECTOR,
                        "egress": [{"ports": [{"port": 53}]}],
                        "ingress": [{"from": [{"podSelector": {}}]}],
                    },
                ),
                has={"spec.egress.0.ports.0.protocol": "TCP"},
            ),
        ),
    )
    yield Case(
        "an ingress is filled in",
        (
            post(
                NETWORK + "ingresses",
                named(
                    "i",
                    {
                        "rules": [
                            {
                                "host": "a.b",
                                "http": {
                                    "paths": [
                                        {
                                            "path": "/",
                                            "pathType": "Prefix",
                                            "backend": BACKEND,
                                        }
                                    ]
                                },
                            }
                        ]
                    },
                ),
            ),
            post(NETWORK + "ingresses", named("j", {"defaultBackend": BACKEND})),
        ),
    )
    for plural, own in (
        ("validatingwebhookconfigurations", {}),
        ("mutatingwebhookconfigurations", {"reinvocationPolicy": "Never"}),
    ):
        yield Case(
            f"{plural} are filled in",
            (
                post(
                    HOOKS + plural,
                    named("{ns}", webhooks=[HOOK]),
                    has={f"webhooks.0.{name}": value for name, value in own.items()},
                ),
                delete(HOOKS + plural + "/{ns}", compare="code"),
            ),
        )
    yield Case(
        "leases keep what they are told",
        (
            post(
                LEASES,
                named(
                    "l",
                    {
                        "holderIdentity": "",
                        "leaseDurationSeconds": 15,
                        "renewTime": "2024-01-02T03:04:05.000006Z",
                    },
                ),
                has={"metadata.generation": ABSENT},
            ),
            post(LEASES, named("m", {})),
        ),
    )
    yield Case(
        "namespaces and nodes are filled in",
        (
            post(
                "/api/v1/nodes",
                named("{ns}-n", {"podCIDR": "10.9.0.0/24"}),
                compare=("spec.podCIDRs", "status"),
            ),
            delete("/api/v1/nodes/{ns}-n", compare="code"),
        ),
    )
    yield Case(
        "events of the old kind",
        (
            post(
                CORE + "events",
                named(
                    "e",
                    involvedObject={"kind": "Pod", "namespace": "{ns}", "name": "p"},
                    reason="R",
                    message="m",
                    count=1,
                    type="Normal",
                    firstTimestamp="2024-01-02T03:04:05Z",
                ),
                has={"reportingComponent": "", "reportingInstance": ""},
            ),
        ),
    )
    yield Case(
        "service accounts and config maps",
        (
            post(CORE + "serviceaccounts", named("s", secrets=[{"name": "x"}])),
            post(CORE + "configmaps", named("c", data={"a": "b"})),
            post(CORE + "secrets", named("t", stringData={"a": "b"})),
        ),
    )


CLAIM: Json = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
BACKEND: Json = {"service": {"name": "s", "port": {"number": 80}}}
HOOK: Json = {
    "name": "a.b.c",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"service": {"namespace": "n", "name": "s"}},
    "rules": [
        {
            "apiGroups": ["no.such"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["things"],
        }
    ],
}
RICH_POD: Json = {
    **POD_SPEC,
    "restartPolicy": "OnFailure",
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["h"]}],
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "volumes": [
        {"name": "a"},
        {"name": "b", "configMap": {"name": "m"}},
        {"name": "c", "secret": {"secretName": "s"}},
        {"name": "d", "hostPath": {"path": "/"}},
        {"name": "e", "emptyDir": {"sizeLimit": "1Gi"}},
        {
            "name": "f",
            "projected": {
                "sources": [
                    {"configMap": {"name": "m"}},
                    {"serviceAccountToken": {"path": "t"}},
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "l",
                                    "fieldRef": {"fieldPath": "metadata.labels"},
                                }
                            ]
                        }
                    },
                ]
            },
        },
    ],
    "initContainers": [{"name": "init", "image": "i:1"}],
    "containers": [
        {
            "name": "c",
            "image": "i:1",
            "ports": [
                {"containerPort": 80, "name": "http"},
                {"containerPort": 53, "protocol": "UDP"},
            ],
            "env": [
                {"name": "A", "value": ""},
                {
                    "name": "B",
                    "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                },
                {
                    "name": "C",
                    "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                },
                {
                    "name": "D",
                    "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}},
                },
            ],
            "livenessProbe": {"httpGet": {"port": 80}},
            "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 3},
            "startupProbe": {"exec": {"command": ["x"]}},
            "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "x"}}},
            "volumeMounts": [{"name": "a", "mountPath": "/a"}],
            "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
            "resources": {"limits": {"cpu": "1500m", "memory": "1024Mi"}},
        }
    ],
}


# ------------------------------------------------------------------- refusing


def workload(**more: Any) -> Json:
    return named("w", {**WORKLOAD, **more})


def templated(**more: Any) -> Json:
    return workload(template={**TEMPLATE, "spec": with_container(**more)})


def refusals() -> Iterator[Case]:
    pods = CORE + "pods"
    yield Case(
        "pods need containers with names and images",
        (
            refused(pods, named("p", {**POD_SPEC, "containers": []})),
            refused(pods, named("p", {**POD_SPEC, "containers": [{"name": "c"}]})),
            refused(pods, named("p", {**POD_SPEC, "containers": [{"image": "c"}]})),
            refused(pods, named("p", with_container(name="A_b"))),
            refused(
                pods, named("p", {**POD_SPEC, "containers": [CONTAINER, CONTAINER]})
            ),
            refused(pods, named("p", {**POD_SPEC, "initContainers": [CONTAINER]})),
        ),
    )
    yield Case(
        "policies of pods are of a few",
        (
            refused(pods, named("p", {**POD_SPEC, "restartPolicy": "Sometimes"})),
            refused(pods, named("p", {**POD_SPEC, "dnsPolicy": "No"})),
            refused(pods, named("p", with_container(imagePullPolicy="Maybe"))),
            refused(pods, named("p", with_container(terminationMessagePolicy="X"))),
            refused(pods, named("p", {**POD_SPEC, "activeDeadlineSeconds": 0})),
        ),
    )
    yield Case(
        "ports of containers",
        tuple(
            refused(pods, named("p", with_container(ports=ports)))
            for ports in (
                [{"containerPort": 0}],
                [{"containerPort": 70000}],
                [{"containerPort": 80, "protocol": "HTTP"}],
                [{"containerPort": 80, "name": "Web"}],
                [
                    {"containerPort": 80, "name": "a"},
                    {"containerPort": 81, "name": "a"},
                ],
                [{"containerPort": 80, "hostPort": -1}],
            )
        ),
    )
    yield Case(
        "variables of containers",
        tuple(
            refused(pods, named("p", with_container(env=env)))
            for env in (
                [{"value": "x"}],
                [{"name": "1a b"}],
                [{"name": "A", "valueFrom": {}}],
                [{"name": "A", "value": "x", "valueFrom": FROM}],
                [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "no.such"}}}],
                [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}],
            )
        ),
    )
    yield Case(
        "volumes and their mounts",
        tuple(
            refused(
                pods,
                named("p", {**with_container(volumeMounts=mounts), "volumes": volumes}),
            )
            for mounts, volumes in (
                ([], [{"name": "A_b"}]),
                ([], [{"name": "a"}, {"name": "a"}]),
                ([], [{"name": "a", "secret": {}, "emptyDir": {}}]),
                ([], [{"name": "a", "hostPath": {"path": ""}}]),
                ([], [{"name": "a", "persistentVolumeClaim": {}}]),
                ([{"name": "no", "mountPath": "/a"}], []),
                ([{"name": "a", "mountPath": ""}], [{"name": "a"}]),
                (
                    [
                        {"name": "a", "mountPath": "/a"},
                        {"name": "a", "mountPath": "/a"},
                    ],
                    [{"name": "a"}],
                ),
            )
        ),
    )
    yield Case(
        "resources of containers",
        tuple(
            post(
                pods,
                named("p", with_container(resources=resources)),
                code,
                compare="all" if code == 422 and "requests" not in resources else CAUSE,
            )
            for resources, code in (
                ({"limits": {"cpu": "x"}}, 400),
                ({"limits": {"cpu": "-1"}}, 422),
                ({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}, 422),
                ({"limits": {"nothing": "1"}}, 422),
                ({"requests": {"memory": "1.5.2"}}, 400),
            )
        ),
    )
    yield Case(
        "probes",
        tuple(
            refused(pods, named("p", with_container(livenessProbe=probe)))
            for probe in many(
                {},
                {"httpGet": {"port": 0}},
                {"tcpSocket": {"port": "Bad_name"}},
                {"exec": {}},
                {"exec": {"command": ["x"]}, "periodSeconds": -1},
                {"exec": {"command": ["x"]}, "tcpSocket": {"port": 80}},
                {"exec": {"command": ["x"]}, "successThreshold": 2},
            )
        ),
    )
    for plural in ("deployments", "replicasets", "daemonsets", "statefulsets"):
        more = {"serviceName": "s"} if plural == "statefulsets" else {}
        yield Case(
            f"{plural} select their own pods",
            tuple(
                refused(APPS + plural, workload(**more, **wrong))
                for wrong in (
                    {"selector": {"matchLabels": {"app": "b"}}},
                    {"selector": {}},
                    {"selector": None},
                    {"selector": {"matchExpressions": [EXPRESSION]}},
                    # 1.20 looks at no containers of stateful sets.
                    *(
                        ()
                        if more
                        else ({"template": {"metadata": {"labels": LABELS}}},)
                    ),
                    {"template": {**TEMPLATE, "spec": JOB_TEMPLATE["spec"]}},
                )
            ),
        )
    for plural in ("deployments", "replicasets", "statefulsets"):
        more = {"serviceName": "s"} if plural == "statefulsets" else {}
        yield Case(
            f"numbers of {plural} are no less than 0",
            (
                refused(APPS + plural, workload(**more, replicas=-1)),
                refused(
                    APPS + plural,
                    workload(**more, revisionHistoryLimit=-2, minReadySeconds=-1),
                )
                if plural == "deployments"
                else refused(APPS + plural, workload(**more, replicas=-5)),
            ),
        )
    yield Case(
        "strategies of deployments",
        tuple(
            refused(APPS + "deployments", workload(**wrong))
            for wrong in (
                {"strategy": {"type": "Fast"}},
                {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
                {"strategy": {"rollingUpdate": {"maxSurge": -1}}},
                {"strategy": {"rollingUpdate": {"maxSurge": "x"}}},
                {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
                {"strategy": {"rollingUpdate": {"maxUnavailable": "200%"}}},
                {"progressDeadlineSeconds": 5, "minReadySeconds": 7},
            )
        ),
    )
    yield Case(
        "policies of stateful and daemon sets",
        (
            refused(
                APPS + "statefulsets",
                workload(serviceName="s", podManagementPolicy="Any"),
            ),
            refused(
                APPS + "statefulsets",
                workload(serviceName="s", updateStrategy={"type": "Any"}),
            ),
            refused(APPS + "daemonsets", workload(updateStrategy={"type": "Any"})),
            refused(
                APPS + "daemonsets",
                workload(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
                old=(422, {}),
            ),
        ),
    )
    jobs = BATCH + "jobs"
    yield Case(
        "jobs end",
        tuple(
            refused(jobs, named("j", {"template": JOB_TEMPLATE, **wrong}))
            for wrong in (
                {"template": {"spec": POD_SPEC}},
                {"parallelism": -1},
                {"completions": -1},
                {"backoffLimit": -1},
                {"activeDeadlineSeconds": -1},
                {"selector": SELECTOR},
                {"manualSelector": True},
            )
        ),
    )
    services = CORE + "services"
    port = {"port": 80}
    yield Case(
        "services and their ports",
        tuple(
            refused(services, named("s", spec))
            for spec in (
                {},
                {"ports": [{"port": 0}]},
                {"ports": [{"port": 70000}]},
                {"ports": [{**port, "protocol": "HTTP"}]},
                {"ports": [port, {"port": 81}]},
                {"ports": [{**port, "name": "a"}, {"port": 81, "name": "a"}]},
                {"ports": [{**port, "name": "A_b"}]},
                {"ports": [{**port, "name": "a"}, {**port, "name": "b"}]},
                {"ports": [{**port, "targetPort": -1}]},
                {"ports": [{**port, "targetPort": "Bad_name"}]},
                {"ports": [{**port, "nodePort": 30001}]},
            )
        ),
    )
    yield Case(
        "types of services",
        tuple(
            refused(services, named("s", spec))
            for spec in (
                {"ports": [port], "type": "Other"},
                {"ports": [port], "sessionAffinity": "Other"},
                {"type": "ExternalName"},
                {"type": "ExternalName", "externalName": "a_b"},
                {"ports": [port], "clusterIP": "no"},
                {"ports": [port], "clusterIP": "None", "type": "NodePort"},
                {"ports": [port], "selector": {"a": "b c"}},
                {"ports": [{**port, "nodePort": 1}], "type": "NodePort"},
            )
        ),
    )
    claims = CORE + "persistentvolumeclaims"
    yield Case(
        "claims",
        tuple(
            refused(claims, named("c", spec))
            for spec in (
                {},
                {**CLAIM, "accessModes": []},
                {**CLAIM, "accessModes": ["Now"]},
                {**CLAIM, "resources": {}},
                {**CLAIM, "resources": {"requests": {"storage": "0"}}},
                {**CLAIM, "storageClassName": "A_b"},
                {**CLAIM, "volumeMode": "X"},
            )
        ),
    )
    yield Case(
        "roles and their rules",
        tuple(
            refused(ROLES + "roles", named("r", rules=rules))
            for rules in (
                [{"apiGroups": [""], "resources": ["pods"]}],
                [{"apiGroups": [""], "verbs": ["get"]}],
                [{"resources": ["pods"], "verbs": ["get"]}],
                [{"nonResourceURLs": ["/x"], "verbs": ["get"]}],
            )
        ),
    )
    role = {"apiGroup": RBAC, "kind": "Role", "name": "r"}
    yield Case(
        "bindings and their subjects",
        tuple(
            refused(ROLES + "rolebindings", named("b", **parts))
            for parts in (
                {},
                {"roleRef": {**role, "kind": "Other"}},
                {"roleRef": {**role, "name": ""}},
                {"roleRef": {**role, "apiGroup": "x"}},
                {"roleRef": role, "subjects": [{"kind": "Other", "name": "x"}]},
                {"roleRef": role, "subjects": [{"kind": "User"}]},
                {
                    "roleRef": role,
                    "subjects": [{"kind": "User", "name": "x", "apiGroup": "y"}],
                },
            )
        ),
    )
    yield Case(
        "leases",
        tuple(
            refused(LEASES, named("l", spec))
            for spec in ({"leaseDurationSeconds": 0}, {"leaseTransitions": -1})
        ),
    )
    yield Case(
        "network policies",
        tuple(
            refused(NETWORK + "networkpolicies", named("n", spec))
            for spec in many(
                {"podSelector": {}, "policyTypes": ["Other"]},
                {"podSelector": {}, "ingress": [{"ports": [{"port": 70000}]}]},
                {"podSelector": {}, "ingress": [{"from": [{}]}]},
                {"podSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}},
                {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {}}]}]},
            )
        ),
    )
    yield Case(
        "ingresses",
        tuple(
            refused(NETWORK + "ingresses", named("i", spec))
            for spec in many(
                {},
                {"rules": [{"host": "A_b"}]},
                {"defaultBackend": {}},
                {"defaultBackend": {"service": {"name": "s", "port": {}}}},
                {
                    "rules": [
                        {"http": {"paths": [{"pathType": "Any", "backend": BACKEND}]}}
                    ]
                },
                {"rules": [{"http": {"paths": [{"path": "x", "backend": BACKEND}]}}]},
            )
        ),
    )
    yield Case(
        "webhooks",
        tuple(
            refused(
                HOOKS + "validatingwebhookconfigurations",
                named("{ns}", webhooks=[{**HOOK, **wrong}]),
            )
            for wrong in many(
                {"name": "a"},
                {"sideEffects": "Some"},
                {"failurePolicy": "Maybe"},
                {"timeoutSeconds": 31},
                {"clientConfig": {}},
                {"admissionReviewVersions": []},
                {"matchPolicy": "X"},
            )
        ),
    )


EXPRESSION: Json = {"key": "app", "operator": "Like", "values": ["a"]}
FROM: Json = {"fieldRef": {"fieldPath": "metadata.name"}}


def metadata() -> Iterator[Case]:
    maps = CORE + "configmaps"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    yield Case(
        "metadata of config maps",
        tuple(
            refused(maps, named("c", metadata=wrong))
            for wrong in (
                {"labels": {"a": "b c"}},
                {"labels": {"a/b/c": "d"}},
                {"annotations": {"a b": "c"}},
                {"finalizers": ["x"]},
                {"finalizers": ["x/"]},
                {
                    "ownerReferences": [
                        {**owner, "controller": True},
                        {**owner, "uid": "v", "controller": True},
                    ]
                },
                {"ownerReferences": [{**owner, "kind": ""}]},
                {"ownerReferences": [{**owner, "apiVersion": "a/b/c"}]},
                {"ownerReferences": [{**owner, "kind": "Event"}]},
                {"annotations": {"a": "x" * 262_144}},
                {"name": "A_b"},
                {"name": "a" * 254},
                {"name": "", "generateName": "A_"},
            )
        ),
    )
    yield Case(
        "names by kind",
        (
            refused(CORE + "services", named("1a", {"ports": [{"port": 80}]})),
            refused(CORE + "pods", named("a_b", POD_SPEC)),
            refused("/api/v1/namespaces", named("a.b")),
            refused(ROLES + "roles", named("a/b")),
            post(ROLES + "roles", named("A:b")),
            refused(CORE + "serviceaccounts", named("a_b")),
        ),
    )
    yield Case(
        "config maps of more than a megabyte",
        (refused(maps, named("c", data={"a": "x" * 1_048_577})),),
    )


# --------------------------------------------------------------------- changing


def changes() -> Iterator[Case]:
    spec = ("spec.replicas", "spec.selector")
    for plural in ("deployments", "replicasets", "daemonsets"):
        path = APPS + plural
        yield Case(
            f"the selector of {plural} stays",
            (
                post(path, workload(paused=True, replicas=0), compare=spec)
                if plural == "deployments"
                else post(path, workload(), compare=spec),
                patch(
                    f"{path}/w",
                    {
                        "spec": {
                            "selector": {"matchLabels": {"app": "b"}},
                            "template": {"metadata": {"labels": {"app": "b"}}},
                        }
                    },
                    code=422,
                    has={"reason": "Invalid"},
                    compare=CAUSE,
                ),
                patch(
                    f"{path}/w",
                    {"spec": {"template": {"metadata": {"labels": {"app": "b"}}}}},
                    code=422,
                    has={"reason": "Invalid"},
                    compare=CAUSE,
                ),
            ),
        )
    sets = APPS + "statefulsets"
    yield Case(
        "of stateful sets hardly anything changes",
        (
            post(sets, workload(serviceName="s", replicas=0), compare=spec),
            *(
                patch(
                    sets + "/w",
                    {"spec": wrong},
                    code=422,
                    has={"details.causes.0.field": "spec"},
                    compare=CAUSE,
                )
                for wrong in (
                    {"serviceName": "t"},
                    {"podManagementPolicy": "Parallel"},
                    {"volumeClaimTemplates": [named("d", CLAIM)]},
                )
            ),
            patch(
                sets + "/w",
                {"spec": {"updateStrategy": {"type": "OnDelete"}}},
                code=422,
                has={
                    "details.causes.0.field": "spec.updateStrategy.rollingUpdate",
                },
                compare=CAUSE,
            ),
            patch(
                sets + "/w",
                {
                    "spec": {
                        "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}
                    }
                },
                compare=("spec.serviceName",),
            ),
        ),
    )
    pods = CORE + "pods"
    yield Case(
        "of pods hardly anything changes",
        (
            post(pods, named("p", POD_SPEC)),
            patch(pods + "/p", container_patch(image="j"), STRATEGIC_PATCH),
            *(
                patch(
                    pods + "/p",
                    body,
                    STRATEGIC_PATCH,
                    code=422,
                    has={"details.causes.0.field": field},
                    compare=CAUSE,
                )
                for body, field in (
                    ({"spec": {"restartPolicy": "Never"}}, "spec"),
                    (container_patch(args=["x"]), "spec"),
                    (
                        {"spec": {"containers": [{"name": "d", "image": "i"}]}},
                        "spec.containers",
                    ),
                    (container_patch(image=None), "spec.containers[0].image"),
                )
            ),
            patch(
                pods + "/p",
                {"spec": {"activeDeadlineSeconds": 60}},
                has={"spec.activeDeadlineSeconds": 60},
            ),
            patch(
                pods + "/p",
                {"metadata": {"labels": {"a": "b"}}},
                has={"metadata.labels": {"a": "b"}},
            ),
        ),
    )
    jobs = BATCH + "jobs"
    yield Case(
        "the template of jobs stays",
        (
            post(
                jobs,
                named("j", {"parallelism": 0, "template": JOB_TEMPLATE}),
                compare=("spec.parallelism",),
            ),
            *(
                patch(
                    jobs + "/j",
                    {"spec": wrong},
                    code=422,
                    has={"details.causes.0.field": field},
                    compare=CAUSE,
                )
                for wrong, field in (
                    ({"template": {"spec": {"hostname": "h"}}}, "spec.template"),
                    ({"completions": 7}, "spec.completions"),
                )
            ),
            patch(
                jobs + "/j",
                {"spec": {"backoffLimit": 3}},
                has={"spec.backoffLimit": 3},
                compare=("spec.backoffLimit",),
            ),
        ),
    )
    claims = CORE + "persistentvolumeclaims"
    yield Case(
        "claims stay",
        (
            post(claims, named("c", CLAIM), compare=("spec", "status")),
            *(
                patch(
                    claims + "/c",
                    {"spec": wrong},
                    code=422,
                    has={"details.causes.0.field": "spec"},
                    compare=CAUSE,
                )
                for wrong in (
                    {"accessModes": ["ReadOnlyMany"]},
                    {"storageClassName": "x"},
                    {"resources": {"requests": {"storage": "2Gi"}}},
                )
            ),
        ),
    )
    services = CORE + "services"
    yield Case(
        "addresses of services stay",
        (
            post(
                services,
                named("s", {"clusterIP": "None", "ports": [{"port": 80}]}),
            ),
            patch(
                services + "/s",
                {"spec": {"clusterIP": "10.0.0.77", "clusterIPs": ["10.0.0.77"]}},
                code=422,
                has={"details.causes.0.field": "spec.clusterIPs[0]"},
                compare=CAUSE,
            ),
            patch(
                services + "/s",
                {"spec": {"ports": [{"port": 81}]}},
                has={"spec.ports.0.port": 81},
                compare=("spec.ports.0.port", "spec.clusterIP"),
            ),
        ),
    )
    role = {"apiGroup": RBAC, "kind": "Role", "name": "r"}
    yield Case(
        "bindings stay with their roles",
        (
            post(ROLES + "rolebindings", named("b", roleRef=role)),
            patch(
                ROLES + "rolebindings/b",
                {"roleRef": {"name": "s"}},
                code=422,
                has={"details.causes.0.field": "roleRef"},
                compare=CAUSE,
            ),
            patch(
                ROLES + "rolebindings/b",
                {"subjects": [{"kind": "User", "name": "u", "apiGroup": RBAC}]},
                has={"subjects.0.name": "u"},
            ),
        ),
    )
    yield Case(
        "types of secrets stay",
        (
            post(CORE + "secrets", named("t", type="a")),
            patch(
                CORE + "secrets/t",
                {"type": "b"},
                code=422,
                has={"details.causes.0.field": "type"},
                compare=CAUSE,
            ),
            patch(CORE + "secrets/t", {"data": {"a": "AQ=="}}),
        ),
    )


def container_patch(**more: Any) -> Json:
    """A strategic patch of the container of a pod."""
    return {"spec": {"containers": [{**CONTAINER, **more}]}}


# Steps whose message 1.20 words otherwise: it shows structs as Go writes them instead
# of JSON as in a current server, names old groups, or knows fewer values; and a
# generated name, or none.
OLD_WORDS: dict[str, tuple[int, ...]] = {
    "policies of pods are of a few": (1,),
    "variables of containers": (2,),
    "deployments select their own pods": (0, 1, 2, 3),
    "replicasets select their own pods": (0, 1, 2, 3),
    "daemonsets select their own pods": (0, 1, 2),
    "statefulsets select their own pods": (0, 1, 2, 3),
    "strategies of deployments": (0, 3, 4, 5),
    "policies of stateful and daemon sets": (1, 2, 3),
    "services and their ports": (7,),
    "jobs end": (5, 6),
    "claims": (2,),
    "roles and their rules": (3,),
    "leases": (1,),
    "network policies": (0, 1, 2, 3, 4),
    "ingresses": (0, 1, 2, 3, 4, 5),
    "metadata of config maps": (5, 6, 8, 9, 12),
    "config maps of more than a megabyte": (0,),
}
CAUSE = ("reason", "details.causes.0.field", "details.causes.0.reason")


def reworded(case: Case) -> Case:
    old = OLD_WORDS.get(case.name, ())
    steps = tuple(
        replace(step, compare=CAUSE) if index in old else step
        for index, step in enumerate(case.steps)
    )
    return replace(case, steps=steps)


CASES = tuple(map(reworded, (*defaulting(), *refusals(), *metadata(), *changes())))
