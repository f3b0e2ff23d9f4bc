"""Objects in other forms: tables, metadata only; what an Accept header may say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import JSON, MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS"]

Json = dict[str, Any]

GROUP = "tables.conf.dev"
ROWS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/rows"
PLAINS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/plains"
PATHS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/paths"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
BOTH = ("1.20", "1.36")
NEW = ("1.36",)
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
PARTIAL = f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def column(name: str, path: str, type: str = "string", **more: Any) -> Json:
    return {"name": name, "type": type, "jsonPath": path, **more}


def crd(kind: str, *columns: Json, status: bool = False) -> Json:
    plural = f"{kind.lower()}s"
    version: Json = {"name": "v1", "served": True, "storage": True}
    if columns:
        version["additionalPrinterColumns"] = list(columns)
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{**version, "schema": {"openAPIV3Schema": OPEN}}],
        },
    }


TYPES = ("string", "integer", "number", "boolean", "date")
CRDS = (
    crd("Plain"),
    crd(
        "Row",
        *(column(type.capitalize(), ".v", type) for type in TYPES),
        column("Wide", ".w", priority=1, format="byte", description="Wide only"),
        column("Age", ".metadata.creationTimestamp", "date"),
        status=True,
    ),
    crd(
        "Path",
        column("Ready", '.l[?(@.type=="Ready")].status'),
        column("Index", ".l[1].type"),
        column("Last", ".l[-1].type"),
        column("All", ".l[*].type"),
        column("Slice", ".l[0:1].type"),
        column("More", ".l[?(@.n>1)].type"),
        column("Has", ".l[?(@.n)].type"),
        column("Escaped", ".m.a\\.b"),
        column("Quoted", ".m['c']"),
        column("Dotted", ".m['d.e']"),
        column("Deep", "..deep"),
        column("Labels", ".metadata.labels"),
        column("None", ".m.x.y.z"),
    ),
)


def get(path: str, code: int = 200, **more: Any) -> Step:
    return Step("GET", path, code=code, accept=more.pop("accept", TABLE), **more)


def post(path: str, body: Any, **more: Any) -> Step:
    return Step("POST", path, body, code=more.pop("code", 201), **more)


def row(name: str, kind: str = "Row", /, **parts: Any) -> Json:
    metadata = {"name": name, **parts.pop("metadata", {})}
    head = {"apiVersion": f"{GROUP}/v1", "kind": kind}
    return {**head, "metadata": metadata, **parts}


def builtin(kind: str, version: str = "v1", name: str = "a", **parts: Any) -> Json:
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


NAMED = {"includeObject": "None"}

# ---------------------------------------------------------------- custom kinds


def custom() -> Iterator[Case]:
    yield Case(
        "the table of a custom kind",
        (
            post(ROWS, row("a", v="text", w="wide")),
            get(
                f"{ROWS}/a",
                has={"kind": "Table", "apiVersion": "meta.k8s.io/v1"},
            ),
            get(ROWS, has={"rows.0.cells.0": "a", "columnDefinitions.6.priority": 1}),
        ),
        servers=NEW,
    )
    yield Case(
        "the table of a custom kind, of old too",
        (
            post(ROWS, row("a", v="text", w="wide")),
            get(
                f"{ROWS}/a",
                compare=("rows", *(f"columnDefinitions.{i}" for i in range(1, 8))),
                has={"rows.0.cells.1": "text", "rows.0.cells.6": "wide"},
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "a custom kind without columns",
        (
            post(PLAINS, row("a", "Plain")),
            get(PLAINS, has={"columnDefinitions.1.name": "Age"}),
            get(f"{PLAINS}/a", query=NAMED, has={"rows.0.cells.0": "a"}),
        ),
        servers=NEW,
    )
    values = (
        "text",
        3,
        1.5,
        True,
        {"a": 1},
        ["x", 2],
        "5",
        100000000,
        1e-05,
        1234567.5,
    )
    yield Case(
        "cells of every type",
        tuple(
            post(
                ROWS,
                row(f"x{number}", v=value),
                accept=TABLE,
                query=NAMED,
                compare=("rows",),
            )
            for number, value in enumerate(values)
        ),
        servers=BOTH,
    )
    yield Case(
        "cells of nothing",
        (
            post(ROWS, row("a"), accept=TABLE, query=NAMED, compare=("rows",)),
            post(ROWS, row("b", v=""), accept=TABLE, query=NAMED, compare=("rows",)),
            post(ROWS, row("c", v=[]), accept=TABLE, query=NAMED, compare=("rows",)),
        ),
        servers=BOTH,
    )
    entries = [
        {"type": "A", "n": 1},
        {"type": "Ready", "status": "True", "n": 2},
    ]
    parts = {"a.b": "dotted", "c": "c", "d.e": "no", "x": {"deep": "found"}}
    yield Case(
        "paths of columns",
        (
            post(
                PATHS,
                row(
                    "a",
                    "Path",
                    l=entries,
                    m=parts,
                    metadata={"labels": {"b": "1", "a": "2"}},
                ),
                accept=TABLE,
                query=NAMED,
                compare=("rows",),
                has={
                    "rows.0.cells": [
                        "a",
                        "True",
                        "Ready",
                        "Ready",
                        "A",
                        "A",
                        "Ready",
                        "A",
                        "dotted",
                        "c",
                        None,
                        "found",
                        '{"a":"2","b":"1"}',
                        None,
                    ]
                },
            ),
            post(
                PATHS,
                row("b", "Path", l={"type": "x"}, m=[1]),
                accept=TABLE,
                query=NAMED,
                compare=("rows",),
            ),
        ),
        servers=NEW,
    )


def tables() -> Iterator[Case]:
    yield Case(
        "tables of lists",
        (
            get(ROWS, has={"rows": []}, compare=("rows", "kind", "apiVersion")),
            post(ROWS, row("a")),
            post(ROWS, row("b")),
            get(
                ROWS,
                query={"limit": "1"},
                has={
                    "rows.0.cells.0": "a",
                    "rows.1": ABSENT,
                    "metadata.remainingItemCount": 1,
                },
                compare=("rows", "metadata"),
            ),
            get(
                ROWS,
                query={"limit": "1", "continue": "$3.metadata.continue"},
                has={"rows.0.cells.0": "b", "metadata.continue": ABSENT},
                compare=("rows", "metadata"),
            ),
            get(ROWS, 400, query={"labelSelector": "a in"}),
        ),
        servers=BOTH,
    )
    yield Case(
        "what rows show of their objects",
        (
            post(ROWS, row("a", v=1)),
            *(
                get(
                    f"{ROWS}/a",
                    query={"includeObject": include},
                    compare=("rows", "metadata"),
                    has={"rows.0.object.kind": kind},
                )
                for include, kind in (
                    ("", "PartialObjectMetadata"),
                    ("Metadata", "PartialObjectMetadata"),
                    ("Object", "Row"),
                    ("None", ABSENT),
                )
            ),
            get(f"{ROWS}/a", 400, query={"includeObject": "All"}),
            get(f"{ROWS}/a", accept=JSON, query={"includeObject": "All"}),
        ),
        servers=BOTH,
    )
    yield Case(
        "tables of the beta version",
        (
            post(ROWS, row("a")),
            get(
                f"{ROWS}/a",
                accept=TABLE.replace("v=v1", "v=v1beta1"),
                has={
                    "apiVersion": "meta.k8s.io/v1beta1",
                    "rows.0.object.apiVersion": "meta.k8s.io/v1beta1",
                },
                compare=("apiVersion", "rows"),
            ),
        ),
        servers=BOTH,
    )
    yield Case(
        "writes answer with tables",
        (
            post(
                ROWS, row("a"), accept=TABLE, compare=("rows",), has={"kind": "Table"}
            ),
            Step(
                "PATCH",
                f"{ROWS}/a",
                {"v": 2},
                MERGE_PATCH,
                accept=TABLE,
                compare=("rows",),
                has={"rows.0.cells.2": 2},
            ),
            Step(
                "PATCH",
                f"{ROWS}/a/status",
                {"status": {"x": 1}},
                MERGE_PATCH,
                accept=TABLE,
                compare=("rows",),
                has={"rows.0.cells.2": 2},
            ),
            post(ROWS, row("a"), accept=TABLE, code=409, has={"kind": "Status"}),
            get(f"{ROWS}/b", 404, has={"kind": "Status"}),
            Step("DELETE", f"{ROWS}/a", accept=TABLE, has={"kind": "Status"}),
        ),
        servers=BOTH,
    )


def metadata() -> Iterator[Case]:
    yield Case(
        "metadata only",
        (
            post(ROWS, row("a", v=1, metadata={"labels": {"l": "1"}})),
            get(
                f"{ROWS}/a",
                accept=PARTIAL,
                has={
                    "kind": "PartialObjectMetadata",
                    "metadata.name": "a",
                    "v": ABSENT,
                },
            ),
            get(
                ROWS,
                accept=PARTIALS,
                has={
                    "kind": "PartialObjectMetadataList",
                    "items.0.kind": "PartialObjectMetadata",
                    "items.0.v": ABSENT,
                    "metadata.continue": ABSENT,
                },
            ),
            get(ROWS, 406, accept=PARTIAL, has={"reason": "NotAcceptable"}),
            get(
                f"{ROWS}/a",
                500,
                accept=PARTIALS,
                compare=("message",),
                has={"message": "content is not a list"},
            ),
            post(ROWS, row("b"), accept=PARTIAL, has={"kind": "PartialObjectMetadata"}),
        ),
        servers=BOTH,
    )
    yield Case(
        "metadata only of a built-in kind",
        (
            post(MAPS, builtin("ConfigMap", data={"a": "b"})),
            get(f"{MAPS}/a", accept=PARTIAL, has={"data": ABSENT}),
            get(
                MAPS,
                accept=PARTIALS,
                query={"fieldSelector": "metadata.name=a"},
                has={"items.0.metadata.name": "a", "items.0.data": ABSENT},
            ),
            get(f"{MAPS}/a", 406, accept=PARTIALS, compare=("message", "code")),
            get(MAPS, 406, accept=PARTIAL, compare=("message", "code")),
        ),
    )


def negotiation() -> Iterator[Case]:
    yield Case(
        "forms that cannot be had",
        (
            *(
                get(f"{ROWS}/no", 406, accept=accept, has={"reason": "NotAcceptable"})
                for accept in (
                    "text/plain",
                    "text/*",
                    "application/cbor",
                    "garbage",
                    f"{JSON};as=Row;v=v1;g=meta.k8s.io",
                    f"{JSON};as=Table",
                    f"{JSON};as=Table;g=meta.k8s.io;v=v2",
                )
            ),
            post(ROWS, row("a"), accept="text/plain", code=406),
            get(f"{ROWS}/a", 404, accept=JSON),
        ),
        servers=BOTH,
    )
    yield Case(
        "forms that are the object itself",
        (
            post(ROWS, row("a")),
            *(
                get(f"{ROWS}/a", accept=accept, has={"kind": "Row"})
                for accept in (
                    "*/*",
                    "application/*",
                    f"{PROTOBUF},{JSON}",
                    f"{JSON};q=0",
                    f"{JSON};charset=utf-8",
                    f"{JSON};stream=watch",
                    f"{JSON};as=Row;v=v1;g=meta.k8s.io,{JSON}",
                    f"application/yaml;q=0.5,{JSON}",
                )
            ),
            get(
                f"{ROWS}/a",
                accept=f"{TABLE},{JSON}",
                has={"kind": "Table"},
                compare=("kind", "rows"),
            ),
        ),
        servers=BOTH,
    )
    # The 406 of the router has got more words since.
    router = {"reason": "NotAcceptable", "details": {}}
    yield Case(
        "forms that a built-in kind cannot have",
        (
            *(
                get(f"{MAPS}/no", 406, accept=accept, has=router, old=(406, router))
                for accept in ("text/plain", "application/*", "garbage")
            ),
            get(f"{MAPS}/no", 406, accept=f"{JSON};as=Map;v=v1;g=meta.k8s.io"),
            get(f"{MAPS}/no", 404, accept="*/*"),
        ),
    )


# -------------------------------------------------------------- built-in kinds

POD = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j:1"}]}
LABELS = {"app": "a"}
SELECTOR = {"matchLabels": LABELS}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}


def shown(
    title: str,
    path: str,
    body: Json,
    has: dict[int, Any],
    *more: Step,
    **options: Any,
) -> Case:
    """One object and its row."""
    old = options.pop("old", None)
    query = {**NAMED, "fieldSelector": f"metadata.name={body['metadata']['name']}"}
    cells = {f"rows.0.cells.{number}": value for number, value in has.items()}
    compare = options.pop("compare", ("rows",))
    return Case(
        f"the table of {title}",
        (
            post(path, body, compare="code", **options),
            get(path, query=query, has=cells, compare=compare, old=old),
            *more,
        ),
    )


def builtins() -> Iterator[Case]:
    namespaced = "/api/v1/namespaces/{ns}/"
    apps = "/apis/apps/v1/namespaces/{ns}/"
    yield shown(
        "config maps",
        MAPS,
        builtin("ConfigMap", data={"a": "1", "b": "2"}, binaryData={"c": "AA=="}),
        {0: "a", 1: 3},
    )
    yield shown(
        "secrets",
        namespaced + "secrets",
        builtin("Secret", data={"a": "AA=="}),
        {0: "a", 1: "Opaque", 2: 1},
    )
    yield shown(
        "services",
        namespaced + "services",
        builtin(
            "Service",
            spec={
                "ports": [
                    {"name": "a", "port": 80},
                    {"name": "b", "port": 53, "protocol": "UDP"},
                ],
                "selector": {"b": "2", "a": "1"},
                "clusterIP": "None",
            },
        ),
        {1: "ClusterIP", 2: "None", 3: "<none>", 4: "80/TCP,53/UDP", 6: "a=1,b=2"},
    )
    yield shown(
        "services of a name outside",
        namespaced + "services",
        builtin("Service", spec={"type": "ExternalName", "externalName": "x.dev"}),
        {1: "ExternalName", 2: "<none>", 3: "x.dev", 4: "<none>", 6: "<none>"},
    )
    yield shown(
        "deployments",
        apps + "deployments",
        builtin(
            "Deployment",
            "apps/v1",
            spec={"replicas": 0, "selector": SELECTOR, "template": TEMPLATE},
        ),
        {0: "a", 1: "0/0", 2: 0, 3: 0, 5: "c,d", 6: "i,j:1", 7: "app=a"},
    )
    expressions = [
        {"key": "app", "operator": "In", "values": ["b", "a"]},
        {"key": "x", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
    ]
    yield shown(
        "replica sets",
        apps + "replicasets",
        builtin(
            "ReplicaSet",
            "apps/v1",
            spec={
                "replicas": 0,
                "selector": {"matchExpressions": expressions},
                "template": TEMPLATE,
            },
        ),
        {1: 0, 2: 0, 3: 0, 5: "c,d"},
        compare=tuple(f"rows.0.cells.{i}" for i in range(7)),
    )
    yield shown(
        "stateful sets",
        apps + "statefulsets",
        builtin(
            "StatefulSet",
            "apps/v1",
            spec={
                "replicas": 0,
                "serviceName": "s",
                "selector": SELECTOR,
                "template": TEMPLATE,
            },
        ),
        {1: "0/0", 3: "c,d"},
    )
    yield shown(
        "daemon sets",
        apps + "daemonsets",
        builtin(
            "DaemonSet",
            "apps/v1",
            spec={
                "selector": SELECTOR,
                "template": {
                    **TEMPLATE,
                    "spec": {**POD, "nodeSelector": {"disk": "ssd"}},
                },
            },
        ),
        {1: 0, 5: 0, 6: "disk=ssd", 8: "c,d"},
    )
    yield shown(
        "jobs",
        "/apis/batch/v1/namespaces/{ns}/jobs",
        builtin(
            "Job",
            "batch/v1",
            spec={
                "parallelism": 0,
                "completions": 3,
                "template": {"spec": {**POD, "restartPolicy": "Never"}},
            },
        ),
        {0: "a", 1: "Running", 2: "0/3", 5: "c,d"},
        old=(200, {"rows.0.cells.1": "0/3"}),
    )
    yield shown(
        "ingresses",
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        builtin(
            "Ingress",
            "networking.k8s.io/v1",
            spec={
                "ingressClassName": "x",
                "defaultBackend": {"service": {"name": "s", "port": {"number": 1}}},
                "rules": [{"host": f"{letter}.dev"} for letter in "abcde"],
                "tls": [{"hosts": ["a.dev"]}],
            },
        ),
        {1: "x", 2: "a.dev,b.dev,c.dev + 2 more...", 3: "", 4: "80, 443"},
    )
    yield shown(
        "network policies",
        "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
        builtin("NetworkPolicy", "networking.k8s.io/v1", spec={"podSelector": {}}),
        {0: "a", 1: "<none>"},
    )
    yield shown(
        "roles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
        builtin("Role", "rbac.authorization.k8s.io/v1", rules=[]),
        {0: "a"},
    )
    group = "rbac.authorization.k8s.io"
    yield shown(
        "role bindings",
        f"/apis/{group}/v1/namespaces/{{ns}}/rolebindings",
        builtin(
            "RoleBinding",
            f"{group}/v1",
            roleRef={"apiGroup": group, "kind": "ClusterRole", "name": "view"},
            subjects=[
                {"apiGroup": group, "kind": "User", "name": "u"},
                {"apiGroup": group, "kind": "Group", "name": "g"},
                {"apiGroup": group, "kind": "User", "name": "v"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        ),
        {1: "ClusterRole/view", 3: "u, v", 4: "g", 5: "n/s"},
    )
    yield shown(
        "leases",
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
        builtin("Lease", "coordination.k8s.io/v1", spec={"holderIdentity": "me"}),
        {0: "a", 1: "me"},
    )
    yield shown(
        "endpoints",
        namespaced + "endpoints",
        builtin(
            "Endpoints",
            subsets=[
                {
                    "addresses": [{"ip": f"10.1.1.{i}"} for i in range(1, 5)],
                    "ports": [{"port": 80}],
                }
            ],
        ),
        {1: "10.1.1.1:80,10.1.1.2:80,10.1.1.3:80 + 1 more..."},
        compare=("rows.0.cells.0",),
    )
    yield shown(
        "events",
        namespaced + "events",
        builtin(
            "Event",
            involvedObject={
                "kind": "Pod",
                "name": "p",
                "namespace": "{ns}",
                "fieldPath": "spec",
            },
            reason="Because",
            type="Warning",
            source={"component": "conf", "host": "h"},
            message=" it is so\n",
        ),
        {0: "<unknown>", 1: "Warning", 3: "pod/p", 5: "conf, h", 6: "it is so", 8: 1},
        old=(200, {"rows.0.cells.3": "pod/p"}),
    )
    yield shown(
        "claims",
        namespaced + "persistentvolumeclaims",
        builtin(
            "PersistentVolumeClaim",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        ),
        {1: "Pending", 2: "", 3: "", 4: "", 5: "fast"},
        compare=tuple(f"rows.0.cells.{i}" for i in range(6)),
    )
    yield shown(
        "quotas",
        namespaced + "resourcequotas",
        builtin("ResourceQuota", spec={"hard": {"pods": "3", "limits.cpu": "1"}}),
        {0: "a"},
        compare=("rows.0.cells.0",),
    )
    yield Case(
        "the tables of what has no namespace",
        (
            get(
                "/api/v1/namespaces/{ns}",
                query=NAMED,
                has={"rows.0.cells.1": "Active"},
                compare=("rows.0.cells.0", "rows.0.cells.1"),
            ),
            post(
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                builtin("PriorityClass", "scheduling.k8s.io/v1", "{ns}", value=7),
                compare="code",
            ),
            get(
                "/apis/scheduling.k8s.io/v1/priorityclasses/{ns}",
                query=NAMED,
                has={"rows.0.cells.1": 7, "rows.0.cells.2": False},
                compare=tuple(f"rows.0.cells.{i}" for i in range(4)),
            ),
            Step(
                "DELETE",
                "/apis/scheduling.k8s.io/v1/priorityclasses/{ns}",
                compare="code",
            ),
            post(
                "/apis/storage.k8s.io/v1/storageclasses",
                builtin(
                    "StorageClass",
                    "storage.k8s.io/v1",
                    "{ns}",
                    provisioner="x.dev/y",
                    allowVolumeExpansion=True,
                    volumeBindingMode="Immediate",
                ),
                compare="code",
            ),
            get(
                "/apis/storage.k8s.io/v1/storageclasses/{ns}",
                query=NAMED,
                has={"rows.0.cells.1": "x.dev/y", "rows.0.cells.4": True},
                compare=("rows",),
            ),
            Step(
                "DELETE", "/apis/storage.k8s.io/v1/storageclasses/{ns}", compare="code"
            ),
            get(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rows." + GROUP,
                query=NAMED,
                compare=("rows",),
            ),
        ),
    )
    yield Case(
        "the tables of nodes",
        (
            post(
                "/api/v1/nodes",
                builtin(
                    "Node",
                    name="{ns}",
                    metadata={
                        "labels": {
                            "node-role.kubernetes.io/b": "",
                            "kubernetes.io/role": "a",
                        }
                    },
                    spec={"unschedulable": True},
                ),
                compare="code",
            ),
            Step(
                "PATCH",
                "/api/v1/nodes/{ns}/status",
                {
                    "status": {
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "addresses": [{"type": "InternalIP", "address": "10.9.9.9"}],
                        "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "os"},
                    }
                },
                MERGE_PATCH,
                compare="code",
            ),
            get(
                "/api/v1/nodes/{ns}",
                query=NAMED,
                has={
                    "rows.0.cells.1": "Ready,SchedulingDisabled",
                    "rows.0.cells.2": "a,b",
                    "rows.0.cells.5": "10.9.9.9",
                    "rows.0.cells.8": "<unknown>",
                },
                compare=("rows",),
            ),
            Step("DELETE", "/api/v1/nodes/{ns}", compare="code"),
        ),
    )


def pods() -> Iterator[Case]:
    path = "/api/v1/namespaces/{ns}/pods"
    gates = [{"conditionType": "x.dev/y"}]
    cells = tuple(f"rows.0.cells.{i}" for i in (0, 1, 2, 5, 6, 7, 8))

    def state(status: Json, reason: str, ready: str, **has: Any) -> tuple[Step, Step]:
        return (
            Step(
                "PATCH",
                f"{path}/a/status",
                {"status": status},
                MERGE_PATCH,
                compare="code",
            ),
            get(
                f"{path}/a",
                query=NAMED,
                has={"rows.0.cells.2": reason, "rows.0.cells.1": ready, **has},
                compare=(*cells, "rows.0.conditions"),
            ),
        )

    def container(state: Json, *, ready: bool = False, restarts: int = 0) -> Json:
        named = {"name": "c", "image": "i", "imageID": "", "state": state}
        return {**named, "ready": ready, "restartCount": restarts}

    waiting = container({"waiting": {"reason": "ImagePullBackOff"}})
    moment = "2020-01-01T00:00:00Z"
    running = container({"running": {"startedAt": moment}}, ready=True)
    ended = container({"terminated": {"exitCode": 3}}, restarts=2)
    killed = container({"terminated": {"exitCode": 1, "reason": "OOMKilled"}})
    done = container({"terminated": {"exitCode": 0, "reason": "Completed"}})
    signal = container({"terminated": {"exitCode": 137, "signal": 9}})
    init = {"name": "b", "image": "i"}
    yield Case(
        "the tables of pods",
        (
            post(
                path,
                builtin(
                    "Pod",
                    spec={**POD, "initContainers": [init], "readinessGates": gates},
                ),
                compare="code",
                eventually=True,  # the service account comes with time
            ),
            *state({}, "Pending", "0/2", **{"rows.0.cells.8": "0/1"}),
            *state({"containerStatuses": [waiting]}, "ImagePullBackOff", "0/2"),
            *state(
                {
                    "phase": "Running",
                    "podIP": "10.8.8.8",
                    "podIPs": [{"ip": "10.8.8.8"}],
                    "containerStatuses": [running, ended],
                    "conditions": [{"type": "x.dev/y", "status": "True"}],
                },
                "ExitCode:3",
                "1/2",
            ),
            *state({"containerStatuses": [running, killed]}, "OOMKilled", "1/2"),
            *state({"containerStatuses": [signal]}, "Signal:9", "0/2"),
            *state({"containerStatuses": [done, running]}, "NotReady", "1/2"),
            *state(
                {"initContainerStatuses": [{**waiting, "name": "b"}]},
                "Init:ImagePullBackOff",
                "0/2",
            ),
            *state(
                {"initContainerStatuses": [{**running, "name": "b"}]}, "Init:0/1", "0/2"
            ),
            *state(
                {"initContainerStatuses": [{**ended, "name": "b"}]},
                "Init:ExitCode:3",
                "0/2",
            ),
            *state(
                {
                    "reason": "Evicted",
                    "phase": "Failed",
                    "initContainerStatuses": None,
                    "containerStatuses": None,
                },
                "Evicted",
                "0/2",
                **{"rows.0.conditions.0.reason": "Failed"},
            ),
            *state(
                {"reason": None, "phase": "Succeeded"},
                "Succeeded",
                "0/2",
                **{"rows.0.conditions.0.type": "Completed"},
            ),
        ),
    )


CASES = (
    *custom(),
    *tables(),
    *metadata(),
    *negotiation(),
    *builtins(),
    *pods(),
)
