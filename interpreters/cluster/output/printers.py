"""The columns and cells of built-in kinds, as in `pkg/printers/internalversion`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.output.ages import (
    UNKNOWN,
    age,
    created,
    human_duration,
    seconds_of,
)
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["CELLS", "COLUMNS", "conditions_of"]

NONE, UNSET = "<none>", "<unset>"

# --------------------------------------------------------------------- columns

# One row per resource. A star marks columns that only `kubectl get -o wide` shows.
# Types other than string follow a colon.
CONTAINERS = "*Containers|*Images"
WORKLOAD = f"{CONTAINERS}|*Selector"
COLUMNS: dict[tuple[str, str], str] = {
    ("", "configmaps"): "Name|Data|Age",
    ("", "endpoints"): "Name|Endpoints|Age",
    ("", "events"): "Last Seen|Type|Reason|Object|*Subobject|*Source|Message|"
    "*First Seen|*Count|*Name",
    ("", "limitranges"): "Name|Created At:date",
    ("", "namespaces"): "Name|Status|Age",
    ("", "nodes"): "Name|Status|Roles|Age|Version|*Internal-IP|*External-IP|"
    "*OS-Image|*Kernel-Version|*Container-Runtime",
    ("", "persistentvolumeclaims"): "Name|Status|Volume|Capacity|Access Modes|"
    "StorageClass|VolumeAttributesClass|Age|*VolumeMode",
    ("", "persistentvolumes"): "Name|Capacity|Access Modes|Reclaim Policy|Status|"
    "Claim|StorageClass|VolumeAttributesClass|Reason|Age|*VolumeMode",
    ("", "pods"): "Name|Ready|Status|Restarts|Age|*IP|*Node|*Nominated Node|"
    "*Readiness Gates",
    ("", "podtemplates"): "Name|Containers|Images|Pod Labels",
    ("", "replicationcontrollers"): "Name|Desired:integer|Current:integer|"
    f"Ready:integer|Age|{WORKLOAD}",
    ("", "resourcequotas"): "Name|Request|Limit|Age",
    ("", "secrets"): "Name|Type|Data|Age",
    ("", "serviceaccounts"): "Name|Secrets|Age",
    ("", "services"): "Name|Type|Cluster-IP|External-IP|Port(s)|Age|*Selector",
    ("apps", "controllerrevisions"): "Name|Controller|Revision|Age",
    ("apps", "daemonsets"): "Name|Desired:integer|Current:integer|Ready:integer|"
    f"Up-to-date:integer|Available:integer|Node Selector|Age|{WORKLOAD}",
    ("apps", "deployments"): f"Name|Ready|Up-to-date|Available|Age|{WORKLOAD}",
    ("apps", "replicasets"): "Name|Desired:integer|Current:integer|Ready:integer|"
    f"Age|{WORKLOAD}",
    ("apps", "statefulsets"): f"Name|Ready|Age|{CONTAINERS}",
    ("autoscaling", "horizontalpodautoscalers"): "Name|Reference|Targets|MinPods|"
    "MaxPods|Replicas|Age",
    ("batch", "cronjobs"): "Name|Schedule|Timezone|Suspend:boolean|Active:integer|"
    f"Last Schedule|Age|{WORKLOAD}",
    ("batch", "jobs"): f"Name|Status|Completions|Duration|Age|{WORKLOAD}",
    ("certificates.k8s.io", "certificatesigningrequests"): "Name|Age|SignerName|"
    "Requestor|RequestedDuration|Condition",
    ("apiregistration.k8s.io", "apiservices"): "Name|Service|Available|Age",
    ("node.k8s.io", "runtimeclasses"): "Name|Handler|Age",
    ("storage.k8s.io", "csidrivers"): "Name|AttachRequired:boolean|"
    "PodInfoOnMount:boolean|StorageCapacity:boolean|TokenRequests|"
    "RequiresRepublish:boolean|Modes|Age",
    ("storage.k8s.io", "csinodes"): "Name|Drivers:integer|Age",
    ("storage.k8s.io", "csistoragecapacities"): "Name|StorageClassName|Capacity",
    ("storage.k8s.io", "volumeattachments"): "Name|Attacher|PV|Node|"
    "Attached:boolean|Age",
    ("networking.k8s.io", "ingressclasses"): "Name|Controller|Parameters|Age",
    ("networking.k8s.io", "ingresses"): "Name|Class|Hosts|Address|Ports|Age",
    ("networking.k8s.io", "networkpolicies"): "Name|Pod-Selector|Age",
    ("policy", "poddisruptionbudgets"): "Name|Min Available|Max Unavailable|"
    "Allowed Disruptions:integer|Age",
    ("rbac.authorization.k8s.io", "clusterrolebindings"): "Name|Role|Age|*Users|"
    "*Groups|*ServiceAccounts",
    ("rbac.authorization.k8s.io", "clusterroles"): "Name|Created At:date",
    ("rbac.authorization.k8s.io", "rolebindings"): "Name|Role|Age|*Users|*Groups|"
    "*ServiceAccounts",
    ("rbac.authorization.k8s.io", "roles"): "Name|Created At:date",
    ("storage.k8s.io", "storageclasses"): "Name|Provisioner|ReclaimPolicy|"
    "VolumeBindingMode|AllowVolumeExpansion|Age",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): "Name|"
    "Webhooks:integer|Age",
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): "Name|"
    "Webhooks:integer|Age",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "Name|Created At:date",
    ("scheduling.k8s.io", "priorityclasses"): "Name|Value:integer|"
    "Global-Default:boolean|Age|*PreemptionPolicy",
    ("coordination.k8s.io", "leases"): "Name|Holder|Age",
    ("discovery.k8s.io", "endpointslices"): "Name|AddressType|Ports|Endpoints|Age",
}
COLUMNS["events.k8s.io", "events"] = COLUMNS["", "events"]

# The phases of pods that are done, and the condition's message.
DONE = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def conditions_of(kind: Kind | None, obj: Object) -> list[dict[str, str]]:
    """The conditions of a row: whether a pod is done."""
    if kind is None or kind.resource != ("", "pods"):
        return []
    phase = _value_at(obj, "status", "phase")
    if phase not in DONE:
        return []
    return [
        {
            "type": "Completed",
            "status": "True",
            "reason": phase,
            "message": DONE[phase],
        }
    ]


def _value_at(value: Any, *path: str) -> Any:
    """The part at a path, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Any, *path: str, default: str = "") -> str:
    found = _value_at(value, *path)
    return found if isinstance(found, str) and found else default


def _number(value: Any, *path: str) -> int:
    found = _value_at(value, *path)
    return found if isinstance(found, int) else 0


def _list(value: Any, *path: str) -> list[Any]:
    found = _value_at(value, *path)
    return found if isinstance(found, list) else []


def _name(obj: Object) -> str:
    return _text(obj, "metadata", "name")


def _labels(labels: Any) -> str:
    """labels.FormatLabels."""
    if not isinstance(labels, dict) or not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def _selector(selector: Any) -> str:
    """metav1.FormatLabelSelector."""
    if not isinstance(selector, dict):
        return NONE
    labels = selector.get("matchLabels") or {}
    parts = [(key, f"{key}={value}") for key, value in labels.items()]
    for each in _list(selector, "matchExpressions"):
        key = _text(each, "key")
        values = ",".join(sorted(map(str, _list(each, "values"))))
        match _text(each, "operator"):
            case "In":
                parts.append((key, f"{key} in ({values})"))
            case "NotIn":
                parts.append((key, f"{key} notin ({values})"))
            case "Exists":
                parts.append((key, key))
            case "DoesNotExist":
                parts.append((key, f"!{key}"))
            case _:
                pass  # validation knows no others
    return ",".join(text for _, text in sorted(parts, key=lambda p: p[0])) or NONE


def _containers(template: Any) -> list[Any]:
    """The names and the images of a pod template's containers."""
    containers = _list(template, "spec", "containers")
    return [
        ",".join(_text(each, "name") for each in containers),
        ",".join(_text(each, "image") for each in containers),
    ]


def _workload(obj: Object) -> list[Any]:
    spec = obj.get("spec")
    return [
        *_containers(_value_at(spec, "template")),
        _selector(_value_at(spec, "selector")),
    ]


# ------------------------------------------------------------------------ pods


def _pod(obj: Object, now: float) -> list[Any]:
    ready, total, reason, restarts, last = _pod_state(obj)
    spec, status = obj.get("spec"), obj.get("status")
    count = str(restarts)
    if restarts and last:
        count = f"{restarts} ({age(last, now)} ago)"
    addresses = _list(status, "podIPs")
    address = _text(addresses[0] if addresses else None, "ip")
    return [
        _name(obj),
        f"{ready}/{total}",
        reason,
        count,
        created(obj, now),
        address or _text(status, "podIP", default=NONE),
        _text(spec, "nodeName", default=NONE),
        _text(status, "nominatedNodeName", default=NONE),
        _readiness_gates(spec, status),
    ]


def _readiness_gates(spec: Any, status: Any) -> str:
    gates = _list(spec, "readinessGates")
    if not gates:
        return NONE
    true = {
        _text(each, "type")
        for each in _list(status, "conditions")
        if _text(each, "status") == "True"
    }
    held = sum(_text(each, "conditionType") in true for each in gates)
    return f"{held}/{len(gates)}"


def _is_condition(status: Any, name: str) -> bool:
    return any(
        _text(each, "type") == name and _text(each, "status") == "True"
        for each in _list(status, "conditions")
    )


def _pod_state(obj: Object) -> tuple[int, int, str, int, str]:
    """The cells Ready, Status, Restarts of a pod."""
    spec, status = obj.get("spec"), obj.get("status")
    reason = _text(status, "reason") or _text(status, "phase")
    for each in _list(status, "conditions"):
        if _text(each, "type") == "PodScheduled" and (
            _text(each, "reason") == "SchedulingGated"
        ):
            reason = "SchedulingGated"
    sidecars = {
        _text(each, "name")
        for each in _list(spec, "initContainers")
        if _text(each, "restartPolicy") == "Always"
    }
    total = len(_list(spec, "containers")) + len(sidecars)
    first_reason, ready, counts, lasts = _init_containers(spec, status, sidecars)
    restarts, last = sum(counts), max(lasts, default="")
    if first_reason is None or _is_condition(status, "Initialized"):
        found = _main_containers(status, first_reason or reason)
        ready, reason = ready + found[0], found[1]
        names = [_text(each, "name") for each in _list(status, "initContainerStatuses")]
        kept = [
            count
            for name, count in zip(names, counts, strict=False)
            if name in sidecars
        ]
        restarts, last = sum(kept) + found[2], max(found[3], "")
    else:
        reason = first_reason
    if _value_at(obj, "metadata", "deletionTimestamp"):
        if _text(status, "reason") == "NodeLost":
            reason = "Unknown"
        elif _text(status, "phase") not in DONE:
            reason = "Terminating"
    return ready, total, reason, restarts, last


def _init_containers(
    spec: Any, status: Any, sidecars: set[str]
) -> tuple[str | None, int, list[int], list[str]]:
    """The state of initialization (None: done), and the containers counted."""
    ready, counts, lasts = 0, [], []
    for number, each in enumerate(_list(status, "initContainerStatuses")):
        counts.append(_number(each, "restartCount"))
        lasts.append(_text(each, "lastState", "terminated", "finishedAt"))
        if _is_initialized(each, sidecars):
            ready += (
                _text(each, "name") in sidecars and _value_at(each, "ready") is True
            )
            continue
        total = len(_list(spec, "initContainers"))
        return _init_reason(each, number, total), ready, counts, lasts
    return None, ready, counts, lasts


def _is_initialized(container: Any, sidecars: set[str]) -> bool:
    terminated = _value_at(container, "state", "terminated")
    if terminated is not None and not _number(terminated, "exitCode"):
        return True
    is_sidecar = _text(container, "name") in sidecars
    return is_sidecar and _value_at(container, "started") is True


def _init_reason(container: Any, number: int, total: int) -> str:
    terminated = _value_at(container, "state", "terminated")
    if terminated is not None:
        return f"Init:{_end_of(terminated)}"
    waiting = _text(container, "state", "waiting", "reason")
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{number}/{total}"


def _end_of(terminated: Any) -> str:
    if reason := _text(terminated, "reason"):
        return reason
    if signal := _number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{_number(terminated, 'exitCode')}"


def _main_containers(status: Any, reason: str) -> tuple[int, str, int, str]:
    """The main containers: the ready ones, a reason, restarts, and the last restart."""
    ready, restarts, last = 0, 0, ""
    for each in reversed(_list(status, "containerStatuses")):
        restarts += _number(each, "restartCount")
        last = max(last, _text(each, "lastState", "terminated", "finishedAt"))
        state = _value_at(each, "state")
        if waiting := _text(state, "waiting", "reason"):
            reason = waiting
        elif (terminated := _value_at(state, "terminated")) is not None:
            reason = _end_of(terminated)
        elif (
            _value_at(each, "ready") is True and _value_at(state, "running") is not None
        ):
            ready += 1
    if reason == "Completed" and ready:
        reason = "Running" if _is_condition(status, "Ready") else "NotReady"
    return ready, reason, restarts, last


# ------------------------------------------------------------------- workloads


def _deployment(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    return [
        _name(obj),
        f"{_number(status, 'readyReplicas')}/{_number(spec, 'replicas')}",
        _number(status, "updatedReplicas"),
        _number(status, "availableReplicas"),
        created(obj, now),
        *_workload(obj),
    ]


def _replicas(obj: Object) -> list[Any]:
    status = obj.get("status")
    return [
        _name(obj),
        _number(obj, "spec", "replicas"),
        _number(status, "replicas"),
        _number(status, "readyReplicas"),
    ]


def _replica_set(obj: Object, now: float) -> list[Any]:
    return [*_replicas(obj), created(obj, now), *_workload(obj)]


def _replication_controller(obj: Object, now: float) -> list[Any]:
    return [
        *_replicas(obj),
        created(obj, now),
        *_containers(_value_at(obj, "spec", "template")),
        _labels(_value_at(obj, "spec", "selector")),
    ]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    return [
        _name(obj),
        f"{_number(status, 'readyReplicas')}/{_number(spec, 'replicas')}",
        created(obj, now),
        *_containers(_value_at(spec, "template")),
    ]


def _daemon_set(obj: Object, now: float) -> list[Any]:
    status = obj.get("status")
    counted = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        _name(obj),
        *(_number(status, name) for name in counted),
        _labels(_value_at(obj, "spec", "template", "spec", "nodeSelector")),
        created(obj, now),
        *_workload(obj),
    ]


def _job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    succeeded, wanted = _number(status, "succeeded"), _value_at(spec, "completions")
    if wanted is None:
        parallel = _number(spec, "parallelism")
        of = f"1 of {parallel}" if parallel > 1 else "1"
    else:
        of = str(wanted)
    start, end = _text(status, "startTime"), _text(status, "completionTime")
    begun = seconds_of(start) if start else None
    ended = (seconds_of(end) if end else None) or now
    return [
        _name(obj),
        _job_status(obj, status),
        f"{succeeded}/{of}",
        "" if begun is None else human_duration(ended - begun),
        created(obj, now),
        *_workload(obj),
    ]


def _job_status(obj: Object, status: Any) -> str:
    for name in ("Complete", "Failed"):
        if _is_condition(status, name):
            return name
    if _value_at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _is_condition(status, name):
            return name
    return "Running"


def _cron_job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    last = _text(status, "lastScheduleTime")
    job = _value_at(spec, "jobTemplate", "spec")
    return [
        _name(obj),
        _text(spec, "schedule"),
        _text(spec, "timeZone", default=NONE),
        _flag(_value_at(spec, "suspend")),
        len(_list(status, "active")),
        age(last, now) if last else NONE,
        created(obj, now),
        *_containers(_value_at(job, "template")),
        _selector(_value_at(job, "selector")),
    ]


def _flag(value: Any) -> str:
    return UNSET if value is None else "True" if value else "False"


def _autoscaler(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    target = _value_at(spec, "scaleTargetRef")
    minimum = _value_at(spec, "minReplicas")
    return [
        _name(obj),
        f"{_text(target, 'kind')}/{_text(target, 'name')}",
        _targets(_list(spec, "metrics"), _list(status, "currentMetrics")),
        UNSET if minimum is None else str(minimum),
        _number(spec, "maxReplicas"),
        _number(status, "currentReplicas"),
        created(obj, now),
    ]


def _targets(wanted: list[Any], found: list[Any]) -> str:
    """The metrics of an autoscaler: current values and targets."""
    if not wanted:
        return NONE
    texts = []
    for number, metric in enumerate(wanted):
        field = _text(metric, "type")
        field = f"{field[:1].lower()}{field[1:]}"
        current = _value_at(
            found[number] if number < len(found) else None, field, "current"
        )
        source, target = _value_at(metric, field), _value_at(metric, field, "target")
        label = _text(source, "name")
        head = f"{label}: " if label else ""
        share = _value_at(target, "averageUtilization")
        if share is not None:
            now_share = _value_at(current, "averageUtilization")
            shown = UNKNOWN if now_share is None else f"{now_share}%"
            texts.append(f"{head}{shown}/{share}%")
            continue
        is_mean = _value_at(target, "averageValue") is not None
        name = "averageValue" if is_mean else "value"
        shown = _text(current, name, default=UNKNOWN)
        mean = " (avg)" if is_mean else ""
        texts.append(f"{head}{shown}/{_text(target, name)}{mean}")
    more = f" + {len(texts) - 2} more..." if len(texts) > 2 else ""
    return ", ".join(texts[:2]) + more


# -------------------------------------------------------------------- networks


def _service(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec")
    addresses = _list(spec, "clusterIPs")
    address = addresses[0] if addresses else _text(spec, "clusterIP")
    return [
        _name(obj),
        _text(spec, "type"),
        address or NONE,
        _external(obj, spec),
        ",".join(map(_port, _list(spec, "ports"))) or NONE,
        created(obj, now),
        _labels(_value_at(spec, "selector")),
    ]


def _port(port: Any) -> str:
    text, node = str(_number(port, "port")), _number(port, "nodePort")
    protocol = _text(port, "protocol")
    return f"{text}:{node}/{protocol}" if node else f"{text}/{protocol}"


def _external(obj: Object, spec: Any) -> str:
    own = list(map(str, _list(spec, "externalIPs")))
    match _text(spec, "type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            return ",".join(filter(None, [_balancer(obj), *own])) or "<pending>"
        case "ExternalName":
            return _text(spec, "externalName")
        case _:
            return UNKNOWN


def _balancer(obj: Object) -> str:
    points = _list(obj, "status", "loadBalancer", "ingress")
    found = {_text(each, "ip") or _text(each, "hostname") for each in points}
    return ",".join(sorted(found - {""}))


def _ingress(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec")
    rules = _list(spec, "rules")
    hosts = [host for each in rules[:3] if (host := _text(each, "host"))]
    more = f" + {len(rules) - 3} more..." if len(rules) > 3 and hosts else ""
    return [
        _name(obj),
        _text(spec, "ingressClassName", default=NONE),
        ",".join(hosts) + more if hosts else "*",
        _balancer(obj),
        "80, 443" if _list(spec, "tls") else "80",
        created(obj, now),
    ]


def _ingress_class(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec")
    target = _value_at(spec, "parameters")
    text = NONE
    if target is not None:
        group = _text(target, "apiGroup")
        kind = _text(target, "kind")
        text = f"{kind}.{group}" if group else kind
        text = f"{text}/{_text(target, 'name')}"
    return [_name(obj), _text(spec, "controller"), text, created(obj, now)]


def _endpoints(obj: Object, now: float) -> list[Any]:
    found = [
        f"{_in_brackets(_text(address, 'ip'))}:{_number(port, 'port')}"
        for subset in _list(obj, "subsets")
        for port in _list(subset, "ports") or [None]
        for address in _list(subset, "addresses")
    ]
    return [_name(obj), _first_three(found), created(obj, now)]


def _in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _first_three(texts: list[str]) -> str:
    """Three items, and the number of the others."""
    if not texts:
        return NONE
    more = f" + {len(texts) - 3} more..." if len(texts) > 3 else ""
    return ",".join(texts[:3]) + more


def _endpoint_slice(obj: Object, now: float) -> list[Any]:
    ports = [
        str(_number(each, "port")) if _value_at(each, "port") is not None else "*"
        for each in _list(obj, "ports")
    ]
    addresses = [
        str(address)
        for each in _list(obj, "endpoints")
        for address in _list(each, "addresses")
    ]
    missing = UNSET if not (ports and addresses) else NONE
    return [
        _name(obj),
        _text(obj, "addressType"),
        _first_three(ports) if ports else missing,
        _first_three(addresses) if addresses else missing,
        created(obj, now),
    ]


# --------------------------------------------------------------------- storage

MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: list[Any]) -> str:
    return ",".join(text for mode, text in MODES.items() if mode in modes)


def _phase(obj: Object) -> str:
    if _value_at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return _text(obj, "status", "phase")


CLASS = "volume.beta.kubernetes.io/storage-class"


def _class(obj: Object) -> str:
    old = _text(obj, "metadata", "annotations", CLASS)
    return old or _text(obj, "spec", "storageClassName")


def _claim(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    volume, capacity, modes = _text(spec, "volumeName"), "", ""
    if volume:
        capacity = _text(status, "capacity", "storage", default="0")
        modes = _modes(_list(status, "accessModes"))
    return [
        _name(obj),
        _phase(obj),
        volume,
        capacity,
        modes,
        _class(obj),
        _text(spec, "volumeAttributesClassName", default=UNSET),
        created(obj, now),
        _text(spec, "volumeMode", default=UNSET),
    ]


def _volume(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    claim = _value_at(spec, "claimRef")
    owner = f"{_text(claim, 'namespace')}/{_text(claim, 'name')}" if claim else ""
    return [
        _name(obj),
        _text(spec, "capacity", "storage", default="0"),
        _modes(_list(spec, "accessModes")),
        _text(spec, "persistentVolumeReclaimPolicy"),
        _phase(obj),
        owner,
        _class(obj),
        _text(spec, "volumeAttributesClassName", default=UNSET),
        _text(status, "reason"),
        created(obj, now),
        _text(spec, "volumeMode", default=UNSET),
    ]


def _storage_class(obj: Object, now: float) -> list[Any]:
    annotations = _value_at(obj, "metadata", "annotations")
    is_default = any(
        _text(annotations, f"storageclass{beta}.kubernetes.io/is-default-class")
        == "true"
        for beta in ("", ".beta")
    )
    return [
        f"{_name(obj)} (default)" if is_default else _name(obj),
        _text(obj, "provisioner"),
        _text(obj, "reclaimPolicy", default="Delete"),
        _text(obj, "volumeBindingMode", default=UNSET),
        _value_at(obj, "allowVolumeExpansion") is True,
        created(obj, now),
    ]


# ---------------------------------------------------------------------- others


def _node(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    ready = [
        "Ready" if _text(each, "status") == "True" else "NotReady"
        for each in _list(status, "conditions")
        if _text(each, "type") == "Ready"
    ]
    states = ready[-1:] or ["Unknown"]
    if _value_at(spec, "unschedulable") is True:
        states = [*states, "SchedulingDisabled"]
    info = _value_at(status, "nodeInfo")
    return [
        _name(obj),
        ",".join(states),
        ",".join(_roles(obj)) or NONE,
        created(obj, now),
        _text(info, "kubeletVersion"),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        _text(info, "osImage", default=UNKNOWN),
        _text(info, "kernelVersion", default=UNKNOWN),
        _text(info, "containerRuntimeVersion", default=UNKNOWN),
    ]


ROLE = "node-role.kubernetes.io/"


def _roles(obj: Object) -> list[str]:
    labels = _value_at(obj, "metadata", "labels") or {}
    found = {key.removeprefix(ROLE) for key in labels if key.startswith(ROLE)}
    return sorted((found | {labels.get("kubernetes.io/role", "")}) - {""})


def _address(status: Any, kind: str) -> str:
    for each in _list(status, "addresses"):
        if _text(each, "type") == kind:
            return _text(each, "address")
    return NONE


def _event(obj: Object, now: float) -> list[Any]:
    # In both views of an event, core/v1 and events.k8s.io/v1.
    target = _value_at(obj, "involvedObject") or _value_at(obj, "regarding")
    source = _value_at(obj, "source") or _value_at(obj, "deprecatedSource")
    begin = _text(obj, "firstTimestamp") or _text(obj, "deprecatedFirstTimestamp")
    last = _text(obj, "lastTimestamp") or _text(obj, "deprecatedLastTimestamp")
    begun = age(begin or _text(obj, "eventTime"), now)
    ended = age(last, now) if last else begun
    count = _number(obj, "count") or _number(obj, "deprecatedCount") or 1
    series = _value_at(obj, "series")
    if series is not None:
        ended = age(_text(series, "lastObservedTime"), now)
        count = _number(series, "count")
    kind, name = _text(target, "kind").lower(), _text(target, "name")
    return [
        ended,
        _text(obj, "type"),
        _text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        _text(target, "fieldPath"),
        _source(obj, source),
        (_text(obj, "message") or _text(obj, "note")).strip(),
        begun,
        count,
        _name(obj),
    ]


def _source(obj: Object, source: Any) -> str:
    component = _text(source, "component")
    host = _text(source, "host")
    if not component:
        component = _text(obj, "reportingComponent")
        component = component or _text(obj, "reportingController")
        host = _text(obj, "reportingInstance")
    return ", ".join(filter(None, (component, host)))


def _quota(obj: Object, now: float) -> list[Any]:
    hard = _value_at(obj, "status", "hard") or {}
    used = _value_at(obj, "status", "used") or {}
    groups: tuple[list[str], list[str]] = ([], [])
    for name in sorted(hard):
        text = f"{name}: {used.get(name, '0')}/{hard[name]}"
        groups[name.startswith("limits")].append(text)
    return [_name(obj), *map(", ".join, groups), created(obj, now)]


def _controller_revision(obj: Object, now: float) -> list[Any]:
    controller = NONE
    for each in _list(obj, "metadata", "ownerReferences"):
        if _value_at(each, "controller") is True:
            group = _text(each, "apiVersion").rpartition("/")[0]
            kind = _text(each, "kind").lower()
            controller = f"{kind}.{group}" if group else kind
            controller = f"{controller}/{_text(each, 'name')}"
    revision = _number(obj, "revision")
    return [_name(obj), controller, revision, created(obj, now)]


def _binding_cells(obj: Object, now: float) -> list[Any]:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for each in _list(obj, "subjects"):
        kind, name = _text(each, "kind"), _text(each, "name")
        if kind == "ServiceAccount":
            name = f"{_text(each, 'namespace')}/{name}"
        subjects.setdefault(kind, []).append(name)
    role = _value_at(obj, "roleRef")
    return [
        _name(obj),
        f"{_text(role, 'kind')}/{_text(role, 'name')}",
        created(obj, now),
        *(", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")),
    ]


def _budget(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec")
    limits = (_value_at(spec, name) for name in ("minAvailable", "maxUnavailable"))
    return [
        _name(obj),
        *("N/A" if limit is None else str(limit) for limit in limits),
        _number(obj, "status", "disruptionsAllowed"),
        created(obj, now),
    ]


def _signing_request(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec"), obj.get("status")
    seconds = _value_at(spec, "expirationSeconds")
    names = {_text(each, "type") for each in _list(status, "conditions")}
    state = "Denied" if "Denied" in names else "Pending"
    if state != "Denied" and "Approved" in names:
        state = "Approved"
    if "Failed" in names:
        state += ",Failed"
    if _text(status, "certificate"):
        state += ",Issued"
    return [
        _name(obj),
        created(obj, now),
        _text(spec, "signerName", default=NONE),
        _text(spec, "username"),
        NONE if seconds is None else human_duration(seconds),
        state,
    ]


def _api_service(obj: Object, now: float) -> list[Any]:
    service = _value_at(obj, "spec", "service")
    where = "Local"
    if service:
        where = f"{_text(service, 'namespace')}/{_text(service, 'name')}"
    state = "Unknown"
    for each in _list(obj.get("status"), "conditions"):
        if _text(each, "type") == "Available":
            state = _text(each, "status")
            if state != "True":
                state += f" ({_text(each, 'reason')})"
    return [_name(obj), where, state, created(obj, now)]


def _driver(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec")
    audiences = [_text(each, "audience") for each in _list(spec, "tokenRequests")]
    modes = [str(each) for each in _value_at(spec, "volumeLifecycleModes") or ()]
    return [
        _name(obj),
        _value_at(spec, "attachRequired") is not False,
        _value_at(spec, "podInfoOnMount") is True,
        _value_at(spec, "storageCapacity") is True,
        ",".join(audiences) or UNSET,
        _value_at(spec, "requiresRepublish") is True,
        ",".join(modes) or NONE,
        created(obj, now),
    ]


def _storage_capacity(obj: Object, now: float) -> list[Any]:
    capacity = _text(obj, "capacity", default=UNSET)
    return [_name(obj), _text(obj, "storageClassName"), capacity]


def _attachment(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec")
    return [
        _name(obj),
        _text(spec, "attacher"),
        _text(_value_at(spec, "source"), "persistentVolumeName"),
        _text(spec, "nodeName"),
        _value_at(obj, "status", "attached") is True,
        created(obj, now),
    ]


Cells = Callable[[Object, float], list[Any]]


def _cells_of(*parts: Callable[[Object], Any]) -> Cells:
    """A row of name, some cells, and age."""

    def cells(obj: Object, now: float) -> list[Any]:
        return [_name(obj), *(part(obj) for part in parts), created(obj, now)]

    return cells


def _name_and_time(obj: Object, now: float) -> list[Any]:
    created = _text(obj, "metadata", "creationTimestamp")
    return [_name(obj), _utc(created)]


def _utc(moment: str) -> str:
    seconds = seconds_of(moment) if moment else None
    if seconds is None:
        return moment
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _count(*names: str) -> Callable[[Object], int]:
    return lambda obj: sum(len(obj.get(name) or ()) for name in names)


def _template(obj: Object, now: float) -> list[Any]:
    template = _value_at(obj, "template")
    labels = _labels(_value_at(template, "metadata", "labels"))
    return [_name(obj), *_containers(template), labels]


def _priority_class(obj: Object, now: float) -> list[Any]:
    return [
        _name(obj),
        _number(obj, "value"),
        _value_at(obj, "globalDefault") is True,
        created(obj, now),
        _text(obj, "preemptionPolicy"),
    ]


RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
CELLS: dict[tuple[str, str], Cells] = {
    ("", "configmaps"): _cells_of(_count("data", "binaryData")),
    ("", "endpoints"): _endpoints,
    ("", "events"): _event,
    ("events.k8s.io", "events"): _event,
    ("", "limitranges"): _name_and_time,
    ("", "namespaces"): _cells_of(lambda obj: _text(obj, "status", "phase")),
    ("", "nodes"): _node,
    ("", "persistentvolumeclaims"): _claim,
    ("", "persistentvolumes"): _volume,
    ("", "pods"): _pod,
    ("", "podtemplates"): _template,
    ("", "replicationcontrollers"): _replication_controller,
    ("", "resourcequotas"): _quota,
    ("", "secrets"): _cells_of(lambda obj: _text(obj, "type"), _count("data")),
    ("", "serviceaccounts"): _cells_of(_count("secrets")),
    ("", "services"): _service,
    ("apps", "controllerrevisions"): _controller_revision,
    ("apps", "daemonsets"): _daemon_set,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("apps", "statefulsets"): _stateful_set,
    ("autoscaling", "horizontalpodautoscalers"): _autoscaler,
    ("batch", "cronjobs"): _cron_job,
    ("batch", "jobs"): _job,
    ("certificates.k8s.io", "certificatesigningrequests"): _signing_request,
    ("apiregistration.k8s.io", "apiservices"): _api_service,
    ("node.k8s.io", "runtimeclasses"): _cells_of(lambda obj: _text(obj, "handler")),
    ("storage.k8s.io", "csidrivers"): _driver,
    ("storage.k8s.io", "csinodes"): _cells_of(
        lambda obj: len(_list(obj.get("spec"), "drivers"))
    ),
    ("storage.k8s.io", "csistoragecapacities"): _storage_capacity,
    ("storage.k8s.io", "volumeattachments"): _attachment,
    ("networking.k8s.io", "ingressclasses"): _ingress_class,
    ("networking.k8s.io", "ingresses"): _ingress,
    ("networking.k8s.io", "networkpolicies"): _cells_of(
        lambda obj: _selector(_value_at(obj, "spec", "podSelector"))
    ),
    ("policy", "poddisruptionbudgets"): _budget,
    (RBAC, "clusterrolebindings"): _binding_cells,
    (RBAC, "clusterroles"): _name_and_time,
    (RBAC, "rolebindings"): _binding_cells,
    (RBAC, "roles"): _name_and_time,
    ("storage.k8s.io", "storageclasses"): _storage_class,
    (ADMISSION, "mutatingwebhookconfigurations"): _cells_of(_count("webhooks")),
    (ADMISSION, "validatingwebhookconfigurations"): _cells_of(_count("webhooks")),
    ("apiextensions.k8s.io", "customresourcedefinitions"): _name_and_time,
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
    ("coordination.k8s.io", "leases"): _cells_of(
        lambda obj: _text(obj, "spec", "holderIdentity")
    ),
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
}
