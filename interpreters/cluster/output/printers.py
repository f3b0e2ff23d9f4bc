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
Cell = Callable[[Object, float], Any]
Cells = Callable[[Object, float], list[Any]]

# ----------------------------------------------------------------------- parts


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
    """The cells with names and images of a pod template's containers."""
    containers = _list(template, "spec", "containers")
    return [
        ",".join(_text(each, "name") for each in containers),
        ",".join(_text(each, "image") for each in containers),
    ]


CELL_FUNCTIONS: dict[str, Cell] = {}


def _named(cell: Cell) -> Cell:
    """Give a cell, or a list of adjacent ones, a name for the tables."""
    CELL_FUNCTIONS[cell.__name__.strip("_")] = cell
    return cell


# ------------------------------------------------------------------------ pods


@_named
def _pod(obj: Object, now: float) -> list[Any]:
    ready, total, reason, restarts, last = _pod_state(obj)
    since = f" ({age(last, now)} ago)" if restarts and last else ""
    return [f"{ready}/{total}", reason, f"{restarts}{since}"]


@_named
def _pod_address(obj: Object, now: float) -> str:
    addresses = _list(obj, "status", "podIPs")
    address = _text(addresses[0] if addresses else None, "ip")
    return address or _text(obj, "status", "podIP", default=NONE)


@_named
def _readiness_gates(obj: Object, now: float) -> str:
    status, gates = obj.get("status"), _list(obj, "spec", "readinessGates")
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


# ------------------------------------------------------------------- workloads


@_named
def _ready(obj: Object, now: float) -> str:
    ready = _number(obj, "status", "readyReplicas")
    return f"{ready}/{_number(obj, 'spec', 'replicas')}"


@_named
def _completions(obj: Object, now: float) -> str:
    wanted, parallel = (
        _value_at(obj, "spec", name) for name in ("completions", "parallelism")
    )
    if wanted is None:
        wanted = f"1 of {parallel}" if (parallel or 0) > 1 else "1"
    return f"{_number(obj, 'status', 'succeeded')}/{wanted}"


@_named
def _job_duration(obj: Object, now: float) -> str:
    start, end = (
        seconds_of(text) if (text := _text(obj, "status", name)) else None
        for name in ("startTime", "completionTime")
    )
    return "" if start is None else human_duration((end or now) - start)


@_named
def _job_status(obj: Object, now: float) -> str:
    status = obj.get("status")
    for name in ("Complete", "Failed"):
        if _is_condition(status, name):
            return name
    if _value_at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _is_condition(status, name):
            return name
    return "Running"


@_named
def _last_schedule(obj: Object, now: float) -> str:
    last = _text(obj, "status", "lastScheduleTime")
    return age(last, now) if last else NONE


@_named
def _targets(obj: Object, now: float) -> str:
    """The metrics of an autoscaler: current values and targets."""
    wanted = _list(obj, "spec", "metrics")
    found = _list(obj, "status", "currentMetrics")
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


@_named
def _cluster_address(obj: Object, now: float) -> str:
    addresses = _list(obj, "spec", "clusterIPs")
    return (addresses[0] if addresses else _text(obj, "spec", "clusterIP")) or NONE


@_named
def _ports(obj: Object, now: float) -> str:
    return ",".join(map(_port, _list(obj, "spec", "ports"))) or NONE


def _port(port: Any) -> str:
    text, node = str(_number(port, "port")), _number(port, "nodePort")
    protocol = _text(port, "protocol")
    return f"{text}:{node}/{protocol}" if node else f"{text}/{protocol}"


@_named
def _external(obj: Object, now: float) -> str:
    spec = obj.get("spec")
    own = list(map(str, _list(spec, "externalIPs")))
    match _text(spec, "type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            return ",".join(filter(None, [_balancer(obj, now), *own])) or "<pending>"
        case "ExternalName":
            return _text(spec, "externalName")
        case _:
            return UNKNOWN


@_named
def _balancer(obj: Object, now: float) -> str:
    points = _list(obj, "status", "loadBalancer", "ingress")
    found = {_text(each, "ip") or _text(each, "hostname") for each in points}
    return ",".join(sorted(found - {""}))


@_named
def _hosts(obj: Object, now: float) -> str:
    rules = _list(obj, "spec", "rules")
    hosts = [host for each in rules[:3] if (host := _text(each, "host"))]
    more = f" + {len(rules) - 3} more..." if len(rules) > 3 and hosts else ""
    return ",".join(hosts) + more if hosts else "*"


@_named
def _ingress_ports(obj: Object, now: float) -> str:
    return "80, 443" if _list(obj, "spec", "tls") else "80"


@_named
def _parameters(obj: Object, now: float) -> str:
    target = _value_at(obj, "spec", "parameters")
    if target is None:
        return NONE
    group, kind = _text(target, "apiGroup"), _text(target, "kind")
    return f"{kind}.{group}/{_text(target, 'name')}" if group else _reference(target)


@_named
def _endpoints(obj: Object, now: float) -> str:
    found = [
        f"{_in_brackets(_text(address, 'ip'))}:{_number(port, 'port')}"
        for subset in _list(obj, "subsets")
        for port in _list(subset, "ports") or [None]
        for address in _list(subset, "addresses")
    ]
    return _first_three(found)


def _in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _first_three(texts: list[str]) -> str:
    """Three items, and the number of the others."""
    if not texts:
        return NONE
    more = f" + {len(texts) - 3} more..." if len(texts) > 3 else ""
    return ",".join(texts[:3]) + more


@_named
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
    return [_first_three(found) if found else missing for found in (ports, addresses)]


# --------------------------------------------------------------------- storage

MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: list[Any]) -> str:
    return ",".join(text for mode, text in MODES.items() if mode in modes)


@_named
def _phase(obj: Object, now: float) -> str:
    if _value_at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return _text(obj, "status", "phase")


CLASS = "volume.beta.kubernetes.io/storage-class"


@_named
def _class(obj: Object, now: float) -> str:
    old = _text(obj, "metadata", "annotations", CLASS)
    return old or _text(obj, "spec", "storageClassName")


@_named
def _bound(obj: Object, now: float) -> list[Any]:
    """Capacity and access modes of the volume of a claim."""
    if not _text(obj, "spec", "volumeName"):
        return ["", ""]
    capacity = _text(obj, "status", "capacity", "storage", default="0")
    return [capacity, _modes(_list(obj, "status", "accessModes"))]


@_named
def _owner(obj: Object, now: float) -> str:
    claim = _value_at(obj, "spec", "claimRef")
    return f"{_text(claim, 'namespace')}/{_text(claim, 'name')}" if claim else ""


@_named
def _class_name(obj: Object, now: float) -> str:
    annotations = _value_at(obj, "metadata", "annotations")
    is_default = any(
        _text(annotations, f"storageclass{beta}.kubernetes.io/is-default-class")
        == "true"
        for beta in ("", ".beta")
    )
    return f"{_name(obj)} (default)" if is_default else _name(obj)


@_named
def _attach_required(obj: Object, now: float) -> bool:
    return _value_at(obj, "spec", "attachRequired") is not False


@_named
def _audiences(obj: Object, now: float) -> str:
    tokens = _list(obj, "spec", "tokenRequests")
    return ",".join(_text(each, "audience") for each in tokens) or UNSET


# ---------------------------------------------------------------------- others


@_named
def _node_state(obj: Object, now: float) -> str:
    ready = [
        "Ready" if _text(each, "status") == "True" else "NotReady"
        for each in _list(obj, "status", "conditions")
        if _text(each, "type") == "Ready"
    ]
    states = ready[-1:] or ["Unknown"]
    if _value_at(obj, "spec", "unschedulable") is True:
        states = [*states, "SchedulingDisabled"]
    return ",".join(states)


ROLE = "node-role.kubernetes.io/"


@_named
def _roles(obj: Object, now: float) -> str:
    labels = _value_at(obj, "metadata", "labels") or {}
    found = {key.removeprefix(ROLE) for key in labels if key.startswith(ROLE)}
    found.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(found - {""})) or NONE


@_named
def _addresses(obj: Object, now: float) -> list[Any]:
    """The internal and the external address of a node."""
    found: dict[str, str] = {}
    for each in _list(obj, "status", "addresses"):
        found.setdefault(_text(each, "type"), _text(each, "address"))
    return [found.get(kind, NONE) for kind in ("InternalIP", "ExternalIP")]


@_named
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
    ]


def _source(obj: Object, source: Any) -> str:
    component = _text(source, "component")
    host = _text(source, "host")
    if not component:
        component = _text(obj, "reportingComponent")
        component = component or _text(obj, "reportingController")
        host = _text(obj, "reportingInstance")
    return ", ".join(filter(None, (component, host)))


@_named
def _quota(obj: Object, now: float) -> list[Any]:
    hard = _value_at(obj, "status", "hard") or {}
    used = _value_at(obj, "status", "used") or {}
    groups: tuple[list[str], list[str]] = ([], [])
    for name in sorted(hard):
        text = f"{name}: {used.get(name, '0')}/{hard[name]}"
        groups[name.startswith("limits")].append(text)
    return [*map(", ".join, groups)]


@_named
def _controller(obj: Object, now: float) -> str:
    controller = NONE
    for each in _list(obj, "metadata", "ownerReferences"):
        if _value_at(each, "controller") is True:
            group = _text(each, "apiVersion").rpartition("/")[0]
            kind = _text(each, "kind").lower()
            controller = f"{kind}.{group}" if group else kind
            controller = f"{controller}/{_text(each, 'name')}"
    return controller


@_named
def _subjects(obj: Object, now: float) -> list[Any]:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for each in _list(obj, "subjects"):
        kind, name = _text(each, "kind"), _text(each, "name")
        if kind == "ServiceAccount":
            name = f"{_text(each, 'namespace')}/{name}"
        subjects.setdefault(kind, []).append(name)
    return [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]


@_named
def _requested(obj: Object, now: float) -> str:
    seconds = _value_at(obj, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


@_named
def _signing_state(obj: Object, now: float) -> str:
    names = {_text(each, "type") for each in _list(obj, "status", "conditions")}
    state = "Denied" if "Denied" in names else "Pending"
    if state != "Denied" and "Approved" in names:
        state = "Approved"
    if "Failed" in names:
        state += ",Failed"
    if _text(obj, "status", "certificate"):
        state += ",Issued"
    return state


@_named
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
    return [where, state]


# --------------------------------------------------------------------- tables

# One row per resource. A column is "title:type = source"; types other than string are
# written out. A star marks columns that only `kubectl get -o wide` shows. A source is
#
# - a path, for a text there; "path or x" is x if there is none;
# - a word of `FORMS` and a path;
# - a cell's function, after @. It may return the cells of the next columns as well,
#   which have no source then.
CONTAINERS = "*Containers = containers spec.template|*Images"
WORKLOAD = f"{CONTAINERS}|*Selector = selector spec.selector"
REPLICAS = (
    "Name|Desired:integer = number spec.replicas|"
    "Current:integer = number status.replicas|"
    "Ready:integer = number status.readyReplicas|Age"
)
VOLUME_CLASS = (
    "StorageClass = @class|"
    f"VolumeAttributesClass = spec.volumeAttributesClassName or {UNSET}"
)
VOLUME_MODE = f"*VolumeMode = spec.volumeMode or {UNSET}"
EVENT = (
    "Last Seen = @event|Type|Reason|Object|*Subobject|*Source|Message|*First Seen|"
    "*Count|*Name"
)
BINDING = (
    "Name|Role = reference roleRef|Age|*Users = @subjects|*Groups|*ServiceAccounts"
)
CREATED = "Name|Created At:date"
HOOKS = "Name|Webhooks:integer = count webhooks|Age"
RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
TABLES: dict[tuple[str, str], str] = {
    ("", "configmaps"): "Name|Data = count data binaryData|Age",
    ("", "endpoints"): "Name|Endpoints = @endpoints|Age",
    ("", "events"): EVENT,
    ("events.k8s.io", "events"): EVENT,
    ("", "limitranges"): CREATED,
    ("", "namespaces"): "Name|Status = status.phase|Age",
    ("", "nodes"): "Name|Status = @node_state|Roles = @roles|Age|"
    "Version = status.nodeInfo.kubeletVersion|*Internal-IP = @addresses|*External-IP|"
    f"*OS-Image = status.nodeInfo.osImage or {UNKNOWN}|"
    f"*Kernel-Version = status.nodeInfo.kernelVersion or {UNKNOWN}|"
    f"*Container-Runtime = status.nodeInfo.containerRuntimeVersion or {UNKNOWN}",
    ("", "persistentvolumeclaims"): "Name|Status = @phase|Volume = spec.volumeName|"
    f"Capacity = @bound|Access Modes|{VOLUME_CLASS}|Age|{VOLUME_MODE}",
    ("", "persistentvolumes"): "Name|Capacity = spec.capacity.storage or 0|"
    "Access Modes = modes spec.accessModes|"
    "Reclaim Policy = spec.persistentVolumeReclaimPolicy|Status = @phase|"
    f"Claim = @owner|{VOLUME_CLASS}|Reason = status.reason|Age|{VOLUME_MODE}",
    ("", "pods"): "Name|Ready = @pod|Status|Restarts|Age|*IP = @pod_address|"
    f"*Node = spec.nodeName or {NONE}|"
    f"*Nominated Node = status.nominatedNodeName or {NONE}|"
    "*Readiness Gates = @readiness_gates",
    ("", "podtemplates"): "Name|Containers = containers template|Images|"
    "Pod Labels = labels template.metadata.labels",
    ("", "replicationcontrollers"): f"{REPLICAS}|{CONTAINERS}|"
    "*Selector = labels spec.selector",
    ("", "resourcequotas"): "Name|Request = @quota|Limit|Age",
    ("", "secrets"): "Name|Type = type|Data = count data|Age",
    ("", "serviceaccounts"): "Name|Secrets = count secrets|Age",
    ("", "services"): "Name|Type = spec.type|Cluster-IP = @cluster_address|"
    "External-IP = @external|Port(s) = @ports|Age|*Selector = labels spec.selector",
    ("apps", "controllerrevisions"): "Name|Controller = @controller|"
    "Revision = number revision|Age",
    ("apps", "daemonsets"): "Name|"
    "Desired:integer = number status.desiredNumberScheduled|"
    "Current:integer = number status.currentNumberScheduled|"
    "Ready:integer = number status.numberReady|"
    "Up-to-date:integer = number status.updatedNumberScheduled|"
    "Available:integer = number status.numberAvailable|"
    f"Node Selector = labels spec.template.spec.nodeSelector|Age|{WORKLOAD}",
    ("apps", "deployments"): "Name|Ready = @ready|"
    "Up-to-date = number status.updatedReplicas|"
    f"Available = number status.availableReplicas|Age|{WORKLOAD}",
    ("apps", "replicasets"): f"{REPLICAS}|{WORKLOAD}",
    ("apps", "statefulsets"): f"Name|Ready = @ready|Age|{CONTAINERS}",
    ("autoscaling", "horizontalpodautoscalers"): "Name|"
    "Reference = reference spec.scaleTargetRef|Targets = @targets|"
    f"MinPods = shown spec.minReplicas or {UNSET}|MaxPods = number spec.maxReplicas|"
    "Replicas = number status.currentReplicas|Age",
    ("batch", "cronjobs"): "Name|Schedule = spec.schedule|"
    f"Timezone = spec.timeZone or {NONE}|Suspend:boolean = flag spec.suspend|"
    "Active:integer = count status.active|Last Schedule = @last_schedule|Age|"
    "*Containers = containers spec.jobTemplate.spec.template|*Images|"
    "*Selector = selector spec.jobTemplate.spec.selector",
    ("batch", "jobs"): "Name|Status = @job_status|Completions = @completions|"
    f"Duration = @job_duration|Age|{WORKLOAD}",
    ("certificates.k8s.io", "certificatesigningrequests"): "Name|Age|"
    f"SignerName = spec.signerName or {NONE}|Requestor = spec.username|"
    "RequestedDuration = @requested|Condition = @signing_state",
    ("apiregistration.k8s.io", "apiservices"): "Name|Service = @api_service|"
    "Available|Age",
    ("node.k8s.io", "runtimeclasses"): "Name|Handler = handler|Age",
    ("storage.k8s.io", "csidrivers"): "Name|AttachRequired:boolean = @attach_required|"
    "PodInfoOnMount:boolean = true spec.podInfoOnMount|"
    "StorageCapacity:boolean = true spec.storageCapacity|TokenRequests = @audiences|"
    "RequiresRepublish:boolean = true spec.requiresRepublish|"
    f"Modes = listed spec.volumeLifecycleModes or {NONE}|Age",
    ("storage.k8s.io", "csinodes"): "Name|Drivers:integer = count spec.drivers|Age",
    ("storage.k8s.io", "csistoragecapacities"): "Name|"
    f"StorageClassName = storageClassName|Capacity = capacity or {UNSET}",
    ("storage.k8s.io", "volumeattachments"): "Name|Attacher = spec.attacher|"
    "PV = spec.source.persistentVolumeName|Node = spec.nodeName|"
    "Attached:boolean = true status.attached|Age",
    ("networking.k8s.io", "ingressclasses"): "Name|Controller = spec.controller|"
    "Parameters = @parameters|Age",
    ("networking.k8s.io", "ingresses"): "Name|"
    f"Class = spec.ingressClassName or {NONE}|Hosts = @hosts|Address = @balancer|"
    "Ports = @ingress_ports|Age",
    ("networking.k8s.io", "networkpolicies"): "Name|"
    "Pod-Selector = selector spec.podSelector|Age",
    ("policy", "poddisruptionbudgets"): "Name|"
    "Min Available = shown spec.minAvailable or N/A|"
    "Max Unavailable = shown spec.maxUnavailable or N/A|"
    "Allowed Disruptions:integer = number status.disruptionsAllowed|Age",
    (RBAC, "clusterrolebindings"): BINDING,
    (RBAC, "clusterroles"): CREATED,
    (RBAC, "rolebindings"): BINDING,
    (RBAC, "roles"): CREATED,
    ("storage.k8s.io", "storageclasses"): "Name = @class_name|"
    "Provisioner = provisioner|ReclaimPolicy = reclaimPolicy or Delete|"
    f"VolumeBindingMode = volumeBindingMode or {UNSET}|"
    "AllowVolumeExpansion = true allowVolumeExpansion|Age",
    (ADMISSION, "mutatingwebhookconfigurations"): HOOKS,
    (ADMISSION, "validatingwebhookconfigurations"): HOOKS,
    ("apiextensions.k8s.io", "customresourcedefinitions"): CREATED,
    ("scheduling.k8s.io", "priorityclasses"): "Name|Value:integer = number value|"
    "Global-Default:boolean = true globalDefault|Age|"
    "*PreemptionPolicy = preemptionPolicy",
    ("coordination.k8s.io", "leases"): "Name|Holder = spec.holderIdentity|Age",
    ("discovery.k8s.io", "endpointslices"): "Name|AddressType = addressType|"
    "Ports = @endpoint_slice|Endpoints|Age",
}


def _reference(target: Any) -> str:
    return f"{_text(target, 'kind')}/{_text(target, 'name')}"


def _utc(moment: str) -> str:
    seconds = seconds_of(moment) if moment else None
    if seconds is None:
        return moment
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# Cells of the values at a path, None if there is none.
FORMS: dict[str, Callable[[Any], Any]] = {
    "containers": _containers,
    "flag": lambda value: UNSET if value is None else "True" if value else "False",
    "labels": _labels,
    "listed": lambda values: ",".join(map(str, values or ())),
    "modes": lambda values: _modes(values or []),
    "number": lambda value: value if isinstance(value, int) else 0,
    "reference": _reference,
    "selector": _selector,
    "shown": lambda value: "" if value is None else str(value),
    "text": lambda value: value if isinstance(value, str) else "",
    "true": lambda value: value is True,
}
# The sources of columns that most tables have.
USUAL: dict[str, Cell] = {
    "Name": lambda obj, now: _name(obj),
    "Age": created,
    "Created At": lambda obj, now: _utc(_text(obj, "metadata", "creationTimestamp")),
}


def _cell_of(source: str) -> Cell:
    if source.startswith("@"):
        return CELL_FUNCTIONS[source[1:]]
    text, _, default = source.partition(" or ")
    *words, last = text.split(" ")
    if words[:1] == ["count"]:
        paths = [path.split(".") for path in (*words[1:], last)]
        return lambda obj, now: sum(len(_value_at(obj, *path) or ()) for path in paths)
    form, path = FORMS[words[0] if words else "text"], last.split(".")
    if not default:
        return lambda obj, now: form(_value_at(obj, *path))
    return lambda obj, now: form(_value_at(obj, *path)) or default


def _cells_of(table: str) -> Cells:
    """The function that makes the cells of an object."""
    cells = []
    for column in table.split("|"):
        title, _, source = column.partition(" = ")
        name = title.removeprefix("*").partition(":")[0]
        if source:
            cells.append(_cell_of(source))
        elif name in USUAL:
            cells.append(USUAL[name])

    def row(obj: Object, now: float) -> list[Any]:
        found: list[Any] = []
        for cell in cells:
            value = cell(obj, now)
            found += value if isinstance(value, list) else (value,)
        return found

    return row


COLUMNS = {
    resource: "|".join(column.partition(" = ")[0] for column in table.split("|"))
    for resource, table in TABLES.items()
}
CELLS = {resource: _cells_of(table) for resource, table in TABLES.items()}
