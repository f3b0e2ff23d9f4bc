"""Defaults and strategies of built-in kinds, as far as operators meet them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from fnop.core.kubernetes.quantities import amount
from fnop.interpreters.cluster.kinds.crds import CRDS, crd_defaults
from fnop.interpreters.cluster.kinds.defaults import defaults_of
from fnop.interpreters.cluster.kinds.gotypes import zero_status
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.values.objects import Object, Resource

__all__ = ["allocated", "born", "defaulted", "fresh_status", "kept"]


def _namespace(obj: Object) -> Object:
    name = obj["metadata"].get("name", "")
    spec = obj.get("spec") or {}
    given = spec.get("finalizers") or ()
    missing = () if "kubernetes" in given else ("kubernetes",)
    # Since 1.21 every namespace is labelled with its own name.
    labels = {**obj["metadata"].get("labels", {}), "kubernetes.io/metadata.name": name}
    return {
        **obj,
        "metadata": {**obj["metadata"], "labels": labels},
        "spec": {**spec, "finalizers": [*given, *missing]},
    }


def _secret(obj: Object) -> Object:
    plain = obj.get("stringData")
    result = {"type": "Opaque", **obj}
    if isinstance(plain, dict):
        # stringData is write-only: it becomes data.
        encoded = {
            key: b64encode(str(value).encode()).decode() for key, value in plain.items()
        }
        result["data"] = {**(obj.get("data") or {}), **encoded}
        del result["stringData"]
    return result


def _value_at(obj: Object, *path: str) -> Any:
    """The value at a path in an object; {} if there is none."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return {} if value is None else value


def _with_value_at(obj: Object, value: Any, *path: str) -> Object:
    """The object with another value at a path."""
    if not path:
        return value  # type: ignore[no-any-return]
    name, *rest = path
    return {**obj, name: _with_value_at(obj.get(name) or {}, value, *rest)}


IMAGE = re.compile(
    r"([a-zA-Z0-9][-a-zA-Z0-9.]*(:\d+)?/)?"  # a registry
    r"[a-z0-9]+((\.|__?|-+|/)[a-z0-9]+)*"  # a path
    r"(:\w[\w.-]{0,127})?(@[A-Za-z0-9_+.:-]+)?"  # a tag and a digest
)


def _pull_policy(image: str) -> str:
    """The default pull policy: Always without a tag, or for the tag latest."""
    if not IMAGE.fullmatch(image):
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if digest or tag not in ("", "latest") else "Always"


def _pods(*path: str) -> Callable[[Object], Object]:
    """A function that fills in the PodSpec at a path, beyond the schema's defaults."""

    def fill(obj: Object) -> Object:
        spec = _value_at(obj, *path)
        if not spec:
            return obj
        filled = dict(spec)
        # The old name of a field and its new name are kept equal.
        account = spec.get("serviceAccountName") or spec.get("serviceAccount")
        if account:
            filled["serviceAccountName"] = filled["serviceAccount"] = account
        for name in ("containers", "initContainers"):
            if name in spec:
                filled[name] = [_container(one) for one in spec[name] or ()]
        if spec.get("hostNetwork"):
            for name in ("containers", "initContainers"):
                filled[name] = [*map(_with_host_ports, filled.get(name) or ())]
            filled = {k: v for k, v in filled.items() if v != [] or k in spec}
        if "volumes" in spec:
            filled["volumes"] = [
                one if one.keys() - {"name"} else {**one, "emptyDir": {}}
                for one in spec["volumes"]
            ]
        return _with_value_at(obj, filled, *path)

    return fill


def _container(container: dict[str, Any]) -> dict[str, Any]:
    filled = dict(container)
    if "imagePullPolicy" not in filled:
        filled["imagePullPolicy"] = _pull_policy(filled.get("image", ""))
    return filled


def _with_host_ports(container: dict[str, Any]) -> dict[str, Any]:
    """A container in the host's network: its hostPort defaults to its containerPort."""
    if not container.get("ports"):
        return container
    ports = [
        {**port, "hostPort": port.get("hostPort") or port.get("containerPort", 0)}
        for port in container["ports"]
    ]
    return {**container, "ports": ports}


def _default_requests(container: dict[str, Any]) -> dict[str, Any]:
    """Default a container's requests to its limits: in pods, not in templates."""
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return container
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def _pod(obj: Object) -> Object:
    obj = _pods("spec")(obj)
    if "spec" not in obj:
        return obj
    if "serviceAccountName" not in obj["spec"]:
        names = {"serviceAccountName": "default", "serviceAccount": "default"}
        obj = _with_value_at(obj, {**obj["spec"], **names}, "spec")
    for name in ("containers", "initContainers"):
        if name in obj["spec"]:
            asking = [_default_requests(one) for one in obj["spec"][name]]
            obj = _with_value_at(obj, asking, "spec", name)
    given = obj["spec"].get("tolerations", [])
    keys = {one.get("key") for one in given}
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in NOT_THERE
        if key not in keys
    ]
    return (
        _with_value_at(obj, [*given, *added], "spec", "tolerations") if added else obj
    )


NOT_THERE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _service(obj: Object) -> Object:
    spec = {**(obj.get("spec") or {})}
    kind = spec.get("type")
    if "ports" in spec:
        spec["ports"] = [*map(_port, spec["ports"])]
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec.get("sessionAffinity") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec.get("sessionAffinity") == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        client = {"timeoutSeconds": 10800, **(config.get("clientIP") or {})}
        spec["sessionAffinityConfig"] = {"clientIP": client}
    return {**obj, "spec": spec}


def _port(port: dict[str, Any]) -> dict[str, Any]:
    if port.get("targetPort") or "port" not in port:
        return port
    return {**port, "targetPort": port["port"]}


def _job(obj: Object) -> Object:
    obj = _with_template_labels(_pods(*TEMPLATED)(obj))
    if not obj.get("spec"):
        return obj
    spec = dict(obj["spec"])
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    return {**obj, "spec": spec}


def _new_job(obj: Object) -> Object:
    """Let a new job select its pods by its uid, unless manualSelector is set.

    See generateSelector. Labels and a selector of the author stay, and are refused if
    they do not fit.
    """
    spec = obj.get("spec")
    if not spec or spec.get("manualSelector"):
        return obj
    uid, name = obj["metadata"]["uid"], obj["metadata"].get("name", "")
    made = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template = spec.get("template") or {}
    metadata = template.get("metadata") or {}
    labels = {**made, **metadata.get("labels", {})}
    selector = spec.get("selector") or {}
    found = {"batch.kubernetes.io/controller-uid": uid}
    chosen = {**found, **selector.get("matchLabels", {})}
    spec = {
        **spec,
        "selector": {**selector, "matchLabels": chosen},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    return {**obj, "spec": spec}


BORN: dict[Resource, Callable[[Object], Object]] = {("batch", "jobs"): _new_job}


def born(kind: Kind, obj: Object) -> Object:
    """A new object with the additions of its strategy at creation."""
    add = BORN.get(kind.resource)
    return obj if add is None else add(obj)


# ---------------------------------------------------------------- what is allocated


def _number(text: str, limit: int) -> int:
    """A number below the limit, derived from the text."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") % limit


def _service_with_address(obj: Object, variant: int) -> Object:
    """A service with an address, and with node ports if its type has them."""
    spec, metadata = {**(obj.get("spec") or {})}, obj["metadata"]
    kind = spec.get("type")
    if kind == "ExternalName":
        return obj
    text = f"{metadata.get('namespace')}/{metadata.get('name')}" + "'" * variant
    if not spec.get("clusterIP"):
        # 10.96.0.0/12, except the first addresses, which belong to the cluster.
        place = 256 + _number(text, 2**20 - 512)
        spec["clusterIP"] = f"10.{96 + (place >> 16)}.{place >> 8 & 255}.{place & 255}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if kind in ("NodePort", "LoadBalancer") and "ports" in spec:
        spec["ports"] = [
            {**port, "nodePort": port.get("nodePort") or _node_port(f"{text}:{index}")}
            for index, port in enumerate(spec["ports"])
        ]
    if _is_checked(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _node_port(f"{text}:health")
    return {**obj, "spec": spec}


def _node_port(text: str) -> int:
    return 30000 + _number(text, 2768)


def _is_checked(spec: Object) -> bool:
    """Whether load balancers check nodes for a service's pods (NeedsHealthCheck)."""
    policy = spec.get("externalTrafficPolicy")
    return (spec.get("type"), policy) == ("LoadBalancer", "Local")


ALLOCATED: dict[Resource, Callable[[Object, int], Object]] = {
    ("", "services"): _service_with_address
}


def allocated(kind: Kind, obj: Object, variant: int) -> Object:
    """The object with the fields that the server allocates; they have no manager.

    They are derived from its name, and from the cluster's `variant`.
    """
    allocate = ALLOCATED.get(kind.resource)
    return obj if allocate is None else allocate(obj, variant)


def _policy(obj: Object) -> Object:
    spec = obj.get("spec")
    if not spec or "policyTypes" in spec:
        return obj
    kinds = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**obj, "spec": {**spec, "policyTypes": kinds}}


RBAC = "rbac.authorization.k8s.io"


def _role(obj: Object) -> Object:
    return obj if "rules" in obj else {**obj, "rules": None}


def _default_binding(obj: Object) -> Object:
    obj = {**obj, "roleRef": {**(obj.get("roleRef") or {})}}
    obj["roleRef"].setdefault("apiGroup", RBAC)
    if obj.get("subjects"):
        obj["subjects"] = [
            {"apiGroup": RBAC, **one} if one.get("kind") in ("User", "Group") else one
            for one in obj["subjects"]
        ]
    return obj


QUARTER = {"maxUnavailable": "25%", "maxSurge": "25%"}


def _rolling_update_default(*path: str, **defaults: Any) -> Callable[[Object], Object]:
    """A function that defaults an update strategy to RollingUpdate and its bounds."""

    def fill(obj: Object) -> Object:
        obj = _pods(*TEMPLATED)(obj)
        given = _value_at(obj, *path)
        if given.get("type", "RollingUpdate") != "RollingUpdate" or "spec" not in obj:
            return obj
        rolling = {**defaults, **(given.get("rollingUpdate") or {})}
        strategy = {**given, "type": "RollingUpdate", "rollingUpdate": rolling}
        return obj if strategy == given else _with_value_at(obj, strategy, *path)

    return fill


UPDATES = ("spec", "updateStrategy")
_deployment = _rolling_update_default("spec", "strategy", **QUARTER)
_rolled_set = _rolling_update_default(*UPDATES, partition=0)


def _stateful_set(obj: Object) -> Object:
    """Fill in a stateful set; its update type may come without a rollingUpdate."""
    given = _value_at(obj, *UPDATES)
    if "type" in given and "rollingUpdate" not in given:
        return _pods(*TEMPLATED)(obj)
    return _rolled_set(obj)


_daemon_updates = _rolling_update_default(*UPDATES, maxUnavailable=1, maxSurge=0)

GENERATION = "deprecated.daemonset.template.generation"


def _daemon_set(obj: Object) -> Object:
    """Fill in a daemon set: update strategy, annotation of the generation."""
    obj = _daemon_updates(obj)
    given = obj["metadata"].get("annotations", {})
    if GENERATION in given:
        return obj
    annotations = {GENERATION: "1", **given}
    return _with_value_at(obj, annotations, "metadata", "annotations")


# The limits for the growth and shrinking of a set of pods, if they are specified.
FASTEST: dict[str, Any] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    },
    "scaleDown": {
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    },
}
HALF_BUSY = {
    "type": "Resource",
    "resource": {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80},
    },
}


def _autoscaler(obj: Object) -> Object:
    spec = {"minReplicas": 1, **(obj.get("spec") or {})}
    if not spec.get("metrics"):
        spec["metrics"] = [HALF_BUSY]
    if "behavior" in spec:
        given = spec["behavior"]
        spec["behavior"] = {
            **given,
            **{name: {**some, **given.get(name, {})} for name, some in FASTEST.items()},
        }
    return {**obj, "spec": spec}


def _account(obj: Object) -> Object:
    """Keep only the names in the secrets of an account."""
    if "secrets" not in obj:
        return obj
    names = [{k: v for k, v in one.items() if k == "name"} for one in obj["secrets"]]
    return {**obj, "secrets": names}


def _ingress_class(obj: Object) -> Object:
    parameters = _value_at(obj, "spec", "parameters")
    if not parameters or "scope" in parameters:
        return obj
    return _with_value_at(obj, {**parameters, "scope": "Cluster"}, "spec", "parameters")


def _limit_range(obj: Object) -> Object:
    limits = _value_at(obj, "spec", "limits")
    if not limits:
        return obj
    return _with_value_at(obj, [*map(_limit, limits)], "spec", "limits")


def _limit(limit: dict[str, Any]) -> dict[str, Any]:
    """Fill in a limit: default is the maximum, defaultRequest is the default."""
    if limit.get("type") != "Container":
        return limit
    default = {**limit.get("max", {}), **limit.get("default", {})}
    requested = {**limit.get("min", {}), **default, **limit.get("defaultRequest", {})}
    result = {**limit, "default": default, "defaultRequest": requested}
    return {name: value for name, value in result.items() if value}


def _with_template_labels(obj: Object) -> Object:
    """Give an object without labels the labels of its template."""
    labels = _value_at(obj, "spec", "template", "metadata", "labels")
    if not labels or obj["metadata"].get("labels"):
        return obj
    return _with_value_at(obj, labels, "metadata", "labels")


def _controller(obj: Object) -> Object:
    """Default a replication controller's labels and selector to its template's."""
    obj = _with_template_labels(_pods(*TEMPLATED)(obj))
    labels = _value_at(obj, "spec", "template", "metadata", "labels")
    if labels and not _value_at(obj, "spec", "selector"):
        obj = _with_value_at(obj, labels, "spec", "selector")
    return obj


EVENT: dict[str, Any] = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def _event(obj: Object) -> Object:
    missing = EVENT.keys() - obj.keys()
    return {**EVENT, **obj} if missing else obj


def _node(obj: Object) -> Object:
    spec = dict(obj.get("spec") or {})
    if "podCIDR" in spec:
        spec.setdefault("podCIDRs", [spec["podCIDR"]])
    return {**obj, "spec": spec}


def _storage_node(obj: Object) -> Object:
    drivers = _value_at(obj, "spec").get("drivers")
    if not drivers:
        return obj
    # Go writes this field even if it is empty.
    filled = [{"topologyKeys": None, **each} for each in drivers]
    return _with_value_at(obj, filled, "spec", "drivers")


TEMPLATED = ("spec", "template", "spec")
DEFAULTS: dict[Resource, Callable[[Object], Object]] = {
    ("", "namespaces"): _namespace,
    ("", "secrets"): _secret,
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("", "podtemplates"): _pods("template", "spec"),
    ("", "limitranges"): _limit_range,
    ("", "serviceaccounts"): _account,
    ("networking.k8s.io", "ingressclasses"): _ingress_class,
    ("", "replicationcontrollers"): _controller,
    ("", "events"): _event,
    ("", "nodes"): _node,
    ("storage.k8s.io", "csinodes"): _storage_node,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _pods(*TEMPLATED),
    ("apps", "statefulsets"): _stateful_set,
    ("apps", "daemonsets"): _daemon_set,
    ("autoscaling", "horizontalpodautoscalers"): _autoscaler,
    ("batch", "jobs"): _job,
    ("batch", "cronjobs"): _pods("spec", "jobTemplate", *TEMPLATED),
    ("networking.k8s.io", "networkpolicies"): _policy,
    (RBAC, "roles"): _role,
    (RBAC, "clusterroles"): _role,
    (RBAC, "rolebindings"): _default_binding,
    (RBAC, "clusterrolebindings"): _default_binding,
    CRDS: crd_defaults,
}

# The fields that a status always has: Go writes them even if they are empty.
STATUS: dict[Resource, dict[str, Any]] = {
    ("", "namespaces"): {"phase": "Active"},
    ("", "nodes"): {
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": dict.fromkeys(
            (
                "machineID",
                "systemUUID",
                "bootID",
                "kernelVersion",
                "osImage",
                "containerRuntimeVersion",
                "kubeletVersion",
                "kubeProxyVersion",
                "operatingSystem",
                "architecture",
            ),
            "",
        ),
    },
    ("storage.k8s.io", "volumeattachments"): {"attached": False},
    ("", "persistentvolumeclaims"): {"phase": "Pending"},
    ("", "persistentvolumes"): {"phase": "Pending"},
    ("", "services"): {"loadBalancer": {}},
    ("networking.k8s.io", "ingresses"): {"loadBalancer": {}},
}


def defaulted(kind: Kind, obj: Object) -> Object:
    """The object with the defaults of its built-in kind."""
    schema = defaults_of(kind.resource)
    if schema is not None:
        obj = schema.filled(obj)
    fill = DEFAULTS.get(kind.resource)
    return obj if fill is None else fill(obj)


# ------------------------------------------------------------- what is kept

Keep = Callable[[Object, Object], Object]


def _kept_namespace(new: Object, old: Object) -> Object:
    """Keep spec.finalizers, which only `/finalize` changes, until it has none."""
    spec = {k: v for k, v in (new.get("spec") or {}).items() if k != "finalizers"}
    if "finalizers" in (old.get("spec") or {}):
        spec["finalizers"] = old["spec"]["finalizers"]
    return {**new, "spec": spec}


def _kept_daemon_set(new: Object, old: Object) -> Object:
    """Count changes of the template in the older annotation, too."""
    counted = old["metadata"].get("annotations", {}).get(GENERATION, "1")
    if not str(counted).isdecimal():
        return new
    if _value_at(new, "spec", "template") != _value_at(old, "spec", "template"):
        counted = str(int(counted) + 1)
    annotations = {**new["metadata"].get("annotations", {}), GENERATION: counted}
    return _with_value_at(new, annotations, "metadata", "annotations")


WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")


def _drop_node_ports(after: dict[str, Any], before: dict[str, Any]) -> None:
    """Drop what was allocated for a service that is no longer reachable on nodes."""
    allocated = {one.get("nodePort") for one in before.get("ports") or ()}
    after["ports"] = [
        {k: v for k, v in port.items() if k != "nodePort"}
        if port.get("nodePort") in allocated
        else port
        for port in after.get("ports") or ()
    ]
    if after.get("externalTrafficPolicy") == before.get("externalTrafficPolicy"):
        after.pop("externalTrafficPolicy", None)


def _kept_service(new: Object, old: Object) -> Object:
    """Keep allocated addresses and ports, unless the new type does not need them."""
    after, before = {**_value_at(new, "spec")}, _value_at(old, "spec")
    if after.get("type") in WITH_ADDRESS and before.get("type") in WITH_ADDRESS:
        for name in ("clusterIP", "clusterIPs"):
            if not after.get(name) and name in before:
                after[name] = before[name]
    location = after.get("clusterIP")
    if location != before.get("clusterIP") and (
        after.get("clusterIPs") == before.get("clusterIPs")
    ):
        after["clusterIPs"] = [location]  # the older field decides
    if after.get("type") == "ClusterIP" != before.get("type"):
        _drop_node_ports(after, before)
    if "healthCheckNodePort" in before:
        if not _is_checked(after):
            after.pop("healthCheckNodePort", None)
        elif _is_checked(before):
            after.setdefault("healthCheckNodePort", before["healthCheckNodePort"])
    return {**new, "spec": after}


KEPT: dict[Resource, Keep] = {
    ("", "namespaces"): _kept_namespace,
    ("", "services"): _kept_service,
    ("apps", "daemonsets"): _kept_daemon_set,
}


def kept(kind: Kind, new: Object, old: Object) -> Object:
    """A changed object with the fields that its strategy restores from the old one."""
    keep = KEPT.get(kind.resource)
    return new if keep is None else keep(new, old)


def fresh_status(kind: Kind, obj: Object) -> dict[str, Any]:
    """The status of a built-in object that was just created."""
    if kind.resource == ("", "pods"):
        return {"phase": "Pending", "qosClass": _quality(obj.get("spec") or {})}
    return {**zero_status(kind), **STATUS.get(kind.resource, {})}


def _quality(spec: Object) -> str:
    """The quality of service (qos.ComputePodQOS), which orders evictions of pods."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    asked = [one.get("resources") or {} for one in containers]
    parts = ("requests", "limits")
    counted = [
        {
            (part, name): amount(value)
            for part in parts
            for name, value in (one.get(part) or {}).items()
            if name in ("cpu", "memory") and amount(value)
        }
        for one in asked
    ]
    if not any(counted):
        return "BestEffort"
    is_full = all(
        ("limits", name) in one and one["limits", name] == one.get(("requests", name))
        for one in counted
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if is_full else "Burstable"
