"""What may stand in objects of built-in kinds, and what of them may change.

The rules are those of `pkg/apis/*/validation`, as far as operators meet them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from fnop.interpreters.cluster.config_maps import config_faults
from fnop.interpreters.cluster.faults import (
    at_least,
    bad,
    duplicate,
    forbidden,
    immutable,
    one_of,
    required,
)
from fnop.interpreters.cluster.metadata import (
    NOT_SUBDOMAIN,
    SUBDOMAIN,
    key_faults,
    value_faults,
)
from fnop.interpreters.cluster.pod_rules import (
    PROTOCOLS,
    label_name,
    pod_faults,
    pod_update_faults,
    port_name,
    port_number,
)
from fnop.interpreters.cluster.quantities import amount
from fnop.interpreters.cluster.status import Fault
from fnop.interpreters.cluster.store import Object, Resource

__all__ = ["builtin_faults"]

Spec = dict[str, Any]
Check = Callable[[Object], Iterator[Fault]]
Change = Callable[[Object, Object], Iterator[Fault]]


def _spec(obj: Object) -> Spec:
    return obj.get("spec") or {}


# -------------------------------------------------------------- label selectors


def selector_faults(selector: Spec, path: str) -> Iterator[Fault]:
    """What is wrong with a LabelSelector (`metav1/validation`)."""
    for key, value in (selector.get("matchLabels") or {}).items():
        for why in key_faults(key):
            yield bad(f"{path}.matchLabels", key, why)
        for why in value_faults(value):
            yield bad(f"{path}.matchLabels", value, why)
    for index, one in enumerate(selector.get("matchExpressions") or ()):
        yield from _expression_faults(one, f"{path}.matchExpressions[{index}]")


def _expression_faults(one: Spec, path: str) -> Iterator[Fault]:
    values = one.get("values")
    match one.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.values", why)
        case "Exists" | "DoesNotExist":
            if values:
                why = "may not be specified when `operator` is 'Exists' or "
                yield forbidden(f"{path}.values", f"{why}'DoesNotExist'")
        case operator:
            yield bad(f"{path}.operator", operator, "not a valid selector operator")
    for why in key_faults(one.get("key", "")):
        yield bad(f"{path}.key", one.get("key", ""), why)


def _matches(selector: Spec, labels: dict[str, str]) -> bool:
    return all(
        labels.get(key) == value
        for key, value in (selector.get("matchLabels") or {}).items()
    ) and all(
        _fits(one, labels.get(one.get("key", "")))
        for one in selector.get("matchExpressions") or ()
    )


def _fits(one: Spec, value: str | None) -> bool:
    values = one.get("values") or ()
    match one.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


# -------------------------------------------------------------------- workloads

OTHER_LABELS = "`selector` does not match template `labels`"


def _selecting(
    spec: Spec, empty: str, invalid: str | None, *, needed: bool = True
) -> Iterator[Fault]:
    """A workload must select the pods of its own template."""
    selector = spec.get("selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is None:
        if needed:
            yield required("spec.selector")
        yield bad("spec.template.metadata.labels", labels, OTHER_LABELS)
        return
    wrong = [*selector_faults(selector, "spec.selector")]
    yield from wrong
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield bad("spec.selector", selector, f"empty selector is invalid for {empty}")
    if wrong:
        if invalid is not None:
            yield bad("spec.selector", selector, invalid)
    elif not _matches(selector, labels):
        yield bad("spec.template.metadata.labels", labels, OTHER_LABELS)


def _templated(spec: Spec, *, checked: bool = True) -> Iterator[Fault]:
    """The pods of a workload's template are always started again."""
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    path = "spec.template.spec"
    policy = pod.get("restartPolicy", "Always")
    for key, value in ((template.get("metadata") or {}).get("labels") or {}).items():
        where = "spec.template.labels"
        yield from (bad(where, key, why) for why in key_faults(key))
        yield from (bad(where, value, why) for why in value_faults(value))
    if checked:
        # An unknown policy is told once, as not supported.
        yield from (
            fault
            for fault in pod_faults(pod, path)
            if fault.field != f"{path}.restartPolicy"
        )
    yield from one_of(f"{path}.restartPolicy", policy, ("Always",))


def _deployment(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    numbers = ("replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from at_least(spec, "spec", *numbers, "progressDeadlineSeconds")
    yield from _selecting(spec, "deployment", "invalid label selector")
    yield from _templated(spec)
    yield from _strategy(spec.get("strategy") or {})
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        yield bad("spec.progressDeadlineSeconds", deadline, why)


def _strategy(strategy: Spec) -> Iterator[Fault]:
    path = "spec.strategy.rollingUpdate"
    match strategy.get("type"):
        case "Recreate":
            if "rollingUpdate" in strategy:
                why = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden(path, why)
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                why = "this should be defaulted and never be nil"
                yield required(path, why)
            else:
                yield from _rolling(rolling, path)
        case kind:
            shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
            known = ("Recreate", "RollingUpdate")
            yield from (_unsupported_struct("spec.strategy", shown, known),)


def _unsupported_struct(field: str, shown: Spec, known: tuple[str, ...]) -> Fault:
    text = bad(field, shown, "").message.removeprefix("Invalid value: ")
    values = ", ".join(f'"{each}"' for each in known)
    message = f"Unsupported value: {text}supported values: {values}"
    return Fault(field, "FieldValueNotSupported", message)


PERCENT = re.compile(r"[0-9]+%")
NOT_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
    "'1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def _share(field: str, value: Any) -> Iterator[Fault]:
    """A number that is not negative, or a percentage."""
    if isinstance(value, int):
        if value < 0:
            yield bad(field, value, "must be greater than or equal to 0")
    elif not PERCENT.fullmatch(value):
        yield bad(field, value, NOT_PERCENT)


def _rolling(rolling: Spec, path: str) -> Iterator[Fault]:
    most, more = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from _share(f"{path}.maxUnavailable", most)
    yield from _share(f"{path}.maxSurge", more)
    if most in (0, "0%") and more in (0, "0%"):
        why = "may not be 0 when `maxSurge` is 0"
        yield bad(f"{path}.maxUnavailable", most, why)
    yield from _at_most_all(f"{path}.maxUnavailable", most)


def _at_most_all(field: str, value: Any) -> Iterator[Fault]:
    if isinstance(value, str) and PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield bad(field, value, "must not be greater than 100%")


def _replica_set(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from at_least(spec, "spec", "replicas", "minReadySeconds")
    # The words are the real server's, who has taken them from deployments.
    yield from _selecting(spec, "deployment", "invalid label selector")
    yield from _templated(spec)


def _stateful_set(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        yield bad("spec.podManagementPolicy", policy, why)
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": strategy["type"], "RollingUpdate": None}
        why = "must be 'RollingUpdate' or 'OnDelete'"
        yield bad("spec.updateStrategy", shown, why)
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" and rolling is not None:
        shown = {
            "Partition": rolling.get("partition", 0),
            "MaxUnavailable": rolling.get("maxUnavailable"),
        }
        why = "only allowed for updateStrategy 'RollingUpdate'"
        yield bad("spec.updateStrategy.rollingUpdate", shown, why)
    yield from at_least(spec, "spec", "replicas", "minReadySeconds")
    yield from _selecting(spec, "statefulset", "")
    yield from _templated(spec, checked=False)


def _daemon_set(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from _selecting(spec, "daemonset", None, needed=False)
    yield from _templated(spec)
    numbers = ("minReadySeconds", "revisionHistoryLimit")
    yield from at_least(spec, "spec", *numbers)
    strategy = spec.get("updateStrategy") or {}
    match strategy.get("type", "RollingUpdate"):
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate") or {}
            path = "spec.updateStrategy.rollingUpdate"
            most = rolling.get("maxUnavailable", 1)
            yield from _share(f"{path}.maxUnavailable", most)
            if most in (0, "0%") and rolling.get("maxSurge", 0) in (0, "0%"):
                why = "cannot be 0 when maxSurge is 0"
                yield bad(f"{path}.maxUnavailable", most, why)
        case "OnDelete":
            pass
        case kind:
            shown = {"Type": kind, "RollingUpdate": None}
            known = ("RollingUpdate", "OnDelete")
            yield _unsupported_struct("spec.updateStrategy", shown, known)


JOB_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)


def _job(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from _job_spec(spec, "spec")
    selector = spec.get("selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if selector is None:
        yield required("spec.selector")
    elif not spec.get("manualSelector"):
        uid = {"batch.kubernetes.io/controller-uid": obj["metadata"].get("uid")}
        old = {"controller-uid": obj["metadata"].get("uid")}
        if selector not in ({"matchLabels": uid}, {"matchLabels": old}):
            yield bad("spec.selector", selector, "`selector` not auto-generated")
    if selector is None or not _matches(selector, labels or {}):
        yield bad("spec.template.metadata.labels", labels, OTHER_LABELS)


def _job_spec(spec: Spec, path: str) -> Iterator[Fault]:
    yield from at_least(spec, path, *JOB_NUMBERS)
    pod = (spec.get("template") or {}).get("spec") or {}
    where = f"{path}.template.spec"
    policy = pod.get("restartPolicy")
    yield from (
        fault
        for fault in pod_faults(pod, where)
        if fault.field != f"{where}.restartPolicy"
    )
    if policy in (None, "", "Always"):
        yield required(f"{where}.restartPolicy", 'valid values: "OnFailure", "Never"')
    else:
        known = ("OnFailure", "Never")
        yield from one_of(f"{where}.restartPolicy", policy, known)


CRON = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every .+)")
PART = re.compile(r"(\*|\?|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?")


def _cron_job(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    if len(obj["metadata"].get("name", "")) > 52:
        name = obj["metadata"]["name"]
        yield bad("metadata.name", name, "must be no more than 52 characters")
    schedule = spec.get("schedule", "")
    if not schedule:
        yield required("spec.schedule")
    elif why := _cron_fault(schedule):
        yield bad("spec.schedule", schedule, why)
    known = ("Allow", "Forbid", "Replace")
    policy = spec.get("concurrencyPolicy", "Allow")
    yield from one_of("spec.concurrencyPolicy", policy, known)
    numbers = ("startingDeadlineSeconds", "successfulJobsHistoryLimit")
    yield from at_least(spec, "spec", *numbers, "failedJobsHistoryLimit")
    inner = (spec.get("jobTemplate") or {}).get("spec") or {}
    yield from _job_spec(inner, "spec.jobTemplate.spec")


def _cron_fault(schedule: str) -> str:
    if CRON.fullmatch(schedule):
        return ""
    if schedule.startswith("@"):
        return f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != 5:
        shown = " ".join(fields)
        return f"expected exactly 5 fields, found {len(fields)}: [{shown}]"
    limits = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    for field, (least, most) in zip(fields, limits, strict=True):
        for part in field.split(","):
            if not PART.fullmatch(part):
                return f"failed to parse int from {part}: invalid syntax"
            for number in re.findall(r"[0-9]+", part.partition("/")[0]):
                if int(number) > most:
                    return f"end of range ({number}) above maximum ({most}): {part}"
                if int(number) < least:
                    return (
                        f"beginning of range ({number}) below minimum ({least}): {part}"
                    )
    return ""


# --------------------------------------------------------------------- services


def _service(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    kind, address = spec.get("type", ""), spec.get("clusterIP", "")
    ports = spec.get("ports") or ()
    if not ports and kind != "ExternalName" and address != "None":
        yield required("spec.ports")
    if kind == "ExternalName":
        yield from _external(spec)
    elif address == "None" and kind in ("NodePort", "LoadBalancer"):
        why = f"may not be set to 'None' for {kind} services"
        yield bad("spec.clusterIPs[0]", address, why)
    elif address and address != "None" and not _is_address(address):
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield bad("spec.clusterIPs[0]", address, why)
    names: set[str] = set()
    for index, port in enumerate(ports):
        field = f"spec.ports[{index}]"
        yield from _service_port(port, field, names, alone=len(ports) == 1)
        if kind == "ClusterIP" and port.get("nodePort"):
            why = "may not be used when `type` is 'ClusterIP'"
            yield forbidden(f"{field}.nodePort", why)
    yield from _doubled(ports)
    yield from _node_ports(ports)
    for key, value in (spec.get("selector") or {}).items():
        yield from (bad("spec.selector", key, why) for why in key_faults(key))
        yield from (bad("spec.selector", value, why) for why in value_faults(value))
    affinity = spec.get("sessionAffinity", "None")
    yield from one_of("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    known = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    yield from one_of("spec.type", kind, known)


def _external(spec: Spec) -> Iterator[Fault]:
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    elif not SUBDOMAIN.fullmatch(name):
        yield bad("spec.externalName", name, NOT_SUBDOMAIN)


def _is_address(text: str) -> bool:
    parts = text.split(".")
    if ":" in text:
        return re.fullmatch(r"[0-9a-fA-F:.]+", text) is not None
    return len(parts) == 4 and all(p.isdecimal() and int(p) < 256 for p in parts)


def _service_port(
    port: Spec, path: str, names: set[str], *, alone: bool
) -> Iterator[Fault]:
    name = port.get("name", "")
    if not name and not alone:
        yield required(f"{path}.name")
    elif name:
        yield from label_name(f"{path}.name", name)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    yield from port_number(f"{path}.port", port.get("port", 0))
    yield from one_of(f"{path}.protocol", port.get("protocol"), PROTOCOLS)
    target = port.get("targetPort", 0)
    check = port_number if isinstance(target, int) else port_name
    yield from check(f"{path}.targetPort", target)


def _doubled(ports: Any) -> Iterator[Fault]:
    seen: set[Any] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _node_ports(ports: Any) -> Iterator[Fault]:
    for index, port in enumerate(ports):
        number = port.get("nodePort", 0)
        if number and not 30000 <= number <= 32767:
            why = (
                "provided port is not in the valid range. The range of valid ports is "
                "30000-32767"
            )
            yield bad(f"spec.ports[{index}].nodePort", number, why)


# ----------------------------------------------------------------------- claims

MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _claim(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    modes = spec.get("accessModes") or ()
    if not modes:
        why = "at least 1 access mode is required"
        yield required("spec.accessModes", why)
    for mode in modes:
        yield from one_of("spec.accessModes", mode, MODES)
    asked = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in asked:
        yield required("spec.resources[storage]")
    elif (amount(asked["storage"]) or 0) <= 0:
        why = "must be greater than zero"
        yield bad("spec.resources[storage]", asked["storage"], why)
    name = spec.get("storageClassName")
    if name and not SUBDOMAIN.fullmatch(name):
        yield bad("spec.storageClassName", name, NOT_SUBDOMAIN)
    mode = spec.get("volumeMode", "Filesystem")
    yield from one_of("spec.volumeMode", mode, ("Block", "Filesystem"))


CLAIM_LOCKED = (
    "spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)


def _claim_changes(new: Object, old: Object) -> Iterator[Fault]:
    after, before = _spec(new), _spec(old)
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    # A volume may be found for a claim; afterwards it may grow.
    free = {"volumeName"} if not before.get("volumeName") else set()
    if is_bound:
        free.add("resources")
    names = (after.keys() | before.keys()) - free
    if any(after.get(name) != before.get(name) for name in names):
        yield forbidden("spec", CLAIM_LOCKED)


# ------------------------------------------------------------------- permissions

GROUP = "rbac.authorization.k8s.io"


def _role(obj: Object, *, namespaced: bool = True) -> Iterator[Fault]:
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                yield bad(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)
            if any(rule.get(name) for name in ("apiGroups", "resources")):
                why = (
                    "rules cannot apply to both regular resources and non-resource URLs"
                )
                yield bad(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)
            continue
        for name, why in (
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ):
            if not rule.get(name):
                yield required(f"{path}.{name}", why)


def _cluster_role(obj: Object) -> Iterator[Fault]:
    yield from _role(obj, namespaced=False)


def _binding(obj: Object, *, namespaced: bool = True) -> Iterator[Fault]:
    target = obj.get("roleRef") or {}
    yield from one_of("roleRef.apiGroup", target.get("apiGroup"), (GROUP,))
    known = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    yield from one_of("roleRef.kind", target.get("kind", ""), known)
    if not target.get("name"):
        yield required("roleRef.name")
    for index, one in enumerate(obj.get("subjects") or ()):
        yield from _subject(one, f"subjects[{index}]", namespaced=namespaced)


def _cluster_binding(obj: Object) -> Iterator[Fault]:
    yield from _binding(obj, namespaced=False)


def _subject(one: Spec, path: str, *, namespaced: bool) -> Iterator[Fault]:
    if not one.get("name"):
        yield required(f"{path}.name")
    match one.get("kind", ""):
        case "ServiceAccount":
            yield from one_of(f"{path}.apiGroup", one.get("apiGroup", ""), ("",))
            if not namespaced and not one.get("namespace"):
                yield required(f"{path}.namespace")
        case "User" | "Group":
            yield from one_of(f"{path}.apiGroup", one.get("apiGroup"), (GROUP,))
        case kind:
            known = ("ServiceAccount", "User", "Group")
            yield from one_of(f"{path}.kind", kind, known)


def _binding_changes(new: Object, old: Object) -> Iterator[Fault]:
    if new.get("roleRef") != old.get("roleRef"):
        yield bad("roleRef", _go_fields(new["roleRef"]), "cannot change roleRef")


def _go_fields(target: Spec) -> Spec:
    names = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    return {go: target.get(name, "") for go, name in names}


# ------------------------------------------------------------------------ others


def _lease(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    if spec.get("leaseDurationSeconds", 1) <= 0:
        value = spec["leaseDurationSeconds"]
        yield bad("spec.leaseDurationSeconds", value, "must be greater than 0")
    if spec.get("leaseTransitions", 0) < 0:
        value = spec["leaseTransitions"]
        yield bad("spec.leaseTransitions", value, "must be greater than or equal to 0")


def _network_policy(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from selector_faults(spec.get("podSelector") or {}, "spec.podSelector")
    for part, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(part) or ()):
            path = f"spec.{part}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                field = f"{path}.ports[{place}]"
                yield from one_of(f"{field}.protocol", port.get("protocol"), PROTOCOLS)
                if "port" in port:
                    number = port["port"]
                    check = port_number if isinstance(number, int) else port_name
                    yield from check(f"{field}.port", number)
            for place, peer in enumerate(rule.get(peers) or ()):
                yield from _peer(peer, f"{path}.{peers}[{place}]")
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        yield from one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


def _peer(peer: Spec, path: str) -> Iterator[Fault]:
    if not peer:
        yield required(path, "must specify a peer")
    for name in ("podSelector", "namespaceSelector"):
        yield from selector_faults(peer.get(name) or {}, f"{path}.{name}")
    if "ipBlock" in peer and not peer["ipBlock"].get("cidr"):
        yield required(f"{path}.ipBlock.cidr")


def _ingress(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    if not spec.get("rules") and "defaultBackend" not in spec:
        why = "either `defaultBackend` or `rules` must be specified"
        yield bad("spec", None, why)
    if "defaultBackend" in spec:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        path = f"spec.rules[{index}]"
        host = rule.get("host", "").removeprefix("*.")
        if host and not SUBDOMAIN.fullmatch(host):
            yield bad(f"{path}.host", host, NOT_SUBDOMAIN)
        for place, one in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _http_path(one, f"{path}.http.paths[{place}]")


PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def _http_path(one: Spec, path: str) -> Iterator[Fault]:
    kind = one.get("pathType")
    if not kind:
        yield required(f"{path}.pathType", "pathType must be specified")
    else:
        yield from one_of(f"{path}.pathType", kind, PATH_TYPES)
    if kind in ("Exact", "Prefix") and not one.get("path", "").startswith("/"):
        why = "must be an absolute path"
        yield bad(f"{path}.path", one.get("path", ""), why)
    yield from _backend(one.get("backend") or {}, f"{path}.backend")


def _backend(backend: Spec, path: str) -> Iterator[Fault]:
    service = backend.get("service")
    if service is None:
        if "resource" not in backend:
            yield bad(path, "", "resource or service backend is required")
        return
    if not service.get("name"):
        yield required(f"{path}.service.name")
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        yield required(path, "port name or number is required")
    elif port.get("number"):
        yield from port_number(f"{path}.service.port.number", port["number"])


HOOK_CHOICES = (
    ("failurePolicy", ("Fail", "Ignore")),
    ("matchPolicy", ("Equivalent", "Exact")),
    ("sideEffects", ("None", "NoneOnDryRun")),
)


def _hooks(obj: Object) -> Iterator[Fault]:
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        name = hook.get("name", "")
        if name.count(".") < 2 or not SUBDOMAIN.fullmatch(name):
            why = "should be a domain with at least three segments separated by dots"
            yield bad(f"{path}.name", name, why)
        if not hook.get("admissionReviewVersions"):
            why = "must specify one of v1, v1beta1"
            yield required(f"{path}.admissionReviewVersions", why)
        for field, known in HOOK_CHOICES:
            if field == "sideEffects" and field not in hook:
                why = f"must specify one of {', '.join(known)}"
                yield required(f"{path}.{field}", why)
            else:
                yield from one_of(f"{path}.{field}", hook.get(field), known)
        seconds = hook.get("timeoutSeconds", 10)
        if not 1 <= seconds <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            yield bad(f"{path}.timeoutSeconds", seconds, why)
        client = hook.get("clientConfig") or {}
        if ("url" in client) == ("service" in client):
            why = "exactly one of url or service is required"
            yield required(f"{path}.clientConfig", why)


def _budget(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    if "minAvailable" in spec and "maxUnavailable" in spec:
        why = "minAvailable and maxUnavailable cannot be both set"
        shown = {**spec}
        yield bad("spec", shown, why)
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            yield from _share(f"spec.{name}", spec[name])
            yield from _at_most_all(f"spec.{name}", spec[name])
    yield from selector_faults(spec.get("selector") or {}, "spec.selector")


def _pod(obj: Object) -> Iterator[Fault]:
    yield from pod_faults(_spec(obj), "spec")


# ---------------------------------------------------------------------- changes


def _locked(*names: str) -> Change:
    """Fields of spec that stay as they are."""

    def check(new: Object, old: Object) -> Iterator[Fault]:
        yield from immutable(_spec(new), _spec(old), "spec", *names)

    return check


SET_LOCKED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
    "'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
SET_FREE = frozenset(
    (
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    )
)


def _set_changes(new: Object, old: Object) -> Iterator[Fault]:
    after, before = _spec(new), _spec(old)
    names = (after.keys() | before.keys()) - SET_FREE
    if any(after.get(name) != before.get(name) for name in names):
        yield forbidden("spec", SET_LOCKED)


def _replica_set_changes(new: Object, old: Object) -> Iterator[Fault]:
    # Its strategy looks at the new one, and so does the comparison of both.
    yield from _replica_set(new)
    yield from immutable(_spec(new), _spec(old), "spec", "selector")


def _job_changes(new: Object, old: Object) -> Iterator[Fault]:
    after, before = _spec(new), _spec(old)
    yield from immutable(after, before, "spec", "completions", "selector")
    # A job that waits may still be moved elsewhere, but this is for schedulers.
    yield from immutable(after, before, "spec", "template")


def _service_changes(new: Object, old: Object) -> Iterator[Fault]:
    after, before = _spec(new), _spec(old)
    address = before.get("clusterIP")
    is_external = "ExternalName" in (after.get("type"), before.get("type"))
    if address and not is_external and after.get("clusterIP") != address:
        why = "may not change once set"
        shown = after.get("clusterIPs") or [after.get("clusterIP", "")]
        yield bad("spec.clusterIPs[0]", shown, why)


CHECKS: dict[Resource, Check] = {
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("", "persistentvolumeclaims"): _claim,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("apps", "statefulsets"): _stateful_set,
    ("apps", "daemonsets"): _daemon_set,
    ("batch", "jobs"): _job,
    ("batch", "cronjobs"): _cron_job,
    ("coordination.k8s.io", "leases"): _lease,
    ("networking.k8s.io", "networkpolicies"): _network_policy,
    ("networking.k8s.io", "ingresses"): _ingress,
    ("policy", "poddisruptionbudgets"): _budget,
    (GROUP, "roles"): _role,
    (GROUP, "clusterroles"): _cluster_role,
    (GROUP, "rolebindings"): _binding,
    (GROUP, "clusterrolebindings"): _cluster_binding,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _hooks,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _hooks,
}
CHANGES: dict[Resource, Change] = {
    ("", "pods"): pod_update_faults,
    ("", "services"): _service_changes,
    ("", "persistentvolumeclaims"): _claim_changes,
    ("apps", "deployments"): _locked("selector"),
    ("apps", "replicasets"): _replica_set_changes,
    ("apps", "daemonsets"): _locked("selector"),
    ("apps", "statefulsets"): _set_changes,
    ("batch", "jobs"): _job_changes,
    (GROUP, "rolebindings"): _binding_changes,
    (GROUP, "clusterrolebindings"): _binding_changes,
}


def builtin_faults(
    resource: Resource, obj: Object, old: Object | None
) -> Iterator[Fault]:
    """What is wrong with an object of a built-in kind."""
    yield from config_faults(resource, obj, old)
    check = CHECKS.get(resource)
    if check is None:
        return
    # What of a stored object has not changed has been looked at before.
    if old is None or not _same_content(obj, old):
        yield from check(obj)
        change = CHANGES.get(resource)
        if old is not None and change is not None:
            yield from change(obj, old)


CONTENT = ("spec", "rules", "roleRef", "subjects", "webhooks")


def _same_content(new: Object, old: Object) -> bool:
    return all(new.get(name) == old.get(name) for name in CONTENT)
