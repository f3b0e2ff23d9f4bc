"""Validation of the specification of a pod (`apis/core/validation`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fnop.core.kubernetes.quantities import amount, is_whole
from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import (
    LARGEST,
    parsed_address,
    port_name,
    port_number,
    quantity,
    quantity_of,
    subdomain,
)
from fnop.interpreters.cluster.validation.placement_rules import PLACEMENT
from fnop.interpreters.cluster.validation.quota_rules import container_resource
from fnop.interpreters.cluster.validation.rules import Rule, Spec, must, one_of, unset
from fnop.interpreters.cluster.validation.security_rules import CONTEXT, POD_CONTEXT
from fnop.interpreters.cluster.validation.tables import (
    Among,
    entries,
    filled,
    has,
    table,
    unless,
)
from fnop.interpreters.cluster.validation.volume_rules import (
    field_reference,
    local_path,
    resource_reference,
    volume_faults,
)
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["SPACED_IMAGES", "pod_faults", "pod_update_faults"]


def pod_faults(spec: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of the specification of a pod, or of a pod template."""
    names: set[str] = set()
    yield from volume_faults(spec.get("volumes") or (), f"{path}.volumes", names)
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    yield from _containers(containers, f"{path}.containers", spec, names)
    taken = {one.get("name") for one in containers}
    first = spec.get("initContainers") or ()
    yield from _containers(first, f"{path}.initContainers", spec, names, taken)
    yield from POD(spec, path)


def _containers(
    containers: Iterable[Spec],
    path: str,
    spec: Spec,
    volumes: set[str],
    taken: Iterable[Any] = (),
) -> Iterator[Fault]:
    seen = set(taken)
    for index, one in enumerate(containers):
        field, name = f"{path}[{index}]", one.get("name", "")
        yield from NAMED(one, field)
        if name and name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)
        yield from BEFORE_MOUNTS(one, field)
        yield from _mounts(one, field, volumes)
        yield from _devices(one, field, spec, volumes)
        yield from AFTER_MOUNTS(one, field)


# ----------------------------------------------------------------------- variables

ONE_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
    "`secretKeyRef` or `fileKeyRef`"
)
SOURCES = (
    *("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
)
TOO_MANY = "may not have more than one field specified at a time"


def _one_source(variable: Spec, path: str) -> Iterator[Fault]:
    source, field = variable.get("valueFrom"), f"{path}.valueFrom"
    if source is None:
        return
    given_names = [name for name in SOURCES if name in source]
    if not given_names:
        yield bad(field, "", ONE_SOURCE)
    elif variable.get("value"):
        yield bad(field, "", "may not be specified when `value` is not empty")
    elif len(given_names) > 1:
        yield bad(field, "", TOO_MANY)


def _one_map(source: Spec, path: str) -> Iterator[Fault]:
    count = sum(name in source for name in ("configMapRef", "secretRef"))
    if count != 1:
        why = "must specify one of: `configMapRef` or `secretRef`"
        # The real server reports it at the list.
        yield bad(path.rpartition("[")[0], "", TOO_MANY if count else why)


IN_VARIABLES = field_reference(
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
KEY = table("name: subdomain", "key: needed; config key")
VARIABLE = table(
    "name: needed; env name",
    ("valueFrom.fieldRef?", IN_VARIABLES),
    ("valueFrom.resourceFieldRef?", resource_reference()),
    ("valueFrom.configMapKeyRef?, valueFrom.secretKeyRef?", KEY),
    _one_source,
)
VARIABLES = table(
    "prefix: filled; env name",
    "configMapRef?.name, secretRef?.name: needed; subdomain",
    _one_map,
)


# ----------------------------------------------------------------------- ports, mounts


def _port_name(one: Spec, path: str, seen: set[Any]) -> Iterator[Fault]:
    if name := one.get("name"):
        found = [*port_name(name, f"{path}.name")]
        yield from found
        if not found and name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _host_port(one: Spec, path: str, seen: set[Any]) -> Iterator[Fault]:
    if number := one.get("hostPort"):
        yield from port_number(number, f"{path}.hostPort")
        key = f"{one.get('protocol')}/{one.get('hostIP', '')}/{number}"
        if key in seen:
            yield duplicate(f"{path}.hostPort", key)
        seen.add(key)


def _mounts(container: Spec, path: str, volumes: set[str]) -> Iterator[Fault]:
    path, seen = f"{path}.volumeMounts", set()
    devices = container.get("volumeDevices") or ()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        field, name = f"{path}[{index}]", mount.get("name", "")
        if not name:
            yield required(f"{field}.name")
        if name not in volumes:
            yield _not_found_fault(f"{field}.name", name)
        place = mount.get("mountPath", "")
        if not place:
            yield required(f"{field}.mountPath")
        if place in seen:
            yield bad(f"{field}.mountPath", place, "must be unique")
        seen.add(place)
        for device in devices:
            if device.get("name") == name:
                why = "must not already exist in volumeDevices"
                yield bad(f"{field}.name", name, why)
        # For these, the real server does not name the mount.
        yield from SUBPATHS(mount, path)
        if mount.get("subPath") and mount.get("subPathExpr"):
            why = "subPathExpr and subPath are mutually exclusive"
            yield bad(f"{field}.subPathExpr", mount["subPathExpr"], why)
        if "mountPropagation" in mount:
            yield from _propagation(mount["mountPropagation"], container, path)


SUBPATHS = table(("subPath, subPathExpr", filled(local_path)))


def _propagation(kind: str, container: Spec, path: str) -> Iterator[Fault]:
    field = f"{path}.mountPropagation"
    yield from one_of("Bidirectional", "HostToContainer", "None")(kind, field)
    context = container.get("securityContext") or {}
    if kind == "Bidirectional" and not context.get("privileged"):
        why = (
            "Bidirectional mount propagation is available only to privileged containers"
        )
        yield forbidden(field, why)


def _not_found_fault(field: str, name: str) -> Fault:
    return Fault(field, "FieldValueNotFound", f'Not found: "{name}"')


def _devices(
    container: Spec, path: str, spec: Spec, volumes: set[str]
) -> Iterator[Fault]:
    claims = {
        one.get("name")
        for one in spec.get("volumes") or ()
        if "persistentVolumeClaim" in one or "ephemeral" in one
    }
    for index, device in enumerate(container.get("volumeDevices") or ()):
        field, name = f"{path}.volumeDevices[{index}]", device.get("name", "")
        if not name:
            yield required(f"{field}.name")
        if name not in volumes:
            yield _not_found_fault(f"{field}.name", name)
        elif name not in claims:
            why = (
                "can only use volume source type of PersistentVolumeClaim or Ephemeral "
                "for block mode"
            )
            yield bad(f"{field}.name", name, why)
        if not device.get("devicePath"):
            yield required(f"{field}.devicePath")


# ----------------------------------------------------------------------- resources


def _resource(name: str, value: Any, path: str) -> Iterator[Fault]:
    yield from container_resource(name, path)
    yield from quantity(value, path)
    if "/" in name and not is_whole(value):
        yield bad(path, value, "must be an integer")


def _requests(resources: Spec | None, path: str) -> Iterator[Fault]:
    limits, requests = (
        (resources or {}).get(part) or {} for part in ("limits", "requests")
    )
    for name, value in requests.items():
        most = amount(limits[name]) if name in limits else None
        if most is not None and quantity_of(value) > most:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield bad(f"{path}.requests", value, why)
    for name, value in requests.items():
        if not name.startswith("hugepages-") and _is_native(name):
            continue
        # Resources that cannot be shared have limits equal to their requests.
        if name not in limits:
            why = "Limit must be set for non overcommitable resources"
            yield required(f"{path}.limits", why)
        elif amount(value) != amount(limits[name]):
            why = f"must be equal to {name} limit of {limits[name]}"
            yield bad(f"{path}.requests", value, why)


def _is_native(name: str) -> bool:
    prefix, slash, _ = name.partition("/")
    return not slash or prefix.endswith("kubernetes.io")


# ----------------------------------------------------------------------- probes


def _handler(*known: str) -> Rule:
    """The rule of a probe or a hook: it has exactly one of the known handlers."""

    def check(one: Spec, path: str) -> Iterator[Fault]:
        found = [name for name in known if name in one]
        for name in found[1:]:
            why = "may not specify more than 1 handler type"
            yield forbidden(f"{path}.{name}", why)
        if not found:
            yield required(path, "must specify a handler type")
        elif found[0] in HANDLERS:
            yield from HANDLERS[found[0]](one[found[0]], f"{path}.{found[0]}")

    return check


NOT_A_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
)
_header = must(re.compile(r"[-A-Za-z0-9]+").fullmatch, NOT_A_HEADER, "")
HANDLERS: dict[str, Rule] = {
    "exec": table("command: needed"),
    "httpGet": table(
        "path: needed",
        "port: port",
        "scheme: given; HTTP | HTTPS",
        ("httpHeaders[*]", lambda one, path: _header(one.get("name"), path)),
    ),
    "tcpSocket": table("port: port"),
}
PROBE = table(
    _handler("exec", "httpGet", "tcpSocket", "grpc"),
    "initialDelaySeconds, timeoutSeconds, periodSeconds: 0..",
    "successThreshold, failureThreshold: 0..",
)
ONCE = table(PROBE, "successThreshold: 1..1 (must be 1)")
HOOK = _handler("exec", "httpGet", "tcpSocket", "sleep")


# ----------------------------------------------------------------------- containers

_message_policy = must(
    lambda policy: policy in ("File", "FallbackToLogsOnError"),
    "must be 'File' or 'FallbackToLogsOnError'",
)
NAMED = table("name: needed; DNS label")
BEFORE_MOUNTS = table(
    "image: needed",
    "imagePullPolicy: needed; Always | IfNotPresent | Never",
    ("terminationMessagePolicy", _message_policy),
    (
        "ports[]",
        Among(_port_name),
        table("containerPort: needed; port number"),
        Among(_host_port),
        table("protocol: needed; SCTP | TCP | UDP"),
    ),
    ("env[]", VARIABLE),
    ("envFrom[]", VARIABLES),
)
AFTER_MOUNTS = table(
    ("resources.limits, resources.requests", entries(_resource)),
    ("resources", _requests),
    ("securityContext", CONTEXT),
    ("livenessProbe?", ONCE),
    ("readinessProbe?", PROBE),
    ("startupProbe?", ONCE),
    ("lifecycle.postStart?, lifecycle.preStop?", HOOK),
)
# Of pods only, not of templates.
_image = must(
    lambda image: image == image.strip(), "must not have leading or trailing whitespace"
)
SPACED_IMAGES = table(("containers[].image, initContainers[].image", _image))

# ----------------------------------------------------------------------- pods


def _host_network(spec: Spec, path: str) -> Iterator[Fault]:
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec.get("containers") or ()):
        for place, one in enumerate(container.get("ports") or ()):
            number = one.get("containerPort", 0)
            if one.get("hostPort", 0) != number:
                field = f"{path}.containers[{index}].ports[{place}].containerPort"
                why = "must match `hostPort` when `hostNetwork` is true"
                yield bad(field, number, why)


def _dns(spec: Spec, path: str) -> Iterable[Fault]:
    config, field = spec.get("dnsConfig"), f"{path}.dnsConfig"
    why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
    if spec.get("dnsPolicy") != "None" or (config and config.get("nameservers")):
        return DNS(config, field)
    if config is None:
        why = "must provide `dnsConfig` when `dnsPolicy` is None"
        return (required(field, why),)
    return (required(f"{field}.nameservers", why),)


def _search(text: str, path: str) -> Iterable[Fault]:
    return subdomain(text.removesuffix("."), path)


def _option(option: Spec, path: str) -> Iterable[Fault]:
    return () if option.get("name") else (required(path, "must not be empty"),)


_address = must(parsed_address, "must be valid IP address", "")
_few = must(lambda given: len(given) <= 3, "must not have more than 3 nameservers")
DNS = table(
    ("nameservers", _few),
    ("nameservers[]", _address),
    ("searches[]", _search),
    ("options[]", _option),
)
NO_PROBES = unset("may not be set for init containers without restartPolicy=Always")
INIT_CONTAINER = unless(
    has("restartPolicy", "Always"),
    ("lifecycle, livenessProbe, readinessProbe, startupProbe", NO_PROBES),
)
POD = table(
    ("initContainers[]", INIT_CONTAINER),
    "ephemeralContainers: filled; unset (cannot be set on create)",
    "restartPolicy: needed; Always | OnFailure | Never",
    "dnsPolicy: filled; ClusterFirst | ClusterFirstWithHostNet | Default | None",
    "nodeSelector: labels",
    _host_network,
    ("securityContext", POD_CONTEXT),
    PLACEMENT,
    _dns,
    "readinessGates[].conditionType: qualified name",
    "serviceAccountName, nodeName, priorityClassName: filled; subdomain",
    "runtimeClassName: given; subdomain",
    "hostname, subdomain: filled; DNS label",
    "activeDeadlineSeconds: 1..2147483647",
    ("hostAliases[*]", table(("ip", _address), "hostnames[*]: subdomain")),
    "preemptionPolicy: given; needed; PreemptLowerPriority | Never",
    ("overhead", entries(_resource)),
)


# ----------------------------------------------------------------------- changes

CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod_update_faults(new: Spec, old: Spec) -> Iterator[Fault]:
    """Yield the forbidden changes to a pod: nearly all except images."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for part in ("containers", "initContainers"):
        if len(before.get(part) or ()) != len(after.get(part) or ()):
            why = "pod updates may not add or remove containers"
            yield forbidden(f"spec.{part}", why)
            return
    yield from _deadline_changes(after, before)
    if _immutable_spec(before) != _immutable_spec(after):
        yield forbidden("spec", CHANGEABLE)
        return
    kept = [*map(_without_seconds, after.get("tolerations") or ())]
    if any(
        _without_seconds(each) not in kept for each in before.get("tolerations") or ()
    ):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", why)


def _without_seconds(toleration: Spec) -> Spec:
    return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}


def _deadline_changes(after: Spec, before: Spec) -> Iterator[Fault]:
    """Yield the faults of a changed deadline: it may only become shorter."""
    field = "spec.activeDeadlineSeconds"
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            yield bad(
                field, new, "must not update from a positive integer to nil value"
            )
    elif not 0 <= new <= LARGEST:
        yield bad(field, new, f"must be between 0 and {LARGEST}, inclusive")
    elif old is not None and new > old:
        yield bad(field, new, "must be less than or equal to previous value")


def _immutable_spec(spec: Spec) -> Spec:
    result = {
        name: value
        for name, value in spec.items()
        if name not in ("activeDeadlineSeconds", "tolerations")
    }
    for part in ("containers", "initContainers"):
        result[part] = [{**one, "image": ""} for one in spec.get(part) or ()]
    return result
